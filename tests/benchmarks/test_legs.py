from __future__ import annotations

import json
from typing import Any

import pytest

from benchmarks.legs import (
    ADD,
    ADDEND,
    DISCOVER,
    FIRST,
    LEGACY,
    LINGER,
    LIST,
    MODERN,
    OPEN,
    PLAIN,
    SELECT,
    TELL,
    TOOLS,
    Caller,
    Leg,
    Wrong,
)
from benchmarks.responses import Garbled, Head, Response

JSON = {"content-type": "application/json"}
EVENTS = {"content-type": "text/event-stream"}


def answer(number: Any, result: Any, **other: Any) -> Any:
    return {"jsonrpc": "2.0", "id": number, "result": result, **other}


def summed(value: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": json.dumps(value)}], "isError": False}


def as_json(message: Any, status: int = 200) -> Response:
    return Response(Head(status, JSON), json.dumps(message).encode())


def as_events(*messages: Any) -> Response:
    body = "".join(
        f"id: {place}\ndata: {json.dumps(each)}\n\n" for place, each in enumerate(messages)
    )
    return Response(Head(200, EVENTS), body.encode())


def caller(leg: Leg = ADD) -> Caller:
    return Caller(leg, LEGACY, "127.0.0.1:8000", session="s")


def sent(leg: Leg, era: str, number: int) -> tuple[list[str], Any]:
    head, _, body = (
        Caller(leg, era, "127.0.0.1:8000", session="s").request(number).partition(b"\r\n\r\n")
    )
    lines = head.decode().split("\r\n")
    assert f"Content-Length: {len(body)}" in lines
    return lines, json.loads(body)


@pytest.mark.parametrize("leg", [ADD, SELECT, TELL, LINGER, LIST, OPEN, DISCOVER])
@pytest.mark.parametrize("number", [FIRST, FIRST + 1234, 9_999_999])
def test_requests_bear_their_number_and_declare_their_length(leg: Leg, number: int):
    _, message = sent(leg, MODERN, number)
    assert message["id"] == number
    assert message["method"] == leg.method


def test_a_legacy_request_names_its_session_and_a_modern_one_mirrors_what_it_asks():
    lines, message = sent(ADD, LEGACY, FIRST)
    assert "Mcp-Session-Id: s" in lines
    assert "_meta" not in message["params"]
    lines, message = sent(ADD, MODERN, FIRST)
    assert {"Mcp-Method: tools/call", "Mcp-Name: add"} <= set(lines)
    assert message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] == MODERN


def test_arguments_follow_the_number():
    for number in (FIRST, FIRST + 7):
        _, message = sent(ADD, LEGACY, number)
        assert message["params"]["arguments"] == {"a": number, "b": ADDEND}


def right(number: int) -> Response:
    return as_json(answer(number, summed(number + ADDEND)))


WRONG = {
    "id": lambda n: as_json(answer(n + 1, summed(n + ADDEND))),
    "type of the id": lambda n: as_json(answer(str(n), summed(n + ADDEND))),
    "id as a fraction": lambda n: as_json(answer(float(n), summed(n + ADDEND))),
    "no id": lambda n: as_json({"jsonrpc": "2.0", "result": summed(n + ADDEND)}),
    "value": lambda n: as_json(answer(n, summed(n + ADDEND + 1))),
    "value of the request before": lambda n: as_json(answer(n, summed(n + ADDEND - 1))),
    "type of the value": lambda n: as_json(answer(n, summed(str(n + ADDEND)))),
    "no value": lambda n: as_json(answer(n, {"content": []})),
    "structured value": lambda n: as_json(
        answer(n, summed(n + ADDEND) | {"structuredContent": {"result": n}})
    ),
    "isError": lambda n: as_json(answer(n, summed(n + ADDEND) | {"isError": True})),
    "an error": lambda n: as_json({"jsonrpc": "2.0", "id": n, "error": {"code": -32603}}),
    "status": lambda n: as_json(answer(n, summed(n + ADDEND)), status=500),
    "no JSON": lambda n: Response(Head(200, JSON), right(n).body[:-1]),
    "a list": lambda n: as_json([]),
    "a word before it": lambda n: as_events(
        {"method": "notifications/message"}, answer(n, summed(n + ADDEND))
    ),
    "truncated events": lambda n: Response(
        Head(200, EVENTS), as_events(answer(n, summed(n + ADDEND))).body[:-1]
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_answer_is_noticed_at_first_and_after_right_ones(name: str):
    for before in (0, 3):
        checking = caller()
        for number in range(FIRST, FIRST + before):
            checking.check(right(number), number)
        number = FIRST + before
        with pytest.raises((Wrong, Garbled)):
            checking.check(WRONG[name](number), number)


def test_right_answers_pass_whatever_their_form():
    checking = caller()
    for number in range(FIRST, FIRST + 5):
        structured = summed(number + ADDEND) | {"structuredContent": {"sum": number + ADDEND}}
        checking.check(right(number), number)
        checking.check(as_events(answer(number, structured)), number)
        checking.check(as_json({"id": number, "result": structured}), number)


def test_a_value_that_holds_the_number_leaves_no_pattern_behind():
    """What looks like the answer before it, with the other number put in its place, is wrong."""
    checking = caller(SELECT)
    before, number = 1_003_003, 1_003_004
    value = SELECT.value(before)
    assert str(before) in str(value)
    checking.check(as_json(answer(before, summed(value))), before)
    for wrong in (value, int(str(value).replace(str(before), str(number)))):
        with pytest.raises(Wrong):
            checking.check(as_json(answer(number, summed(wrong))), number)


def told(number: int, count: int = 3) -> list[Any]:
    return [
        {"method": "notifications/message", "params": {"level": "info", "data": f"{number} {each}"}}
        for each in range(count)
    ]


def test_all_that_is_said_must_come_in_order_and_before_the_answer():
    checking = caller(TELL)
    last = answer(FIRST, summed(FIRST))
    checking.check(as_events(*told(FIRST), last), FIRST)
    for wrong in (told(FIRST, 2), told(FIRST)[::-1], told(FIRST + 1), told(FIRST, 4)):
        with pytest.raises(Wrong):
            checking.check(as_events(*wrong, last), FIRST)
    with pytest.raises(Wrong):
        checking.check(as_events(last, *told(FIRST)), FIRST)


def test_a_list_must_be_whole():
    tools = [{"name": "add"}, *({"name": f"t{number}"} for number in range(TOOLS - 1))]
    checking = caller(LIST)
    checking.check(as_json(answer(FIRST, {"tools": tools})), FIRST)
    for wrong in (tools[:-1], [*tools[:-1], tools[0]], [*tools[1:], {"name": "x"}]):
        with pytest.raises(Wrong):
            checking.check(as_json(answer(FIRST, {"tools": wrong})), FIRST)


def test_handshakes_must_agree_on_the_revision():
    opened = {"protocolVersion": LEGACY, "serverInfo": {}, "capabilities": {}}
    caller(OPEN).check(as_json(answer(FIRST, opened)), FIRST)
    with pytest.raises(Wrong):
        caller(OPEN).check(as_json(answer(FIRST, opened | {"protocolVersion": MODERN})), FIRST)
    caller(DISCOVER).check(as_json(answer(FIRST, {"supportedVersions": [MODERN]})), FIRST)
    with pytest.raises(Wrong):
        caller(DISCOVER).check(as_json(answer(FIRST, {"supportedVersions": []})), FIRST)


def test_a_bare_view_must_answer_its_constant():
    caller(PLAIN).check(as_json({"value": 4_242_424_242}), FIRST)
    for wrong in (4_242_424_243, "4242424242", None):
        with pytest.raises(Wrong):
            caller(PLAIN).check(as_json({"value": wrong}), FIRST)
