"""Questions in a signature."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from django import forms
from django.contrib.auth.models import Group
from pydantic import BaseModel, Field

from django_mcp import (
    Ask,
    Context,
    Elicit,
    ElicitURL,
    MCPServer,
    RegistrationError,
    Roots,
    Sample,
    ToolError,
)
from django_mcp.testing import DECLINE, MCPClient

from .support import (
    MODERN,
    Client,
    accepted,
    again,
    failure_of,
    legacy,
    modern,
    requests_of,
    text_of,
)

pytestmark = pytest.mark.django_db


class Refund(BaseModel):
    reason: str


ran: list[str] = []


@pytest.fixture(autouse=True)
def _ran() -> None:
    ran.clear()


def ask_refund(order: int, ctx: Context) -> Any:
    """Ask, but not for small orders."""
    ran.append(f"asked about {order}")
    if order < 10:
        return Refund(reason=f"small, says {ctx.client_info['name']}")
    return Elicit(f"Refund order {order}?")


def refund(
    order: int,
    confirm: Annotated[Refund, Ask(ask_refund)],
    name: Annotated[str, Field(min_length=2), Ask(lambda: Elicit("Your name?"))],
    words: Annotated[Any, Ask(lambda order: Sample(f"Excuse {order}", max_tokens=5))],
    places: Annotated[Any, Ask(lambda: Roots())],
    note: str = "none",
) -> str:
    """Refund an order."""
    ran.append("refunded")
    return f"{confirm.reason}, {name}, {words.content.text}, {places[0].uri}, {note}"


async def aask_refund(order: int, ctx: Context) -> Any:
    """Ask."""
    return ask_refund(order, ctx)


async def arefund(
    order: int,
    confirm: Annotated[Refund, Ask(aask_refund)],
    name: Annotated[str, Field(min_length=2), Ask(lambda: Elicit("Your name?"))],
    words: Annotated[Any, Ask(lambda order: Sample(f"Excuse {order}", max_tokens=5))],
    places: Annotated[Any, Ask(lambda: Roots())],
    note: str = "none",
) -> str:
    """Refund an order."""
    return refund(order, confirm, name, words, places, note)


BOTH = pytest.mark.parametrize("function", [refund, arefund])
ANSWERS: dict[str, Any] = {
    "Refund order 12?": {"reason": "late"},
    "Your name?": "Ada",
    "Excuse 12": "sorry",
    "": ["file:///a"],
}
DONE = "late, Ada, sorry, file:///a, none"


@BOTH
def test_what_is_asked_for_is_no_argument(function: Any):
    (tool,) = modern(function).list_tools()
    assert list(tool["inputSchema"]["properties"]) == ["order", "note"]
    answer = modern(function, answers=ANSWERS).tool("it", order=12, name="Eve")
    answer.assert_failed("name: unknown argument (this takes order, note)")


@BOTH
def test_everything_is_asked_for_in_one_round_and_the_function_runs_once(function: Any):
    requests = requests_of(modern(function).tool("it", order=12))
    assert list(requests) == ["confirm", "name", "words", "places"]
    schema = requests["name"]["params"]["requestedSchema"]
    assert schema["properties"] == {"value": {"type": "string", "minLength": 2}}
    ran.clear()
    client = modern(function, answers=ANSWERS)
    client.tool("it", order=12).assert_ok().assert_contains(DONE)
    assert ran.count("refunded") == 1
    assert len(client.asked) == 4


@BOTH
def test_only_what_is_missing_is_asked_again(function: Any):
    client = modern(function)
    first = client.tool("it", order=12)
    answer = again(
        client,
        first,
        {"confirm": accepted(reason="late"), "name": accepted(value="A"), "places": {"roots": []}},
        order=12,
    )
    assert list(requests_of(answer)) == ["name", "words"]
    assert "refunded" not in ran


@BOTH
@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
def test_in_the_legacy_era_one_question_follows_the_other(function: Any, revision: str):
    client = Client(ANSWERS)
    assert text_of(legacy(function, client, revision=revision, order=12)) == DONE
    assert [asked.method.partition("/")[0] for asked in client.asked] == [
        "elicitation",
        "elicitation",
        "sampling",
        "roots",
    ]


@BOTH
def test_nobody_is_asked_for_what_is_known(function: Any):
    requests = requests_of(modern(function).tool("it", order=5))
    assert list(requests) == ["name", "words", "places"]
    answers = {"Your name?": "Ada", "Excuse 5": "sorry", "": ["file:///a"]}
    answer = modern(function, answers=answers).tool("it", order=5)
    answer.assert_contains("small, says django_mcp.testing, Ada, sorry")


@BOTH
def test_who_says_no_stops_it(function: Any):
    answers = {**ANSWERS, "Your name?": DECLINE}
    modern(function, answers=answers).tool("it", order=12).assert_failed("declined: Your name?")
    assert "declined" in failure_of(legacy(function, Client(answers), order=12))
    assert "refunded" not in ran


def test_wrong_arguments_come_first():
    modern(refund, answers=ANSWERS).tool("it", order="many").assert_failed("order: ")
    assert not ran


def test_who_cannot_be_asked_is_told():
    modern(refund, capabilities={}).tool("it", order=12).assert_error(-32021)
    text = failure_of(legacy(refund, Client([]), capabilities={}, order=12))
    assert "Refund order 12?" in text


def ask_which() -> Elicit:
    """Ask."""
    return Elicit("Which?", int, key="mine", fallback=5)


def choose(which: Annotated[Any, Ask(ask_which)]) -> str:
    """Choose."""
    return repr(which)


def test_questions_may_say_more_than_their_parameter():
    assert list(requests_of(modern(choose).tool("it"))) == ["mine"]
    assert modern(choose, capabilities={}).tool("it").text == "5"
    modern(choose, answers=[7]).tool("it").assert_contains("7")


class Name(forms.Form):
    name = forms.CharField()


def go(
    form: Annotated[Name, Ask(lambda: Elicit("Form?"))],
    sure: Annotated[None, Ask(lambda: Elicit("Sure?"))],
    page: Annotated[str, Ask(lambda: ElicitURL("Go", "https://example.com/"))],
) -> str:
    """Go."""
    return f"{form} {sure}"


def test_a_page_and_a_form_and_a_confirmation_may_be_asked_for():
    client = modern(go, answers={"Form?": {"name": "Ada"}, "Sure?": None, "Go": None})
    client.tool("it").assert_contains("{'name': 'Ada'} None")
    schemas = [each.params.get("requestedSchema", {}) for each in client.asked]
    assert [list(each.get("properties", {})) for each in schemas] == [["name"], [], []]


def test_prompts_and_resources_may_declare_questions():
    server = MCPServer("declaring")

    @server.prompt
    def letter(topic: str, tone: Annotated[str, Ask(lambda topic: Elicit(f"{topic}?"))]) -> str:
        """Write a letter."""
        return f"{topic} {tone}"

    @server.resource("letter://{topic}", ttl=5)
    def read(topic: str, tone: Annotated[str, Ask(lambda topic: Elicit(f"{topic}?"))]) -> str:
        """Read a letter."""
        return f"{topic} {tone}"

    client = MCPClient(
        server, revision=MODERN, answers=["warm", "cold"], auth="django_mcp.auth.public"
    )
    (described,) = client.list_prompts()
    assert [argument["name"] for argument in described["arguments"]] == ["topic"]
    client.prompt("letter", topic="Rain").assert_contains("Rain warm")
    answer = client.read("letter://Rain")
    answer.assert_contains("Rain cold")
    # What somebody has been asked for is theirs.
    assert answer.result["cacheScope"] == "private"


def test_the_function_can_still_be_called():
    assert choose(7) == "7"


def ask_the_database() -> Any:
    """Ask."""
    return Elicit(f"Of {Group.objects.count()}?")


async def achoose(which: Annotated[str, Ask(ask_the_database)]) -> str:
    """Choose."""
    return which


def test_synchronous_functions_of_an_asynchronous_tool_may_use_the_database():
    Group.objects.create(name="only")
    client = modern(achoose, answers=["x"])
    client.tool("it").assert_contains("x")
    assert client.asked[0].message == "Of 1?"


def find(order: int) -> Any:
    """Ask."""
    raise ToolError(f"There is no order {order}.")


def cancel(order: int, sure: Annotated[bool, Ask(find)]) -> str:
    """Cancel an order."""
    return "done"


def test_errors_of_what_asks_are_those_of_the_tool():
    modern(cancel).tool("it", order=3).assert_failed("There is no order 3.")


# What is refused


def takes_more(order: int, colour: str) -> Any:
    """Ask."""


async def asks_later() -> Any:
    """Ask."""


def register(annotation: Any) -> None:
    def it(order: int, sure: Any) -> str:
        """Do it."""
        return ""

    it.__annotations__["sure"] = annotation
    MCPServer("refusing").tool(it)


@pytest.mark.parametrize(
    ("annotation", "problem"),
    [
        (Annotated[bool, Ask(takes_more)], r"takes 'colour', which is no argument.*\(order\)"),
        (Annotated[bool, Ask(asks_later)], "asks_later is asynchronous, so the function"),
        (Annotated[bool, Ask(5)], "5 is not a function"),  # type: ignore[arg-type]
        (Annotated[bool, Ask], r"`Ask\(ask_refund\)`"),
    ],
)
def test_what_cannot_be_asked_for_is_refused_at_registration(annotation: Any, problem: str):
    with pytest.raises(RegistrationError, match=problem):
        register(annotation)


def test_a_listing_asks_for_nothing():
    def listed(sure: Annotated[bool, Ask(lambda: Elicit("Sure?"))]) -> list[Any]:
        return []

    with pytest.raises(RegistrationError, match="a function that lists resources takes"):
        MCPServer("refusing").resource("note://it", list=listed)(lambda: "")


def ask_in(order: int, colour: str = "red") -> Any:
    """Ask."""
    return Elicit(f"{order} {colour}?")


def paint(order: int, sure: Annotated[bool, Ask(ask_in)]) -> str:
    """Paint."""
    return str(sure)


def test_one_parameter_of_what_asks_may_have_a_default():
    client = modern(paint, answers=[True])
    client.tool("it", order=3).assert_contains("True")
    assert client.asked[0].message == "3 red?"
