"""Questions that are arguments for clients whose user cannot be asked."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest
from django import forms
from pydantic import Field

from django_mcp import Ask, Context, Elicit, ElicitURL, MCPServer, RegistrationError
from django_mcp.testing import MCPClient
from tests.server.support import assert_valid_schema, mirrored

from .support import LEGACY, MODERN, Client, failure_of, legacy, modern, requests_of, text_of

pytestmark = pytest.mark.django_db

ABLE: dict[str, Any] = {"elicitation": {}}
UNABLE: list[tuple[str, dict[str, Any]]] = [
    ("2025-03-26", ABLE),  # there is no such question in this revision
    *((revision, {}) for revision in (*LEGACY, MODERN)),
    ("2025-11-25", {"elicitation": {"url": {}}}),
    (MODERN, {"sampling": {}}),
]


def ask_reason(order: int) -> str | Elicit:
    """Ask, but not for small orders."""
    return "small" if order < 10 else Elicit(f"Why refund order {order}?")


def refund(
    order: int,
    amount: Annotated[Decimal, Field(gt=0), Ask("How much?", or_argument=True)],
    reason: Annotated[Literal["small", "late"], Ask(ask_reason, or_argument=True)],
    name: Annotated[str, Ask("Your name?", or_argument=True)] = "nobody",
) -> str:
    """Refund an order.

    Args:
        name: Whoever asks for it.
    """
    return f"{amount}, {reason}, {name}"


async def arefund(
    order: int,
    amount: Annotated[Decimal, Field(gt=0), Ask("How much?", or_argument=True)],
    reason: Annotated[Literal["small", "late"], Ask(ask_reason, or_argument=True)],
    name: Annotated[str, Ask("Your name?", or_argument=True)] = "nobody",
) -> str:
    """Refund an order."""
    return refund(order, amount, reason, name)


BOTH = pytest.mark.parametrize("function", [refund, arefund])
ANSWERS = {"How much?": "5", "Why": "late", "Your": "Ada"}


def schema_of(function: Any, capabilities: Any, revision: str = MODERN) -> dict[str, Any]:
    server = MCPServer("asking")
    server.tool(name="it")(function)
    (tool,) = MCPClient(server, revision=revision, capabilities=capabilities).list_tools()
    schema: dict[str, Any] = tool["inputSchema"]
    assert_valid_schema(schema)
    return schema


@pytest.mark.parametrize(("revision", "capabilities"), UNABLE)
def test_what_cannot_be_asked_for_is_an_argument(revision: str, capabilities: Any):
    """Of pydantic-ai, strands and openai-agents no user can be asked."""
    schema = schema_of(refund, capabilities, revision)
    assert list(schema["properties"]) == ["order", "amount", "reason", "name"]
    # Whether the reason is needed only the function knows.
    assert schema["required"] == ["order", "amount"]
    assert schema["properties"]["amount"]["description"] == "How much?"
    assert schema["properties"]["name"]["description"] == "Whoever asks for it."
    assert schema["properties"]["reason"] == {"enum": ["small", "late"], "type": "string"}
    assert schema["additionalProperties"] is False


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25", MODERN])
def test_what_can_be_asked_for_is_none(revision: str):
    schema = schema_of(refund, ABLE, revision)
    assert list(schema["properties"]) == ["order"]


@BOTH
@pytest.mark.parametrize(("revision", "capabilities"), UNABLE)
def test_the_argument_arrives(function: Any, revision: str, capabilities: Any):
    server = MCPServer("asking")
    server.tool(name="it")(function)
    client = MCPClient(server, revision=revision, capabilities=capabilities)
    client.tool("it", order=12, amount="5", reason="late").assert_contains("5, late, nobody")
    client.tool("it", order=12, amount="5", reason="late", name="A").assert_contains("5, late, A")
    client.tool("it", order=5, amount="5").assert_contains("5, small, nobody")


@BOTH
def test_who_can_be_asked_is_asked(function: Any):
    client = modern(function, answers=ANSWERS)
    client.tool("it", order=12).assert_contains("5, late, Ada")
    assert text_of(legacy(function, Client(ANSWERS), order=12)) == "5, late, Ada"
    assert list(requests_of(modern(function).tool("it", order=12))) == ["amount", "reason", "name"]


def test_who_can_be_asked_does_not_answer_in_the_users_place():
    answer = modern(refund, answers=ANSWERS).tool("it", order=12, amount="500")
    answer.assert_failed("amount: unknown argument (this takes order)")


@BOTH
@pytest.mark.parametrize(("revision", "capabilities"), UNABLE)
def test_what_is_missing_is_told_to_the_model(function: Any, revision: str, capabilities: Any):
    server = MCPServer("asking")
    server.tool(name="it")(function)
    client = MCPClient(server, revision=revision, capabilities=capabilities)
    client.tool("it", order=12).assert_failed("amount: this argument is required.")
    answer = client.tool("it", order=12, amount="5")
    answer.assert_failed("Call again with the argument 'reason': Why refund order 12?")
    answer.assert_contains('"enum": ["small", "late"]')


def test_the_argument_is_validated_as_an_answer_is():
    client = modern(refund, capabilities={})
    client.tool("it", order=12, amount="-5").assert_failed("amount: Input should be greater than 0")
    client.tool("it", order=12, amount="5", reason="x").assert_failed("reason: Input should be")


def test_null_for_what_may_be_left_out_is_not_given():
    client = modern(refund, capabilities={})
    answer = client.tool("it", order=5, amount="5", reason=None, name=None)
    answer.assert_contains("5, small, nobody")


def test_a_legacy_client_that_cannot_be_reached_answers_by_arguments():
    """It has declared that it can be asked, but takes no stream on which to ask."""
    peer = Client([], can_answer=False)
    text = text_of(legacy(refund, peer, capabilities=ABLE, order=12, amount="5", reason="late"))
    assert text == "5, late, nobody"
    assert "amount: this argument is required" in failure_of(
        legacy(refund, Client([], can_answer=False), capabilities=ABLE, order=12)
    )


def test_the_list_is_private_where_it_depends_on_what_the_client_can():
    """A cache would hand to one client what was made for another."""
    server = MCPServer("asking")

    @server.tool
    def plain() -> str:
        return ""

    def scope(capabilities: Any) -> str:
        client = MCPClient(
            server, revision=MODERN, auth="django_mcp.auth.public", capabilities=capabilities
        )
        result = client.request("tools/list").result
        assert len(result["tools"]) == len(server.tools)
        return str(result["cacheScope"])

    assert scope({}) == scope(ABLE) == "public"
    server.tool(refund)
    assert scope({}) == scope(ABLE) == "private"


def test_each_client_gets_its_own_list_at_every_time():
    able, unable = modern(refund), modern(refund, capabilities={})
    unable.server = able.server
    for _ in range(2):
        assert len(able.list_tools()[0]["inputSchema"]["properties"]) == 1
        assert len(unable.list_tools()[0]["inputSchema"]["properties"]) == 4


def test_lenient_arguments_and_schemas_of_the_sites_own(settings: Any):
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "STRICT_ARGUMENTS": False}
    assert "additionalProperties" not in schema_of(refund, {})
    client = modern(refund, capabilities={})
    client.tool("it", order=5, amount="5", more=1).assert_contains("5, small, nobody")
    given = {"type": "object", "properties": {"order": {"type": "integer"}}}
    (tool,) = modern(refund, capabilities={}, input_schema=given).list_tools()
    assert tool["inputSchema"] == given


def test_such_an_argument_may_be_mirrored():
    def go(region: Annotated[str, mirrored("Region"), Ask("Where?", or_argument=True)]) -> str:
        return region

    modern(go, capabilities={}).tool("it", region="north").assert_contains("north")
    modern(go, answers=["south"]).tool("it").assert_contains("south")
    client = modern(go, capabilities={})
    client._mirrored = lambda message: {"Mcp-Method": "tools/call", "Mcp-Name": "it"}
    client.tool("it", region="north").assert_error(-32020, "Mcp-Param-Region is missing")


def ask_twice(order: int, ctx: Context) -> Elicit:
    """Ask, with an answer for those who cannot be asked."""
    return Elicit("Which?", fallback="late")


def test_a_fallback_goes_before_the_argument_that_is_missing():
    def go(order: int, reason: Annotated[str, Ask(ask_twice, or_argument=True)]) -> str:
        return reason

    client = modern(go, capabilities={})
    client.tool("it", order=1).assert_contains("late")
    client.tool("it", order=1, reason="mine").assert_contains("mine")


def test_a_question_may_be_asked_in_few_words():
    def go(sure: Annotated[bool, Ask("Sure?")]) -> str:
        return str(sure)

    client = modern(go, answers=[True])
    client.tool("it").assert_contains("True")
    assert client.asked[0].message == "Sure?"


def test_who_can_be_asked_something_else_is_told_of_no_argument():
    def send() -> ElicitURL:
        return ElicitURL("Pay", "https://a.example/")

    def go(done) -> str:
        return str(done)

    go.__annotations__["done"] = Annotated[str, Ask(send, or_argument=True)]
    able = modern(go, capabilities={"elicitation": {"form": {}}})
    assert able.tool("it").assert_error(-32021, "elicitation.url").error
    assert "argument 'done'" not in str(able.tool("it").error)
    unable = modern(go, capabilities={})
    unable.tool("it").assert_failed("Call again with the argument 'done': Pay https://a.example/")


# The error of a modern client that cannot be asked


def test_the_error_says_what_was_to_be_asked_and_what_can_be_done():
    """Of -32021 pydantic-ai and strands show the model the message, and nothing else."""

    def ask(ctx: Context) -> str:
        return ctx.elicit("Which size?", Literal["S", "M"])

    answer = modern(ask, capabilities={}).tool("it")
    answer.assert_error(-32021, "This client cannot be asked (elicitation.form).")
    for text in ("Which size?", '"enum": ["S", "M"]', "call again with the answer"):
        answer.assert_error(-32021, text)
    assert answer.error is not None
    assert answer.error["data"] == {"requiredCapabilities": {"elicitation": {"form": {}}}}


def test_the_error_says_which_page_the_user_was_to_open():
    def ask(ctx: Context) -> str:
        return ctx.elicit_url("Please pay.", "https://shop.example/pay")

    answer = modern(ask, capabilities={"elicitation": {}}).tool("it")
    answer.assert_error(-32021, "Please pay. https://shop.example/pay")
    answer.assert_error(-32021, "Have the user open the page, and call again")


def test_the_error_stays_short_however_much_there_is_to_choose_from():
    class Choice(forms.Form):
        number = forms.ChoiceField(choices=[(str(n), f"Number {n}") for n in range(10_000)])

    def ask(ctx: Context) -> str:
        return str(ctx.elicit("Which one?", Choice))

    answer = modern(ask, capabilities={}).tool("it").assert_error(-32021, "Which one?")
    assert answer.error is not None
    assert len(answer.error["message"]) < 5_000


# What is refused


def test_only_what_has_a_value_can_be_an_argument():
    def go(sure: Annotated[None, Ask("Sure?", or_argument=True)]) -> str:
        return ""

    with pytest.raises(RegistrationError, match=r"'sure' asks for a confirmation.*Annotate it"):
        MCPServer("refusing").tool(go)


def test_only_what_has_a_schema_can_be_an_argument():
    class Name(forms.Form):
        name = forms.CharField()

    def go(name) -> str:
        return ""

    go.__annotations__["name"] = Annotated[Name, Ask("Who?", or_argument=True)]
    with pytest.raises(RegistrationError, match="cannot be expressed as JSON Schema"):
        MCPServer("refusing").tool(go)


def test_only_tools_have_such_arguments():
    server = MCPServer("refusing")

    def go(topic: Annotated[str, Ask("What?", or_argument=True)]) -> str:
        return topic

    for decorator in (server.prompt, server.resource("note://it")):
        with pytest.raises(RegistrationError, match="or_argument= is for parameters of tools"):
            decorator(go)
