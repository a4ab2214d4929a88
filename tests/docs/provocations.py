"""What has to happen for each row of the tables of errors."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from typing import Annotated, Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import OperationalError, connection
from django.http import HttpResponse
from django.test import RequestFactory, override_settings
from mcp_types import CLIENT_CAPABILITIES_META_KEY, PROTOCOL_VERSION_META_KEY
from pydantic import Field

from django_mcp import Context, MCPServer, MCPView, ToolError, endpoint
from django_mcp.asgi import mount
from django_mcp.auth import Refusal
from django_mcp.conf import get_settings
from django_mcp.models import PendingRequest, Session
from django_mcp.testing import DECLINE, Answer, MCPClient
from tests.support import answers, asgi, messages, sites, streams

MODERN = "2026-07-28"
ELSEWHERE = "https://elsewhere.example"

server = MCPServer("errors")
going, finished = threading.Event(), threading.Event()


@server.tool
def locate(region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})]) -> str:
    return region


@server.tool
def wait() -> str:
    going.set()
    finished.wait(streams.BOUND)
    return ""


@server.tool
def crash() -> str:
    raise RuntimeError("a secret")


@server.tool
def reject() -> str:
    raise ToolError("told so")


@server.resource("flood://")
@server.tool
def flood() -> str:
    return "x" * get_settings().max_result_bytes


@server.tool(rate_limit="1/h")
def rare() -> str:
    return ""


@server.tool(scopes=["errors"])
def reserved() -> str:
    return ""


@server.tool
def inquire(ctx: Context) -> str:
    return ctx.elicit("Which one?", str)


@server.tool(timeout=0.01)
async def dawdle() -> str:
    await asyncio.sleep(streams.BOUND)
    return ""


@server.prompt
def ask(number: int) -> str:
    raise ToolError("told so")


@server.prompt
def stumble() -> str:
    raise RuntimeError("a secret")


@server.resource("note://{number}")
def note(number: int) -> str:
    return ""


def request(method: str = "tools/list", **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}


def using(**changed: Any) -> Any:
    return override_settings(DJANGO_MCP={**settings.DJANGO_MCP, **changed})


def post(client: MCPClient, body: bytes = b"{}", **headers: str) -> Answer:
    return Answer(client.http("POST", body, **headers))


def without_scopes(client: MCPClient) -> Answer:
    answer = client.as_user(User.objects.create_user("reader"), scopes=["other"]).tool("reserved")
    assert 'scope="errors"' in answer.http["WWW-Authenticate"]
    return answer


def as_another(client: MCPClient) -> Answer:
    client.initialize()
    stranger = client.as_user(User.objects.create_user("stranger"))
    stranger.session_id = client.session_id
    return stranger.request("tools/list")


# What each row needs to happen. Each gets a client of the row's era.


def at_a_foreign_host(client: MCPClient) -> Answer:
    return post(client, Host="elsewhere.example")


def without_https(client: MCPClient) -> Answer:
    with override_settings(SECURE_SSL_REDIRECT=True):
        return Answer(MCPView.as_view(server=server)(RequestFactory().post("/mcp")))


def without_auth(client: MCPClient) -> Answer:
    with using(AUTH=None):
        return Answer(MCPView.as_view(server=server)(RequestFactory().post("/mcp")))


def refused(client: MCPClient) -> Answer:
    answer = post(MCPClient(server, auth=lambda _: Refusal()))
    assert answer.http["WWW-Authenticate"] == f'Bearer realm="{server.name}"'
    return answer


def with_broken_auth(client: MCPClient) -> Answer:
    answers = [post(MCPClient(server, auth=auth)) for auth in (lambda _: 1 / 0, lambda _: "anna")]
    assert len({answer.http.status_code for answer in answers}) == 1
    return answers[0]


def with_auth_out_of_reach(client: MCPClient) -> Answer:
    def out_of_reach(_: Any) -> None:
        raise OperationalError

    return unavailable(post(MCPClient(server, auth=out_of_reach)))


def without_a_thread(client: MCPClient) -> Answer:
    going.clear()
    finished.clear()

    async def two_at_once() -> answers.HTTPAnswer:
        application = mount(None)  # type: ignore[arg-type]
        first = asyncio.ensure_future(asgi.call(application, "wait"))
        try:
            assert await asyncio.to_thread(going.wait, streams.BOUND)
            return await asgi.call(application, "wait")
        finally:
            finished.set()
            await first

    urls = sites.urlconf(endpoint("mcp", server=server))
    with (
        using(WORKER_THREADS=1, THREAD_WAIT_SECONDS=1, STREAM_AFTER_SECONDS=60),
        override_settings(ROOT_URLCONF=urls),
    ):
        response = sites.run(two_at_once())
    return unavailable(
        Answer(HttpResponse(response.body, status=response.status, headers=response.headers))
    )


def unavailable(answer: Answer) -> Answer:
    assert int(answer.http["Retry-After"]) > 0
    return answer


def by_another_method(client: MCPClient) -> Answer:
    answers = [Answer(client.http(method)) for method in ("PUT", "PATCH", "TRACE")]
    assert all(answer.http["Allow"] for answer in answers)
    assert len({answer.http.status_code for answer in answers}) == 1
    return answers[0]


def too_large(client: MCPClient) -> Answer:
    with using(MAX_BODY_BYTES=10):
        return post(client, b" " * 11)


def of_too_many_values(client: MCPClient) -> Answer:
    return post(client, b"[" + b"1," * 100_000 + b"1]")


def of_a_body_that_stops(client: MCPClient) -> Answer:
    with using(BODY_PAUSE_SECONDS=0.1):
        return of_unfinished_bodies(1)


def of_too_much_at_once(client: MCPClient) -> Answer:
    with using(MAX_RECEIVING_BYTES=10, MAX_BODY_BYTES=10):
        return unavailable(of_unfinished_bodies(2))


def of_unfinished_bodies(number: int) -> Answer:
    """Return what the mount answers to the last of some bodies that do not come to their end."""

    async def unfinished() -> answers.HTTPAnswer:
        application = mount(None)  # type: ignore[arg-type]
        sent: list[dict[str, Any]] = []

        async def post_one() -> None:
            pieces = [{"type": "http.request", "body": b" " * 6, "more_body": True}]

            async def receive() -> dict[str, Any]:
                if not pieces:
                    await asyncio.sleep(streams.BOUND)
                return pieces.pop()

            await application(scope, receive, send)

        async def send(event: dict[str, Any]) -> None:
            sent.append(event)

        headers = {"Host": "testserver", "Content-Type": "application/json", "Accept": "*/*"}
        scope = asgi.scope_of("/mcp", headers=headers.items())
        tasks = [asyncio.create_task(post_one()) for _ in range(number)]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        start, body = sent
        given = {name.decode(): value.decode() for name, value in start["headers"]}
        return answers.HTTPAnswer(start["status"], given, body["body"])

    with override_settings(ROOT_URLCONF=sites.urlconf(endpoint("mcp", server=server))):
        response = sites.run(unfinished())
    return Answer(HttpResponse(response.body, status=response.status, headers=response.headers))


def unreadable(client: MCPClient) -> Answer:
    long = b"[" + b"1" * 1001 + b"]"
    bodies = [b"{", b"\xff", b'{"a":1,"a":2}', b"[" * 200 + b"]" * 200, long]
    answers = [post(client, body) for body in bodies]
    assert len({answer.http.status_code for answer in answers}) == 1
    return answers[0]


def no_message(client: MCPClient) -> Answer:
    return client.send({"jsonrpc": "2.0", "id": 7, "method": 5})


def with_the_database_out_of_reach(client: MCPClient) -> Answer:
    client.initialize()

    def out_of_reach(*_: Any) -> None:
        raise OperationalError

    with connection.execute_wrapper(out_of_reach):
        return unavailable(client.send(request()))


def of_an_old_revision(client: MCPClient) -> Answer:
    client.initialize()
    return client.send(request(), Mcp_Protocol_Version="2024-01-01")


def in_a_lost_session(client: MCPClient) -> Answer:
    client.session_id = "unknown"
    answers = [client.send(request()), as_another(MCPClient(server))]
    assert len({json.dumps(answer.error) for answer in answers}) == 1
    return answers[0]


def batches(client: MCPClient) -> Answer:
    client.initialize()
    answers = [client.send([]), client.send([request()] * 101), client.send([request()])]
    assert len({(answer.http.status_code, answer.error["code"]) for answer in answers}) == 1
    return answers[2]


def resuming(client: MCPClient, **headers: str) -> Answer:
    given = {"Accept": "text/event-stream", "Last-Event-ID": "unknown", **headers}
    return Answer(client.http("GET", **given))


def without_a_stream(client: MCPClient) -> Answer:
    client.initialize()
    answers = [Answer(client.http("GET")), resuming(client, Mcp_Protocol_Version=MODERN)]
    return alike(answers)


def after_an_unknown_event(client: MCPClient) -> Answer:
    client.initialize()
    return resuming(client, Mcp_Session_Id=client.session_id or "")


def without_a_session(client: MCPClient, **headers: str) -> Answer:
    return alike([resuming(client, **headers), Answer(client.http("DELETE", **headers))])


def alike(answers: list[Answer]) -> Answer:
    seen = {(each.http.status_code, each.error and each.error["code"]) for each in answers}
    assert len(seen) == 1
    return answers[0]


def with_every_session_busy(client: MCPClient) -> Answer:
    user = User.objects.create_user("busy")
    client = client.as_user(user)
    client.initialize()
    session = Session.objects.get(user=user)
    PendingRequest.objects.create(session=session, server="errors", method="tools/call")
    with using(MAX_SESSIONS_PER_USER=1):
        client.session_id = None
        return unavailable(client.send(request("initialize", **HANDSHAKE)))


HANDSHAKE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "tests", "version": "1"},
}


def modern(
    client: MCPClient, wrong: dict[str, Any], method: str = "tools/list", **params: Any
) -> Answer:
    """Send a modern request with what is wrong with it: headers, and members of ``_meta``."""
    message, headers = messages.modern(method, 7, **params)
    meta = message["params"]["_meta"]
    for name, value in wrong.items():
        if name in meta:
            meta[name] = value
        else:
            headers[name] = value
    return client.send(message, **headers)


def mismatched(client: MCPClient) -> Answer:
    call: Any = {"name": "locate", "arguments": {"region": "north"}}
    wrong = {"Mcp-Method": "tools/list", "Mcp-Name": "crash", "Mcp-Param-Region": "south"}
    answers = [modern(client, {n: value}, "tools/call", **call) for n, value in wrong.items()]
    assert len({str(answer.error and answer.error["code"]) for answer in answers}) == 1
    return answers[0]


def with_another_version(client: MCPClient) -> Answer:
    return modern(client, {"Mcp-Protocol-Version": "2027-01-01"})


def of_the_future(client: MCPClient) -> Answer:
    wrong = {"Mcp-Protocol-Version": "2027-01-01", PROTOCOL_VERSION_META_KEY: "2027-01-01"}
    answer = modern(client, wrong)
    assert answer.error is not None
    assert answer.error["data"].keys() == {"supported", "requested"}
    return answer


def without_capabilities(client: MCPClient) -> Answer:
    return modern(client, {CLIENT_CAPABILITIES_META_KEY: None})


def with_a_foreign_state(client: MCPClient) -> Answer:
    return client.request("tools/call", name="inquire", arguments={}, requestState="foreign")


def without_the_capability(client: MCPClient) -> Answer:
    answer = client.tool("inquire")
    assert answer.error is not None
    assert answer.error["data"] == {"requiredCapabilities": {"elicitation": {"form": {}}}}
    return answer


def without_an_answer(client: MCPClient) -> Answer:
    return MCPClient(server, revision=client.revision.name, answers=[DECLINE]).tool("inquire")


def too_often(client: MCPClient) -> Answer:
    client.tool("rare").assert_ok()
    return client.tool("rare")


def unknown_resource(client: MCPClient) -> Answer:
    answer = client.read("note://first")
    assert answer.error is not None
    assert answer.error["data"] == {"uri": "note://first"}
    return answer


Provocation = Callable[[MCPClient], Answer]

ANSWERED: dict[str, Provocation] = {
    "The method is unknown, or nothing is registered for it": lambda c: c.request("tools/guess"),
    "The parameters do not fit, or a cursor is invalid": lambda c: c.request(
        "tools/list", cursor="?"
    ),
    "The tool or prompt is unknown, or hidden from the caller": lambda c: c.tool("unknown"),
    "The arguments of a prompt do not fit": lambda c: c.prompt("ask", number="one"),
    "A prompt, a resource or a completion raises `ToolError`, or what it needs "
    "[does not exist](#exceptions)": lambda c: c.prompt("ask", number="1"),
    "The resource does not exist, or is hidden from the caller": unknown_resource,
    "The credentials lack [scopes](../how-to/permissions.md#scopes) that this needs": (
        without_scopes
    ),
    "The caller has called tools, or this tool, as often as allowed; `data` has "
    "`retryAfterSeconds`": too_often,
    "A prompt, a resource or a completion fails in another way, or returns what cannot be "
    "sent": lambda c: c.prompt("stumble"),
    "A resource or a prompt has more than `MAX_RESULT_BYTES`": lambda c: c.read("flood://"),
}

NO_THREAD = (
    "No thread is free within `THREAD_WAIT_SECONDS`, or `THREAD_QUEUE` requests wait, at the "
    "mount, and the answer is no stream yet"
)
PROVOCATIONS: dict[str, dict[str, Provocation]] = {
    "## Before the message is read": {
        "The host is not in `ALLOWED_HOSTS`": at_a_foreign_host,
        "The request is not HTTPS, and `SECURE_SSL_REDIRECT` is on": without_https,
        "`Origin` is neither the site's own nor in `ALLOWED_ORIGINS`": lambda c: post(
            c, Origin=ELSEWHERE
        ),
        "`AUTH` is not set": without_auth,
        "`AUTH` refuses; the status is the refusal's, 401 by default": refused,
        "`AUTH` raises an exception, or returns something else": with_broken_auth,
        "`AUTH` cannot reach the database": with_auth_out_of_reach,
        "The HTTP method is none of GET, POST, DELETE and OPTIONS": by_another_method,
        "`Content-Type` is not `application/json`": lambda c: post(
            c, **{"Content-Type": "text/plain"}
        ),
        "`Accept` admits neither JSON nor an event stream": lambda c: post(c, Accept="text/html"),
        "The body is larger than `MAX_BODY_BYTES`": too_large,
        "The body holds more than `MAX_JSON_VALUES` values": of_too_many_values,
        "The body does not come in [time](../how-to/limit-callers.md#what-a-body-may-cost), at the "
        "[mount](../how-to/deploy.md#asgi-with-the-mount)": of_a_body_that_stops,
        "Too much is being sent at the same time, at the mount": of_too_much_at_once,
        "The body is not JSON in UTF-8, has a member twice, is nested too deeply, or has an "
        "integer of more than 1000 digits": unreadable,
        "GET where there is no [stream](../explanation/processes.md#streams): under WSGI without "
        "`Last-Event-ID`, or at revision 2026-07-28": without_a_stream,
        "GET whose `Accept` does not admit an event stream": lambda c: resuming(
            c, Accept="application/json"
        ),
        "GET whose `Last-Event-ID` names no event of the session": after_an_unknown_event,
        "GET or DELETE without `Mcp-Session-Id`": without_a_session,
        "GET or DELETE of a session that is not there": lambda c: without_a_session(
            c, Mcp_Session_Id="unknown"
        ),
    },
    "## Through revision 2025-11-25": ANSWERED
    | {
        "The body is JSON, but not a JSON-RPC message": no_message,
        "`Mcp-Protocol-Version` names no revision that is served": of_an_old_revision,
        "`Mcp-Session-Id` is missing": lambda c: c.send(request()),
        "The session is unknown, expired, ended or somebody else's": in_a_lost_session,
        "The database cannot be reached": with_the_database_out_of_reach,
        "A batch is empty or too long or has something in it without a readable id, or the "
        "session's revision has none": batches,
        "A session cap is reached and every session is busy": with_every_session_busy,
        NO_THREAD: without_a_thread,
    },
    "## At revision 2026-07-28": ANSWERED
    | {
        "The body is JSON, but not a JSON-RPC message": no_message,
        "`Mcp-Protocol-Version` is missing, or differs from `_meta`": with_another_version,
        "`Mcp-Method`, `Mcp-Name` or an `Mcp-Param-` header is missing or differs from the body": (
            mismatched
        ),
        "The revision is not served; `data` has `supported` and `requested`": of_the_future,
        "`_meta` lacks the revision or the capabilities, or they are not valid": (
            without_capabilities
        ),
        "The body is a batch or a response": lambda c: c.send([request()]),
        "`requestState` is not the server's own, belongs to another call or caller, or has "
        "expired": with_a_foreign_state,
        "A question needs a capability that the client has not declared": without_the_capability,
        NO_THREAD: without_a_thread,
    },
}

WITHOUT_ID = {
    "A batch is empty or too long or has something in it without a readable id, or the session's "
    "revision has none",
    "The body is a batch or a response",
}
"""Rows below the first table whose answers carry no id."""

RESULTS: dict[str, Provocation] = {
    "The arguments of a tool do not fit, or are unknown": lambda c: c.tool("locate", area="north"),
    "A tool raises an exception that [is told](#exceptions)": lambda c: c.tool("reject"),
    "A tool fails in another way, or returns what cannot be sent": lambda c: c.tool("crash"),
    "A question has no answer: declined, dismissed, failed, too late": without_an_answer,
    "A tool takes longer than its `timeout`": lambda c: c.tool("dawdle"),
    "A tool returns more than `MAX_RESULT_BYTES`": lambda c: c.tool("flood"),
}
