"""A server of one function, asked in either era; in the legacy one by a client made of a script."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest
from django.test import RequestFactory

from django_mcp import MCPServer
from django_mcp.auth import Principal
from django_mcp.conf import Settings, get_settings
from django_mcp.protocol.errors import MCPError
from django_mcp.protocol.lifecycle import Sender, SessionInfo
from django_mcp.protocol.messages import Request
from django_mcp.protocol.versions import BY_NAME
from django_mcp.running.user_code import InlineRunner, run_inline
from django_mcp.server import dispatch
from django_mcp.server.exchange import ALL_TOOLS, Exchange
from django_mcp.server.results import Result
from django_mcp.testing import Answer, MCPClient
from django_mcp.testing.scripted_user import CAPABILITIES, Answers, Asked, ScriptedUser
from tests.wire import schemas

MODERN = "2026-07-28"
LEGACY = ("2025-03-26", "2025-06-18", "2025-11-25")
ASKING = ("2025-06-18", "2025-11-25")
"""Legacy revisions that have elicitation."""


def serve(function: Callable[..., Any], **options: Any) -> MCPServer:
    """Return a server with ``function`` as the tool ``it``."""
    server = MCPServer("asking")
    server.tool(name="it", **options)(function)
    return server


def modern(
    function: Callable[..., Any] | MCPServer,
    answers: Answers | None = None,
    *,
    capabilities: Mapping[str, Any] = CAPABILITIES,
    **options: Any,
) -> MCPClient:
    """Return a client of the modern era; without ``answers`` it stops at the first question."""
    server = function if isinstance(function, MCPServer) else serve(function, **options)
    return MCPClient(server, revision=MODERN, capabilities=capabilities, answers=answers)


def again(client: MCPClient, last: Answer, responses: Any, /, **arguments: Any) -> Answer:
    """Send the call of the tool ``it`` again, with what the server has asked for."""
    state = last.result["requestState"]
    return call(client, responses, state, **arguments)


def call(client: MCPClient, responses: Any, state: Any = None, /, **arguments: Any) -> Answer:
    """Call the tool ``it`` with answers."""
    more = {"inputResponses": responses} | ({} if state is None else {"requestState": state})
    return client.request("tools/call", name="it", arguments=arguments, **more)


def accepted(**content: Any) -> dict[str, Any]:
    """Return the answer of a user who has filled in a form."""
    return {"action": "accept", "content": content}


def requests_of(answer: Answer) -> dict[str, Any]:
    """Return the input requests that are due."""
    assert answer.result["resultType"] == "input_required", answer
    requests: dict[str, Any] = answer.result["inputRequests"]
    return requests


class Client:
    """A legacy client that answers from a script; exceptions in it are raised."""

    can_notify = True
    stopped = False

    def __init__(self, answers: Answers, *, can_answer: bool = True) -> None:
        self.user = ScriptedUser(answers)
        self.can_request = can_answer
        self.told: list[tuple[str, dict[str, Any]]] = []
        self.seconds: list[float] = []

    @property
    def asked(self) -> list[Asked]:
        return self.user.asked

    def notify(self, method: str, params: dict[str, Any]) -> None:
        self.told.append((method, params))

    def request(self, method: str, params: dict[str, Any], seconds: float) -> dict[str, Any]:
        self.seconds.append(seconds)
        return self.user.answer(Asked(method, params))

    async def arequest(self, method: str, params: dict[str, Any], seconds: float) -> dict[str, Any]:
        await asyncio.sleep(0)
        return self.request(method, params, seconds)

    def release(self) -> bool:
        return False


def raising(error: Exception) -> Callable[[Asked], Any]:
    """Return a script that raises."""

    def answer(asked: Asked) -> Any:
        raise error

    return answer


class NoHeaders:
    """An HTTP request without headers of its own."""

    headers: Mapping[str, str] = {}
    wanted_tools = ALL_TOOLS

    def django(self) -> HttpRequest:
        return RequestFactory().post("/mcp")


class Caller(NamedTuple):
    """Nobody in particular."""

    server_name: str
    principal: Principal
    is_public: bool
    settings: Settings
    request: NoHeaders
    can_stream: Callable[[], bool]
    can_be_asked: Callable[[], bool]
    resource: None = None
    checks_scopes: bool = False


def exchange_of(
    server: MCPServer,
    peer: Client,
    method: str,
    params: dict[str, Any],
    *,
    revision: str = "2025-11-25",
    capabilities: Mapping[str, Any] = CAPABILITIES,
) -> Exchange:
    """Return a request in a session of ``revision``."""
    sender = Sender({"name": "test", "version": "1"}, dict(capabilities))
    caller = Caller(
        server.name,
        Principal(AnonymousUser()),
        False,
        get_settings(),
        NoHeaders(),
        lambda: False,
        lambda: peer.can_request,
    )
    session = SessionInfo("1", BY_NAME[revision], sender, True, "debug")
    request = Request(1, method, params)
    exchange = Exchange(request, session.revision, sender, session, caller)
    exchange.make_peer = lambda: peer
    return exchange


def legacy(
    function: Callable[..., Any] | MCPServer,
    client: Client,
    *,
    method: str = "tools/call",
    revision: str = "2025-11-25",
    capabilities: Mapping[str, Any] = CAPABILITIES,
    options: Mapping[str, Any] | None = None,
    more: Mapping[str, Any] | None = None,
    **arguments: Any,
) -> Result | MCPError:
    """Call ``function``, or what is called ``it``, in a session, and return what comes of it."""
    server = function if isinstance(function, MCPServer) else serve(function, **(options or {}))
    params: dict[str, Any] = {"name": "it", "arguments": arguments, **(more or {})}
    if method == "resources/read":
        params = arguments
    exchange = exchange_of(
        server, client, method, params, revision=revision, capabilities=capabilities
    )
    runner = InlineRunner()
    begun = run_inline(dispatch.begin(server, exchange, runner))
    return run_inline(dispatch.finish(begun, server, exchange, runner))


def text_of(outcome: Result | MCPError) -> str:
    """Return the text of a tool's result that is no error."""
    assert isinstance(outcome, Result), outcome
    assert not outcome.body["isError"], outcome
    return str(outcome.body["content"][0]["text"])


def failure_of(outcome: Result | MCPError) -> str:
    """Return the text of a tool's result that is an error."""
    assert isinstance(outcome, Result), outcome
    assert outcome.body["isError"], outcome
    return str(outcome.body["content"][0]["text"])


def request_faults(asked: Asked, revision: str) -> Iterator[str]:
    """Yield what is wrong with a request to the client."""
    request = {"method": asked.method, "params": asked.params}
    if revision != MODERN:
        request |= {"jsonrpc": "2.0", "id": 1}
    definition = schemas.definition_of_method(revision, asked.method)
    assert definition is not None
    open_faults = list(schemas.faults(request, revision, definition))
    # Before 2025-11-25 the definitions leave out the envelope.
    yield from (each for each in open_faults if "'id', 'jsonrpc' were unexpected" not in each)
    if asked.params.get("mode") != "url" and asked.method == "elicitation/create":
        yield from schema_faults(asked.params["requestedSchema"], revision)


def schema_faults(requested: Mapping[str, Any], revision: str) -> Iterator[str]:
    """Yield what is wrong with a requested schema, down to fields that the revision lacks."""
    yield from (
        f"{key} beside properties" for key in {*requested} - {"type", "properties", "required"}
    )
    for described in requested["properties"].values():
        yield from schemas.faults(described, revision, "PrimitiveSchemaDefinition")
