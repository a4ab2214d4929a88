"""Results that are larger than may be sent: said so in their place, with their id."""

from __future__ import annotations

from typing import Any

import pytest
from mcp_types import CallToolResult, TextContent

from django_mcp import Context, MCPServer, endpoint
from django_mcp.protocol import messages
from django_mcp.protocol.errors import MCPError
from tests.support.answers import messages_of
from tests.support.caller import Caller
from tests.support.messages import (
    IDS,
    LEGACY,
    META_CAPABILITIES,
    META_LOG_LEVEL,
    META_SERVER,
    MODERN,
    mirrored,
    modern_request,
    request,
)
from tests.support.sites import urlconf

from .test_errors import assert_error

LIMIT = 2_000
server = MCPServer("sizes", version="1")


@server.tool
def text(size: int) -> str:
    """Return so much."""
    return "x" * size


@server.tool
async def structured(size: int) -> list[str]:
    """Return so much, twice: as text and structured."""
    return ["x" * size]


@server.tool
def noted(size: int) -> CallToolResult:
    """Return so much, out of sight of the model."""
    return CallToolResult(content=[TextContent(text="")], _meta={"example.com/much": "x" * size})


@server.tool
def fail(size: int) -> str:
    """Fail with an error that has so much to say."""
    raise MCPError(7001, "of our own", "x" * size)


@server.tool
def ask(ctx: Context, size: int) -> str:
    """Ask so much."""
    return ctx.elicit("x" * size, str)


@server.tool
def tell(ctx: Context, size: int) -> str:
    """Say so much, and return little."""
    ctx.log("emergency", "x" * size)
    ctx.log("emergency", "short")
    return "done"


@server.resource("size://{size}")
def contents(size: int) -> str:
    """Contain so much."""
    return "x" * size


@server.prompt
def prompt(size: int) -> str:
    """Say so much."""
    return "x" * size


@pytest.fixture(autouse=True)
def _sized(settings: Any) -> None:
    settings.ROOT_URLCONF = urlconf(endpoint("mcp", server=server))
    settings.DJANGO_MCP = {
        "AUTH": "django_mcp.auth.public",
        "WORKER_THREADS": 2,
        "MAX_RESULT_BYTES": LIMIT,
    }


@pytest.fixture(params=[MODERN, *LEGACY])
def member(caller: Caller, request: pytest.FixtureRequest) -> Caller:
    """A client of each revision."""
    return caller if request.param == MODERN else caller.opened(request.param)


def call(member: Caller, name: str, size: int, request_id: Any = 1) -> Any:
    return member.call("tools/call", request_id, name=name, arguments={"size": size})


@pytest.mark.parametrize("name", ["text", "structured", "noted"])
def test_a_result_of_a_tool_that_is_too_large_is_one_that_says_so(member, name, caplog):
    assert call(member, name, 100).result["isError"] is False
    for request_id in IDS:
        answer = call(member, name, LIMIT, request_id)
        assert (answer.status, answer.message["id"]) == (200, request_id)
        assert answer.result["isError"] is True
        assert "structuredContent" not in answer.result
        (block,) = answer.result["content"]
        assert f"at most {LIMIT} are sent" in block["text"]
        assert "page by page" in block["text"]
        assert len(answer.body) < LIMIT
    if member.revision == MODERN and member.session is None:
        assert answer.result["resultType"] == "complete"
        assert answer.result["_meta"].keys() == {META_SERVER}
    assert "MAX_RESULT_BYTES" in caplog.text


def test_what_is_just_small_enough_is_sent(member):
    overhead = len(call(member, "text", 0).body)
    exact = call(member, "text", LIMIT - overhead)
    assert len(exact.body) == LIMIT
    assert exact.result["isError"] is False
    assert call(member, "text", LIMIT - overhead + 1).result["isError"] is True


def test_a_resource_or_prompt_that_is_too_large_is_an_error(member):
    for request_id in IDS:
        for answer in (
            member.call("resources/read", request_id, uri=f"size://{LIMIT}"),
            member.call("prompts/get", request_id, name="prompt", arguments={"size": str(LIMIT)}),
        ):
            assert_error(answer, 200, -32603, request_id)
            assert f"at most {LIMIT} are sent" in answer.error["message"]


def test_an_error_that_is_too_large_is_a_small_one(member):
    assert call(member, "fail", 10).error["code"] == 7001
    assert_error(call(member, "fail", LIMIT), 200, -32603, 1)


def test_the_answers_of_a_batch_share_what_one_may_have(caller):
    member = caller.opened("2025-03-26")
    calls = [request("tools/call", n, name="text", arguments={"size": 900}) for n in range(2)]
    answers = member.post(calls).message
    assert [each["result"]["isError"] for each in answers] == [False, False]
    answers = member.post([*calls, request("ping", "p")]).message
    assert [each["result"].get("isError") for each in answers] == [True, True, None]


def test_a_question_that_is_too_large_is_not_asked(caller):
    """2026-07-28, where it is a result; in a session see the tests of delivery."""
    meta = {META_CAPABILITIES: {"elicitation": {"form": {}}}}
    small, large = (
        modern_request("tools/call", 1, meta, name="ask", arguments={"size": size})
        for size in (10, LIMIT)
    )
    asked = caller.post(small, **mirrored(small))
    assert asked.result["resultType"] == "input_required"
    assert_error(caller.post(large, **mirrored(large)), 200, -32603, 1)


def test_a_notification_that_is_too_large_is_dropped_and_the_call_goes_on(member, caplog):
    if member.session is not None:
        answer = call(member, "tell", LIMIT)
    else:
        arguments = {"size": LIMIT}
        sent = modern_request(
            "tools/call", 1, {META_LOG_LEVEL: "info"}, name="tell", arguments=arguments
        )
        answer = member.post(sent, **mirrored(sent))
    *said, last = messages_of(answer.header("Content-Type"), answer.body)
    assert [each["params"]["data"] for each in said] == ["short"]
    assert last["result"]["isError"] is False
    assert "A notification has" in caplog.text


def test_an_answer_is_encoded_once(member, monkeypatch):
    """Its size is that of what is sent, and finding it out costs nothing."""
    encoded: list[Any] = []
    encode = messages.encode
    monkeypatch.setattr(messages, "encode", lambda each: encoded.append(each) or encode(each))
    assert call(member, "text", 10).result["isError"] is False
    assert len(encoded) == 1
