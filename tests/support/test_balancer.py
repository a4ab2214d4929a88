"""The balancer never stays with a worker, and is otherwise not there until it cuts."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from .balancer import HOST, Balancer, Cut, balancing

SECONDS = 10
EVENTS = [b"id: a\ndata: \n\n", b": a comment\n\n", b"id: b\ndata: 1\n\n", b"id: c\ndata: 2\n\n"]


class Worker(ThreadingHTTPServer):
    """Says which worker it is; streams events, the last one when `go_on` is set."""

    daemon_threads = True

    def __init__(self, name: bytes) -> None:
        super().__init__((HOST, 0), Handler)
        self.name = name
        self.go_on = threading.Event()
        self.client_left = threading.Event()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Worker

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "1")
        self.end_headers()
        self.wfile.write(self.server.name)

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("X-Worker", self.server.name.decode())
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in EVENTS[:-1]:
            self.write_chunk(event)
        self.server.go_on.wait(SECONDS)
        self.write_chunk(EVENTS[-1])
        self.write_chunk(b"")

    def do_DELETE(self) -> None:
        # Answers nothing: what comes next on the connection is its end.
        if not self.connection.recv(1):
            self.server.client_left.set()
        self.close_connection = True

    def do_OPTIONS(self) -> None:
        # Dies in the middle of a stream.
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.write_chunk(EVENTS[0])
        self.close_connection = True

    def write_chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def workers() -> Iterator[list[Worker]]:
    servers = [Worker(b"0"), Worker(b"1")]
    threads = [
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        for server in servers
    ]
    for thread in threads:
        thread.start()
    yield servers
    for server, thread in zip(servers, threads, strict=True):
        server.go_on.set()
        server.shutdown()
        server.server_close()
        thread.join(SECONDS)


@pytest.fixture
def balancer(workers: list[Worker]) -> Iterator[Balancer]:
    with balancing([worker.server_address[1] for worker in workers]) as balancer:
        yield balancer


@pytest.fixture
def connected(balancer: Balancer) -> Callable[[], http.client.HTTPConnection]:
    return lambda: http.client.HTTPConnection(HOST, balancer.port, timeout=SECONDS)


@contextmanager
def streaming(
    client: http.client.HTTPConnection, method: str = "GET", **headers: str
) -> Iterator[http.client.HTTPResponse]:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    client.request(method, "/mcp", headers=given)
    with client.getresponse() as response:
        yield response
    client.close()


def post(client: http.client.HTTPConnection) -> bytes:
    client.request("POST", "/mcp", b'{"method": "tools/call", "params": {"name": "count"}}')
    return client.getresponse().read()


def test_each_request_of_a_connection_goes_to_another_worker(
    connected: Callable[[], http.client.HTTPConnection], balancer: Balancer
) -> None:
    client = connected()

    assert [post(client) for _ in range(4)] == [b"0", b"1", b"0", b"1"]
    assert [passed.worker for passed in balancer.passed] == [0, 1, 0, 1]
    assert balancer.passed[0].asks == "tools/call count"
    client.close()


def test_each_connection_goes_to_another_worker(
    connected: Callable[[], http.client.HTTPConnection],
) -> None:
    clients = [connected(), connected(), connected()]

    assert [post(client) for client in clients] == [b"0", b"1", b"0"]
    for client in clients:
        client.close()


def test_a_stream_passes_as_it_comes(
    connected: Callable[[], http.client.HTTPConnection], workers: list[Worker]
) -> None:
    with streaming(connected()) as response:
        early = b"".join(EVENTS[:-1])
        assert response.read(len(early)) == early
        workers[0].go_on.set()
        assert response.read() == EVENTS[-1]


def test_a_cut_breaks_the_connection_after_so_many_events(
    connected: Callable[[], http.client.HTTPConnection], balancer: Balancer, workers: list[Worker]
) -> None:
    balancer.cuts.append(Cut(after=2, method="GET"))

    with streaming(connected()) as response, pytest.raises(http.client.IncompleteRead) as broken:
        response.read()
    assert broken.value.partial == b"".join(EVENTS[:3])
    assert (balancer.cuts, balancer.passed[0].was_cut) == ([], True)


def test_a_cut_is_for_the_request_that_fits(
    connected: Callable[[], http.client.HTTPConnection], balancer: Balancer
) -> None:
    cut = Cut(after=1, having=b"something else")
    balancer.cuts.append(cut)
    client = connected()

    assert post(client) == b"0"
    assert balancer.cuts == [cut]
    client.close()


def test_a_stream_is_never_resumed_where_it_broke_off(
    connected: Callable[[], http.client.HTTPConnection], balancer: Balancer, workers: list[Worker]
) -> None:
    for worker in workers:
        worker.go_on.set()
    with streaming(connected()) as response:
        first = response.headers["X-Worker"]
        response.read()
    client = connected()
    post(client)
    client.close()

    with streaming(connected(), Last_Event_ID="b") as response:
        assert (first, response.headers["X-Worker"]) == ("0", "1")
        response.read()
    assert balancer.passed[-1].last_event_id == "b"


def test_the_worker_learns_that_the_client_left(
    connected: Callable[[], http.client.HTTPConnection], workers: list[Worker]
) -> None:
    client = connected()
    client.request("DELETE", "/mcp")
    client.close()

    assert workers[0].client_left.wait(SECONDS)


def test_the_client_learns_that_the_worker_died(
    connected: Callable[[], http.client.HTTPConnection],
) -> None:
    with (
        streaming(connected(), "OPTIONS") as response,
        pytest.raises(http.client.IncompleteRead) as broken,
    ):
        response.read()
    assert broken.value.partial == EVENTS[0]
