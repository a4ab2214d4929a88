"""What is asked of a server, and what the right answer is.

A request bears a number: it is its id, and decides its arguments, so that the answer to one is
wrong for every other. Each answer is checked for its id, the type of that, and its value.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from .responses import Response

LEGACY: Final = "2025-11-25"
MODERN: Final = "2026-07-28"
ERAS: Final = (LEGACY, MODERN)
FIRST: Final = 1_000_001
"""Numbers have seven digits, so that all requests are of one length."""
ADDEND: Final = 1_000_003
CONSTANT: Final = 4_242_424_242
"""What a bare view answers."""
ROWS: Final = 1_000
TOOLS: Final = 50
EVENTS: Final = 3
PAUSE_MS: Final = 30
"""How long a call lingers: too long for us to answer it in one piece."""


class Wrong(Exception):
    """What came is not the answer."""


Check = Callable[[Response, int], None]


@dataclass(frozen=True, slots=True)
class Leg:
    """One kind of request."""

    name: str
    title: str
    method: str
    params: Callable[[int], dict[str, Any]]
    value: Callable[[int], Any]
    """What the answer to a number comes to."""
    check: Check
    tool: str = ""


def row(number: int) -> int:
    """Return which row a request asks for; all keys are of one length."""
    return number % ROWS + ROWS


def _result(response: Response, number: int) -> tuple[list[Any], dict[str, Any]]:
    """Return what was said before the answer, and its result."""
    if response.head.status != 200:
        raise Wrong(f"status {response.head.status}: {response.body[:500]!r}")
    try:
        *said, answer = response.messages()
    except ValueError as error:
        raise Wrong(f"{response.body[:500]!r}") from error
    if not isinstance(answer, dict) or "result" not in answer:
        raise Wrong(f"no result: {answer!r}")
    given = answer.get("id")
    if type(given) is not int or given != number:
        raise Wrong(f"id {given!r} instead of {number!r}")
    return said, answer["result"]


def _compare(result: dict[str, Any], expected: int) -> None:
    """Compare what a tool returned: as text, and, where it is there, as structured content."""
    if result.get("isError"):
        raise Wrong(f"an error: {result}")
    found = [json.loads(block["text"]) for block in result["content"]]
    structured = result.get("structuredContent", {})
    # Through 2025-11-25 it is always an object; everybody has another name for its only member.
    found += structured.values() if isinstance(structured, dict) else [structured]
    if not found or any(type(each) is not int or each != expected for each in found):
        raise Wrong(f"{found!r} instead of {expected!r}")


def _check_value(value: Callable[[int], int]) -> Check:
    def check(response: Response, number: int) -> None:
        said, result = _result(response, number)
        if said:
            raise Wrong(f"said {said!r}")
        _compare(result, value(number))

    return check


def _check_told(response: Response, number: int) -> None:
    said, result = _result(response, number)
    told = [_data(each) for each in said if each["method"] == "notifications/message"]
    if len(said) != EVENTS or told != [f"{number} {count}" for count in range(EVENTS)]:
        raise Wrong(f"said {said!r}")
    _compare(result, number)


def _data(message: dict[str, Any]) -> Any:
    data = message["params"]["data"]
    return data["msg"] if isinstance(data, dict) else data  # FastMCP's has a place for more


def _check_list(response: Response, number: int) -> None:
    _, result = _result(response, number)
    names = {tool["name"] for tool in result["tools"]}
    if len(names) != TOOLS or len(result["tools"]) != TOOLS or "add" not in names:
        raise Wrong(f"{len(names)} tools instead of {TOOLS}")


def _check_opened(response: Response, number: int) -> None:
    _, result = _result(response, number)
    if result["protocolVersion"] != LEGACY or "serverInfo" not in result:
        raise Wrong(f"{result!r}")


def _check_discovered(response: Response, number: int) -> None:
    _, result = _result(response, number)
    if MODERN not in result["supportedVersions"]:
        raise Wrong(f"{result!r}")


def _check_plain(value: Callable[[int], Any]) -> Check:
    def check(response: Response, number: int) -> None:
        expected = {"value": value(number)}
        found = json.loads(response.body) if response.head.status == 200 else None
        if found != expected or type(found["value"]) is not type(expected["value"]):
            raise Wrong(f"{response.head.status} {response.body[:500]!r} instead of {expected}")

    return check


def _call(tool: str, **arguments: Callable[[int], Any]) -> Callable[[int], dict[str, Any]]:
    return lambda number: {
        "name": tool,
        "arguments": {name: value(number) for name, value in arguments.items()},
    }


def _sum(number: int) -> int:
    return number + ADDEND


def _looked_up(number: int) -> int:
    # What the table has, see benchmarks/projects/shelf.
    return row(number) * 1_000_003


ADD = Leg(
    "add",
    "`add(a, b)`, a tool that does nothing",
    "tools/call",
    _call("add", a=lambda number: number, b=lambda number: ADDEND),
    _sum,
    _check_value(_sum),
    "add",
)
ADD_OTHER = Leg(
    "add other",
    "the same, but asynchronous under WSGI and synchronous at the mount",
    "tools/call",
    _call("add_other", a=lambda number: number, b=lambda number: ADDEND),
    _sum,
    _check_value(_sum),
    "add_other",
)
SELECT = Leg(
    "select",
    "a tool that reads one row by the ORM",
    "tools/call",
    _call("look_up", key=row),
    _looked_up,
    _check_value(_looked_up),
    "look_up",
)
TELL = Leg(
    "tell",
    "a tool that sends three messages while it runs, over SSE",
    "tools/call",
    _call("tell", number=lambda number: number),
    lambda number: number,
    _check_told,
    "tell",
)
LINGER = Leg(
    "linger",
    "the same, but that it waits after the first one",
    "tools/call",
    _call("tell", number=lambda number: number, pause=lambda _: PAUSE_MS),
    lambda number: number,
    _check_told,
    "tell",
)
LIST = Leg(
    "list", f"`tools/list` of {TOOLS}", "tools/list", lambda _: {}, lambda _: "", _check_list
)
OPEN = Leg(
    "open",
    "`initialize`",
    "initialize",
    lambda _: {
        "protocolVersion": LEGACY,
        "capabilities": {},
        "clientInfo": {"name": "bench", "version": "1"},
    },
    lambda _: "",
    _check_opened,
)
DISCOVER = Leg(
    "discover",
    "`server/discover`",
    "server/discover",
    lambda _: {},
    lambda _: "",
    _check_discovered,
)
PLAIN = Leg(
    "plain",
    "a constant",
    "tools/call",
    ADD.params,
    lambda _: CONSTANT,
    _check_plain(lambda _: CONSTANT),
    "add",
)
PLAIN_SELECT = Leg(
    "plain select",
    "one row by the ORM",
    "tools/call",
    SELECT.params,
    _looked_up,
    _check_plain(_looked_up),
    "look_up",
)
_ALL = (ADD, ADD_OTHER, SELECT, TELL, LINGER, LIST, OPEN, DISCOVER, PLAIN, PLAIN_SELECT)
LEGS = {each.name: each for each in _ALL}


class Caller:
    """Makes the requests of one leg in one session, and checks the answers.

    A whole check takes longer than many a server does. So what has been found right once is kept
    as a pattern, with the places where number and value stand, and an answer that fits it to the
    byte is right as well. Any other is checked in full.
    """

    def __init__(
        self, leg: Leg, era: str, host: str, path: str = "/mcp", session: str = ""
    ) -> None:
        self._leg = leg
        self._era = era
        self._pattern: bytes | None = None
        sample = self._body(FIRST)
        headers = {
            "Host": host,
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "Content-Length": str(len(sample)),
            **headers_of(era, leg.method, leg.tool, session),
        }
        lines = [f"POST {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
        self._head = "\r\n".join([*lines, "", ""]).encode()
        self._parts = sample.split(b"%d" % FIRST)
        self._varies = leg in (SELECT, PLAIN_SELECT)

    def request(self, number: int) -> bytes:
        """Return the bytes of a request."""
        if self._varies:
            return self._head + self._body(number)
        return self._head + (b"%d" % number).join(self._parts)

    def check(self, response: Response, number: int) -> None:
        """Raise :class:`Wrong` if this is not the answer to the request of the number."""
        own, value = b"%d" % number, str(self._leg.value(number)).encode()
        if self._pattern is not None and response.head.status == 200:
            expected = self._pattern.replace(b"\0", own).replace(b"\1", value)
            if response.body == expected:
                return
        try:
            self._leg.check(response, number)
        except Wrong:
            raise
        except Exception as error:
            raise Wrong(f"{type(error).__name__}: {response.body[:500]!r}") from error
        self._pattern = _pattern(response.body, own, value)

    def _body(self, number: int) -> bytes:
        params = self._leg.params(number)
        if self._era == MODERN and not self._leg.name.startswith("plain"):
            params["_meta"] = {
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientCapabilities": {},
            }
            if self._leg.tool == "tell":
                params["_meta"]["io.modelcontextprotocol/logLevel"] = "info"
        message = {"jsonrpc": "2.0", "id": number, "method": self._leg.method, "params": params}
        return json.dumps(message, separators=(",", ":")).encode()


def _pattern(body: bytes, number: bytes, value: bytes) -> bytes | None:
    if value == number or not value:
        return body.replace(number, b"\0")
    if value in number or number in value:
        return None  # nobody could tell which of them stands there
    return body.replace(number, b"\0").replace(value, b"\1")


def headers_of(era: str, method: str, name: str = "", session: str = "") -> dict[str, str]:
    """Return the headers that an era asks for."""
    if era == MODERN:
        named = {"Mcp-Name": name} if name else {}
        return {"Mcp-Protocol-Version": MODERN, "Mcp-Method": method, **named}
    if method == "initialize":
        return {}
    return {"Mcp-Protocol-Version": LEGACY, **({"Mcp-Session-Id": session} if session else {})}
