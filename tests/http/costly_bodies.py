"""Sends bodies that are made to cost much, and says what each of them took.

For a process of its own, so that nothing else is in its memory; it writes a line of JSON for each.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import decimal
import json
import logging
import resource
import time
import uuid
from collections.abc import Callable
from typing import Annotated, Any, Literal

from django.conf import settings
from django.core.asgi import get_asgi_application
from django.test.utils import setup_databases
from pydantic import BaseModel, ConfigDict, Field, Json, JsonValue

from django_mcp import Context, MCPServer, endpoint
from django_mcp.asgi import mount
from django_mcp.auth import public
from tests.support.asgi import request, scope_of
from tests.support.sites import run, urlconf

VALUES = 99_000
SIZE = 4 * 1024 * 1024 - 4096
PRIME = 2**61 - 1
"""Integers that differ by a multiple of it have one hash."""


class Line(BaseModel):
    model_config = ConfigDict(extra="forbid")

    sku: str
    amount: int = 1
    tags: list[str] = []
    more: dict[str, Line] | None = None


class Tree(BaseModel):
    v: int
    w: int
    left: Tree | None = None
    right: Tree | None = None


class And(BaseModel):
    op: Literal["and"]
    args: list[Expression]


class Or(BaseModel):
    op: Literal["or"]
    args: list[Expression]


class Leaf(BaseModel):
    op: Literal["leaf"]
    n: int


Expression = And | Or | Leaf

KINDS: dict[str, Any] = {
    "any": Any,
    "bounded": Annotated[decimal.Decimal, Field(max_digits=9)],
    "dict_of_int": dict[int, int],
    "expression": Expression,
    "ints": list[int],
    "json": Json[list[int]],
    "json_value": JsonValue,
    "line": Line,
    "lines": list[Line],
    "nested": dict[str, dict[str, list[Line | Tree | int]]],
    "set_of_int": set[int],
    "set_of_uuid": frozenset[uuid.UUID],
    "text": str,
    "tree": Tree,
    "union": list[int | float | bool | dt.date | uuid.UUID | Line | Tree | str],
    "unions": list[int] | list[str] | list[Line] | dict[str, int],
}


def _array(item: bytes, number: int = VALUES) -> bytes:
    return b"[" + b",".join([item] * number) + b"]"


def _object(items: Any) -> bytes:
    return b"{" + b",".join(b'"%b":%b' % (str(name).encode(), item) for name, item in items) + b"}"


def _tree(nodes: int) -> Any:
    root: Any = {}
    level = [root]
    while nodes > 0:
        for node in level:
            node |= {"left": {}, "right": {}}
        nodes -= 2 * len(level)
        level = [child for node in level for child in node.values()]
    return root


def _expression(depth: int) -> Any:
    found: Any = {"op": "leaf", "n": "bad"}
    for _ in range(depth):
        found = {"op": "or", "args": [found]}
    return found


SHAPES: dict[str, bytes] = {
    "ints": _array(b"1"),
    "texts": _array(b'"x"'),
    "objects": _array(b"{}", VALUES // 2),
    "lines": _array(b'{"sku":"a"}', VALUES // 2),
    "lines, the last one bad": _array(b'{"sku":"a"}', VALUES // 2 - 1)[:-1] + b",{}]",
    "members": _object((number, b"1") for number in range(VALUES)),
    "members that are bad lines": _object((n, b'{"sku":1}') for n in range(VALUES // 2)),
    "deep arrays": _array(b"[" * 100 + b"]" * 100, VALUES // 102),
    "deep objects": _array(b'{"more":' * 100 + b"1" + b"}" * 100, VALUES // 102),
    "a tree": json.dumps(_tree(VALUES // 4)).encode(),
    "an expression": json.dumps(_expression(40)).encode(),
    "long floats": _array(b"1." + b"1" * 38),
    "long integers": _array(b"1" * 1000, SIZE // 1001),
    "a long text": b'"' + b"a" * SIZE + b'"',
    "a wide text": '"\U0001f600'.encode() + b"a" * SIZE + b'"',
    "commas in a text": b'"[' + b"1," * (SIZE // 2 - 1) + b'1]"',
    "hidden commas": b'"\\u005b' + b"1\\u002c" * (SIZE // 7 - 9) + b'1]"',
    "texts in a text": b'"[' + b",".join([b'\\"x\\"'] * VALUES) + b']"',
    "colliding ints": b"[" + b",".join(b"%d" % (n * PRIME) for n in range(VALUES)) + b"]",
    "colliding members": _object((n * PRIME, b"1") for n in range(VALUES)),
    "colliding uuids": json.dumps([str(uuid.UUID(int=n * PRIME)) for n in range(VALUES)]).encode(),
    "long uris": json.dumps(["x://y" + "?q=" * 1300 + str(n) for n in range(60)]).encode(),
    "uris": json.dumps([f"x://y{'/?q=' * 60}{n}" for n in range(1000)]).encode(),
    "bad batch": b"["
    + b",".join(
        b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":'
        b'{"name":"lines","arguments":{"value":%b}}}' % (n, _array(b"{}", 450))
        for n in range(100)
    )
    + b"]",
}

Sent = tuple[bytes, dict[str, str]]


def _modern(method: str, params: bytes, name: str = "", meta: bytes = b"") -> Sent:
    headers = {"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method}
    own = (
        b'"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
        b'"io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"sampling":{}}%b}' % meta
    )
    body = b'{"jsonrpc":"2.0","id":1,"method":"%b","params":{%b%b}}'
    return body % (method.encode(), params, own), headers | ({"Mcp-Name": name} if name else {})


def _legacy(method: str, params: bytes) -> Callable[[bytes], Sent]:
    body = (
        b'{"jsonrpc":"2.0","id":1,"method":"' + method.encode() + b'","params":{' + params + b"}}"
    )
    return lambda value: (body.replace(b"$", value), {"Mcp-Session-Id": ""})


def _calling(name: str, params: bytes) -> Callable[[bytes], Sent]:
    start = b'"name":"%b",' % name.encode()
    return lambda value: _modern("tools/call", start + params.replace(b"$", value) + b",", name)


def _raw(body: bytes) -> Callable[[bytes], Sent]:
    return lambda value: (body.replace(b"$", value), {"Mcp-Session-Id": ""})


def _asking(method: str, params: bytes) -> Callable[[bytes], Sent]:
    return lambda value: _modern(method, params.replace(b"$", value) + b",")


def _about(member: bytes) -> Callable[[bytes], Sent]:
    return lambda value: _modern("tools/list", b"", "", b"," + member.replace(b"$", value))


INFO = b'"clientInfo":{"version":"1","name":"x",%b}'
OPENING = b'"protocolVersion":"2025-11-25","capabilities":{%b},'
PLACES: dict[str, Callable[[bytes], Sent]] = {
    **{name: _calling(name, b'"arguments":{"value":$}') for name in KINDS},
    "arguments": _calling("ints", b'"arguments":$'),
    "answers": _calling("ask", b'"inputResponses":$'),
    "an answer": _calling(
        "ask", b'"inputResponses":{"elicit-1":{"action":"accept","content":{"value":$}}}'
    ),
    "a sample": _calling(
        "sample", b'"inputResponses":{"sample-1":{"role":"assistant","model":"m","content":$}}'
    ),
    "state": _calling("ask", b'"requestState":$'),
    "a body": _raw(b"$"),
    "an id": _raw(b'{"jsonrpc":"2.0","id":$,"method":"tools/list"}'),
    "a method": _raw(b'{"jsonrpc":"2.0","id":1,"method":$}'),
    "a response": _raw(b'{"jsonrpc":"2.0","id":1,"result":{"x":$}}'),
    "a name": _legacy("tools/call", b'"name":$'),
    "icons": _legacy("initialize", OPENING % b"" + INFO % b'"icons":$'),
    "capabilities": _legacy("initialize", OPENING % b'"experimental":$' + INFO % b'"x":1'),
    "icons each time": _about(
        b'"io.modelcontextprotocol/clientInfo":{"name":"x","version":"1","icons":$}'
    ),
    "a token": _about(b'"progressToken":$'),
    "metadata": _about(b'"x":$'),
    "a cursor": _asking("tools/list", b'"cursor":$'),
    "what is completed": _asking(
        "completion/complete",
        b'"ref":{"type":"ref/prompt","name":"remember"},"argument":{"name":"a","value":"x"},'
        b'"context":{"arguments":$}',
    ),
    "a prompt": lambda value: _modern(
        "prompts/get", b'"name":"remember","arguments":%b,' % value, "remember"
    ),
    "a URI": _legacy("resources/read", b'"uri":$'),
    "a URI no more": _legacy("resources/unsubscribe", b'"uri":$'),
    "subscriptions": _asking(
        "subscriptions/listen", b'"notifications":{"resourceSubscriptions":$}'
    ),
}

BODIES: list[tuple[str, str]] = [
    *((kind, "lines, the last one bad") for kind in ("lines", "line", "union", "unions", "ints")),
    *((kind, "lines") for kind in ("lines", "any", "json_value")),
    *((kind, "members that are bad lines") for kind in ("nested", "line", "dict_of_int")),
    *((kind, "texts in a text") for kind in ("ints", "unions")),
    *((kind, "hidden commas") for kind in ("json", "ints", "text")),
    *((kind, "commas in a text") for kind in ("json", "ints")),
    *((kind, "colliding ints") for kind in ("set_of_int", "ints")),
    *((kind, "long integers") for kind in ("any", "set_of_int", "line")),
    *((kind, "a wide text") for kind in ("unions", "bounded")),
    ("dict_of_int", "colliding members"),
    ("set_of_uuid", "colliding uuids"),
    ("bounded", "long floats"),
    ("tree", "a tree"),
    ("expression", "an expression"),
    ("lines", "deep objects"),
    *(("arguments", shape) for shape in ("members", "colliding members")),
    *((place, "lines") for place in ("icons", "icons each time", "a sample", "an answer")),
    *((place, "members that are bad lines") for place in ("capabilities", "answers", "metadata")),
    *((place, "members") for place in ("what is completed", "a prompt", "answers", "a body")),
    *((place, "deep arrays") for place in ("a token", "a method", "an id", "a name", "a cursor")),
    *((place, "a long text") for place in ("state", "a URI", "a URI no more", "a name", "an id")),
    *((place, "texts") for place in ("subscriptions", "an answer", "a response")),
    *(("subscriptions", shape) for shape in ("long uris", "uris")),
    ("a body", "bad batch"),
]


def _site() -> Any:
    server = MCPServer("costly", version="1", auth=public)
    for name, kind in KINDS.items():

        def take(value: Any) -> str:
            return "taken"

        take.__annotations__ = {"value": kind, "return": str}
        server.tool(name=name)(take)

    @server.tool
    async def ask(ctx: Context) -> str:
        return str(await ctx.aelicit("Which?", list[Literal["a", "b"]]))

    @server.tool
    async def sample(ctx: Context) -> str:
        return str(await ctx.asample("Say something", max_tokens=5))

    @server.prompt
    def remember(a: str, b: list[int]) -> str:
        return a

    @server.completion("remember", "a")
    def words(value: str, arguments: dict[str, str]) -> list[str]:
        return []

    def page(path: str, q: str = "", r: str = "") -> str:
        return path

    for number in range(10):
        server.resource(f"x://{{+path}}/{number}{{?q,r}}")(page)
    server.resource("x://{+path}{?q,r}")(page)
    settings.ROOT_URLCONF = urlconf(endpoint("mcp", server=server))
    settings.DJANGO_MCP = {"RATE_LIMIT": "", "STREAM_AFTER_SECONDS": 600}


async def _beat(gaps: list[float]) -> None:
    """Note how much of the processor is used between two turns of the loop."""
    before = time.process_time()
    while True:
        await asyncio.sleep(0.0005)
        now = time.process_time()
        gaps.append(now - before)
        before = now


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


async def _measure() -> None:
    application = mount(get_asgi_application())
    answered = asyncio.Event()

    async def noting(scope: Any, receive: Any, send: Any) -> None:
        async def noted(event: Any) -> None:
            if event["type"] == "http.response.start":
                answered.set()
            await send(event)

        await application(scope, receive, noted)

    standing = {
        "Host": "testserver",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }

    async def send(body: bytes, headers: dict[str, str]) -> Any:
        given = {**standing, **headers}
        async with asyncio.timeout(60):
            return await request(noting, scope_of("/mcp", headers=given.items()), body)

    async def session(revision: bytes) -> str:
        params = b'"protocolVersion":"%b","capabilities":{},' % revision + INFO % b'"x":1'
        answer = await send(_legacy("initialize", params)(b"")[0], {})
        key: str = answer.headers["mcp-session-id"]
        await send(
            b'{"jsonrpc":"2.0","method":"notifications/initialized"}', {"Mcp-Session-Id": key}
        )
        return key

    keys = {"bad batch": await session(b"2025-03-26"), "": await session(b"2025-11-25")}
    for place, shape in BODIES:
        body, headers = PLACES[place](SHAPES[shape])
        if "Mcp-Session-Id" in headers:
            headers["Mcp-Session-Id"] = keys.get(shape, keys[""])
        gaps: list[float] = [0]
        beating = asyncio.create_task(_beat(gaps))
        await asyncio.sleep(0.002)
        peak, begun = _peak(), time.process_time()
        status: int | None = None
        answered.clear()  # by now, whatever the one before has still sent
        sending = asyncio.create_task(send(body, headers))
        # A stream that begins is the answer to those who subscribe.
        await (answered.wait() if place == "subscriptions" else sending)
        if sending.done():
            status = sending.result().status
        sending.cancel()
        await asyncio.sleep(0.002)
        beating.cancel()
        figures = {
            "body": f"{place}: {shape}",
            "status": status,
            "seconds": time.process_time() - begun,
            "gap": max(gaps),
            "bytes": _peak() - peak,
        }
        print(json.dumps(figures), flush=True)


def main() -> None:
    logging.disable(logging.CRITICAL)
    setup_databases(0, interactive=False)
    _site()
    run(_measure())
