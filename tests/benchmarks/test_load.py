"""The load generator against a server that answers by a script."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from benchmarks.legs import ADD, LEGACY, Caller
from benchmarks.load import Load, Outcome

Script = Callable[[int, int], bytes | None]
"""From a request's number, and from how many came on the connection before it, to the answer."""


def response(number: int, value: int | None = None, *, headers: str = "") -> bytes:
    text = str(number + 1_000_003 if value is None else value)
    result = {"content": [{"type": "text", "text": text}]}
    body = json.dumps({"jsonrpc": "2.0", "id": number, "result": result})
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{headers}"
    return f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode()


@contextmanager
def scripted(script: Script) -> Iterator[int]:
    """Serve until the block ends; a script that gives nothing closes the connection."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(connection: socket.socket) -> None:
        with connection:
            before = 0
            while data := connection.recv(65536):
                number = json.loads(data.partition(b"\r\n\r\n")[2])["id"]
                answer = script(number, before)
                if answer is not None:
                    connection.sendall(answer)
                if answer is None or b"Connection: close" in answer or b"cut" in answer:
                    return
                before += 1

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=[connection], daemon=True).start()

    accepting = threading.Thread(target=accept, daemon=True)
    accepting.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        accepting.join(5)


def run(script: Script, requests: int = 60, connections: int = 3) -> Outcome:
    with scripted(script) as port:
        load = Load(port, [Caller(ADD, LEGACY, f"127.0.0.1:{port}") for _ in range(connections)])
        try:
            return load.run(20, requests)
        finally:
            load.close()


def test_right_answers_are_counted_with_their_latencies():
    outcome = run(lambda number, before: response(number))
    assert (outcome.answered, outcome.wrong, outcome.reconnects) == (60, [], 0)
    assert len(outcome.latencies) == 60
    assert min(outcome.latencies) > 0
    assert outcome.rate == 60 / outcome.seconds


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (lambda number, _: response(number + 1), "id"),
        (lambda number, _: response(number, 5), "instead of"),
        (lambda number, _: response(number).replace(b"200 OK", b"500 No"), "status 500"),
        (lambda number, _: None, "without a response"),
        (lambda number, _: b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\ncut", "ended within"),
        (lambda number, _: b"what?\r\n\r\n", "what?"),
    ],
    ids=["id", "value", "status", "closed", "truncated", "no HTTP"],
)
def test_each_wrong_answer_is_counted_and_none_as_right(script: Script, why: str):
    outcome = run(script, 12)
    assert outcome.answered == 0
    assert len(outcome.wrong) == 12
    assert all(why in each for each in outcome.wrong)


def test_one_wrong_answer_among_many_is_found():
    outcome = run(lambda number, before: response(number, 5 if before == 7 else None), 30, 1)
    assert len(outcome.wrong) == 3  # after it comes a new connection
    assert outcome.answered == 27


def test_a_server_may_close_after_a_response():
    outcome = run(lambda number, _: response(number, headers="Connection: close\r\n"), 12)
    assert (outcome.answered, outcome.wrong, outcome.reconnects) == (12, [], 12)


def test_a_load_ends_in_time():
    with scripted(lambda number, before: response(number)) as port:
        load = Load(port, [Caller(ADD, LEGACY, f"127.0.0.1:{port}")])
        outcome = load.run(0.05)
        load.close()
    assert outcome.seconds >= 0.05
    assert outcome.answered > 0
