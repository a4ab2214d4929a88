"""Questions to the client's model, and for its roots."""

from __future__ import annotations

from typing import Any

import pytest
from mcp_types import (
    CreateMessageResultWithTools,
    ModelHint,
    ModelPreferences,
    SamplingMessage,
    TextContent,
    Tool,
    ToolResultContent,
    ToolUseContent,
)

from django_mcp import Context, content
from django_mcp.server.questions.sampling import check, messages_of
from django_mcp.testing.scripted_user import CAPABILITIES

from .support import (
    LEGACY,
    MODERN,
    Client,
    failure_of,
    legacy,
    modern,
    request_faults,
    requests_of,
    text_of,
)

pytestmark = pytest.mark.django_db

USE = ToolUseContent(id="1", name="add", input={"a": 1})
RESULT = ToolResultContent(tool_use_id="1", content=[TextContent(text="2")], structured_content=2)
ADD = Tool(name="add", input_schema={"type": "object"}, description="Add", title="Add")


def sampling(*, messages: Any = "Hello", **options: Any) -> Any:
    """Return a tool that asks the model with ``options``."""

    def ask(ctx: Context) -> str:
        return str(ctx.sample(messages, max_tokens=9, **options).content)

    return ask


def test_a_model_is_asked_and_its_words_come_back():
    def ask(ctx: Context) -> str:
        answer = ctx.sample("Name a town", max_tokens=9)
        return f"{answer.content.text} by {answer.model}, {answer.role}: {answer.stop_reason}"

    for revision in LEGACY:
        client = Client(["Rome"])
        outcome = legacy(ask, client, revision=revision)
        assert text_of(outcome) == "Rome by scripted, assistant: endTurn"
        assert client.asked[0].params == {
            "messages": [{"role": "user", "content": {"type": "text", "text": "Name a town"}}],
            "maxTokens": 9,
        }
    modern(ask, answers=["Rome"]).tool("it").assert_contains("Rome by scripted")


EVERYTHING: dict[str, Any] = {
    "messages": [
        "Add 1 and 1",
        SamplingMessage(role="assistant", content=[TextContent(text="I add."), USE]),
        SamplingMessage(role="user", content=[RESULT]),
        content.assistant("It is 2."),
        content.user(content.image(b"x", mime_type="image/png")),
        SamplingMessage(role="user", content=[TextContent(text="a"), TextContent(text="b")]),
    ],
    "system_prompt": "Be brief.",
    "temperature": 0.5,
    "stop_sequences": ["\n"],
    "model_preferences": ModelPreferences(hints=[ModelHint(name="small")], speed_priority=1),
    "tools": [ADD],
    "tool_choice": "auto",
    "include_context": "thisServer",
    "metadata": {"trace": 1},
}
BOTH = {"sampling": {"tools": {}, "context": {}}}


@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
def test_everything_that_can_be_said_is_said(revision: str):
    client: Any
    if revision == MODERN:
        client = modern(sampling(**EVERYTHING), answers=["2"], capabilities=BOTH)
        client.tool("it").assert_ok()
    else:
        client = Client(["2"])
        text_of(legacy(sampling(**EVERYTHING), client, revision=revision, capabilities=BOTH))
    (asked,) = client.asked
    assert set(asked.params) == {
        "messages",
        "maxTokens",
        "systemPrompt",
        "temperature",
        "stopSequences",
        "modelPreferences",
        "tools",
        "toolChoice",
        "includeContext",
        "metadata",
    }
    assert len(asked.params["messages"]) == 6
    wrapped = {"result": 2} if revision != MODERN else 2
    assert asked.params["messages"][2]["content"][0]["structuredContent"] == wrapped
    assert list(request_faults(asked, revision)) == []


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18"])
def test_earlier_revisions_get_what_they_know(revision: str):
    given = {key: value for key, value in EVERYTHING.items() if not key.startswith("tool")}
    given["messages"] = EVERYTHING["messages"][3:]
    client = Client(["2"])
    text_of(legacy(sampling(**given), client, revision=revision))
    (asked,) = client.asked
    texts = [each["content"].get("text") for each in asked.params["messages"]]
    assert texts == ["It is 2.", None, "a", "b"]
    assert asked.params["includeContext"] == "thisServer"
    assert list(request_faults(asked, revision)) == []


def test_a_choice_needs_tools(caplog):
    modern(sampling(tool_choice="none")).tool("it").assert_failed("The tool failed.")
    assert "tool_choice= needs tools=" in caplog.text


@pytest.mark.parametrize("options", [{"tools": [ADD]}, {"tools": [ADD], "tool_choice": "none"}])
def test_tools_go_only_to_who_has_declared_them(options: Any):
    plain = {"sampling": {}}
    answer = modern(sampling(**options), capabilities=plain).tool("it")
    answer.assert_error(-32021, "sampling.tools")
    assert answer.error["data"] == {"requiredCapabilities": {"sampling": {"tools": {}}}}
    failure = failure_of(legacy(sampling(**options), Client([]), capabilities=plain))
    assert "This client cannot be asked (sampling.tools)" in failure
    for revision in ("2025-03-26", "2025-06-18"):
        failure_of(legacy(sampling(**options), Client([]), revision=revision))
    assert requests_of(modern(sampling(**options), capabilities=CAPABILITIES).tool("it"))


def test_who_has_declared_no_sampling_is_not_asked():
    answer = modern(sampling(), capabilities={}).tool("it")
    answer.assert_error(-32021, "sampling")
    assert answer.error["data"] == {"requiredCapabilities": {"sampling": {}}}


@pytest.mark.parametrize(
    ("include", "declared", "sent"),
    [
        ("thisServer", {}, None),
        ("allServers", {"context": {}}, "allServers"),
        ("none", {}, "none"),
        (None, {"context": {}}, None),
    ],
)
def test_context_is_asked_for_only_where_it_is_declared(include: Any, declared: Any, sent: Any):
    """2025-11-25, client/sampling, "Capabilities"."""
    client = Client(["2"])
    function = sampling(include_context=include)
    text_of(legacy(function, client, capabilities={"sampling": declared}))
    assert client.asked[0].params.get("includeContext") == sent


def test_with_tools_the_answer_may_use_them():
    def ask(ctx: Context) -> str:
        answer = ctx.sample("1 + 1?", max_tokens=9, tools=[ADD])
        assert isinstance(answer, CreateMessageResultWithTools)
        return answer.content_as_list[0].name

    use = {"type": "tool_use", "id": "1", "name": "add", "input": {}}
    answer = {"role": "assistant", "model": "m", "content": [use], "stopReason": "toolUse"}
    given = CreateMessageResultWithTools.model_validate(answer)
    assert text_of(legacy(ask, Client([given]))) == "add"


@pytest.mark.parametrize(
    "content", [[{"type": "text", "text": "a"}], {"type": "text", "text": "a"}]
)
def test_one_block_may_come_as_a_list(content: Any):
    answer = {"role": "assistant", "model": "m", "content": content}
    given = CreateMessageResultWithTools.model_validate(answer)
    assert "text='a'" in text_of(legacy(sampling(), Client([given])))


def test_an_answer_of_another_form_fails():
    use = {"role": "assistant", "model": "m", "content": {"type": "image"}}
    failure = failure_of(legacy(sampling(), Raw(use)))
    assert "No answer fits. content.TextContent.type: Input should be 'text'" in failure


class Raw(Client):
    def __init__(self, answer: Any) -> None:
        super().__init__([])
        self._answer = answer

    def request(self, method: str, params: dict[str, Any], seconds: float) -> Any:
        return self._answer


# Rules of tool use


def assistant(*blocks: Any) -> SamplingMessage:
    return SamplingMessage(role="assistant", content=list(blocks))


def user(*blocks: Any) -> SamplingMessage:
    return SamplingMessage(role="user", content=list(blocks))


TEXT = TextContent(text="x")
OTHER = ToolUseContent(id="2", name="add", input={})
OTHER_RESULT = ToolResultContent(tool_use_id="2", content=[])


@pytest.mark.parametrize(
    "messages",
    [
        ["a", "b"],
        [user(TEXT), assistant(TEXT, USE), user(RESULT), assistant(TEXT)],
        [assistant(USE, OTHER), user(OTHER_RESULT, RESULT)],
        [assistant(USE), user(RESULT), assistant(OTHER), user(OTHER_RESULT)],
    ],
)
def test_conversations_that_keep_the_rules(messages: Any):
    check(messages_of(messages))


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        ([assistant(USE), user(RESULT, TEXT)], "put the rest into a message of its own"),
        ([assistant(USE), user(TEXT)], "answered by a result in the very next message.*: 1 is"),
        ([assistant(USE), "a", user(RESULT)], "very next message"),
        ([assistant(USE, OTHER), user(RESULT)], ": 2 is not"),
        ([user(RESULT)], ": 1 is not"),
        ([assistant(USE), user(OTHER_RESULT)], ": 1, 2 is not"),
        ([assistant(USE)], "The tool uses 1 have no results"),
    ],
)
def test_conversations_that_break_them(messages: Any, problem: str):
    """2025-11-25, client/sampling, "Tool Result Messages"."""
    with pytest.raises(ValueError, match=problem):
        check(messages_of(messages))


def test_links_are_nothing_to_ask_a_model_with():
    with pytest.raises(ValueError, match="cannot be asked with resource_link; send it as text"):
        messages_of([content.user(content.resource_link("a://b"))])


# Roots


def roots(ctx: Context) -> str:
    """Name the roots."""
    return " ".join(f"{root.uri}={root.name}" for root in ctx.roots())


async def aroots(ctx: Context) -> str:
    """Name the roots."""
    return " ".join(f"{root.uri}={root.name}" for root in await ctx.aroots())


@pytest.mark.parametrize("function", [roots, aroots])
def test_roots_are_asked_for(function: Any):
    for revision in LEGACY:
        client = Client([["file:///a"]])
        assert text_of(legacy(function, client, revision=revision)) == "file:///a=None"
        assert (client.asked[0].method, client.asked[0].params) == ("roots/list", {})
    answer = modern(function, capabilities={"roots": {}}).tool("it")
    assert requests_of(answer) == {"roots-1": {"method": "roots/list"}}
    modern(function, answers=[["file:///a", "file:///b"]]).tool("it").assert_contains("file:///b")


def test_roots_are_files():
    failure = failure_of(legacy(roots, Client([["https://example.com/"]] * 9)))
    assert "URL scheme should be 'file'" in failure


def test_who_has_no_roots_is_not_asked():
    answer = modern(roots, capabilities={}).tool("it")
    answer.assert_error(-32021, "roots")
    assert answer.error["data"] == {"requiredCapabilities": {"roots": {}}}
    assert "This client cannot be asked (roots)" in failure_of(
        legacy(roots, Client([]), capabilities={})
    )


async def aask(ctx: Context) -> str:
    """Ask the model."""
    return str((await ctx.asample("Hello", max_tokens=5)).content)


def test_asynchronous_code_asks_as_well():
    assert "Rome" in text_of(legacy(aask, Client(["Rome"])))
    modern(aask, answers=["Rome"]).tool("it").assert_contains("Rome")
