"""Completions: the site's own functions, and those that types imply."""

from __future__ import annotations

import enum
import itertools
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Optional

import pytest
from django.contrib.auth.models import Group, User
from django.db import models
from django.utils.translation import gettext_lazy
from mcp_types import Completion
from pydantic import Field

from django_mcp import Context, MCPServer, RegistrationError, ToolError
from tests.server.support import LEGACY, MODERN, REVISIONS, client_of


class Color(enum.Enum):
    RED = "red"
    ROSE = "rose"
    BLUE = "blue"


class Status(models.TextChoices):
    OPEN = "open", "Still open"
    SHIPPED = "shipped", "On its way"


class Level(models.IntegerChoices):
    LOW = 1
    HIGH = 2


Tone = Literal["calm", "firm"]

TYPES: dict[str, tuple[Any, str, list[str]]] = {
    "literal": (Tone, "", ["calm", "firm"]),
    "beginning": (Tone, "f", ["firm"]),
    "whatever the case": (Tone, "F", ["firm"]),
    "nothing fits": (Tone, "x", []),
    "enum": (Color, "r", ["red", "rose"]),
    "choices": (Status, "", ["open", "shipped"]),
    "integer choices": (Level, "", ["1", "2"]),
    "integer literal": (Literal[1, 12, 2], "1", ["1", "12"]),
    "optional literal": (Tone | None, "c", ["calm"]),
    "old optional": (Optional[Tone], "c", ["calm"]),  # noqa: UP045 - the old spelling, too
    "literal with null": (Literal["calm", None], "", ["calm"]),
    "optional enum": (Color | None, "b", ["blue"]),
    "annotated": (Annotated[Tone, Field(description="How")], "", ["calm", "firm"]),
    "annotated optional": (Annotated[Tone, "x"] | None, "", ["calm", "firm"]),
    "literal of choices": (Literal[Status.OPEN], "", ["open"]),
    "literal of booleans": (Literal[True, "auto"], "", ["true", "auto"]),
    "union of literals": (Literal["a"] | Literal["b"], "", ["a", "b"]),
    "text": (str, "", []),
    "numbers": (int, "", []),
}


def values(answer: Any) -> list[str]:
    return answer.assert_ok().result["completion"]["values"]


@pytest.mark.parametrize(("annotation", "typed", "expected"), TYPES.values(), ids=TYPES)
def test_types_that_count_their_values_are_completed(annotation, typed, expected):
    got = []

    def it(value="x"):
        got.append(value)
        return ""

    it.__annotations__ = {"value": annotation}
    server = MCPServer("test")
    server.prompt(it)
    server.completion("it", "other")(lambda value: [])
    client = client_of(server)
    assert values(client.complete("it", "value", typed)) == expected
    for suggestion in expected:
        client.prompt("it", value=suggestion).assert_ok()
    assert "x" not in got


def test_a_function_of_the_sites_own_goes_before_the_type():
    for first in (True, False):
        server = MCPServer("test")

        def own(value: str) -> list[str]:
            return ["own"]

        def it(tone: Tone) -> str:
            return tone

        if first:
            server.completion("it", "tone")(own)
        server.prompt(it)
        if not first:
            server.completion("it", "tone")(own)
        assert values(client_of(server).complete("it", "tone")) == ["own"]


@pytest.fixture
def server() -> MCPServer:
    server = MCPServer("test")

    @server.prompt
    def visit(country: str, city: str = "") -> str:
        return f"{country} {city}"

    @server.resource("city://{country}/{city}")
    def city(country: str, city: str) -> str:
        return f"{country} {city}"

    @server.resource("city://all")
    def cities() -> str:
        return ""

    return server


def complete(server: MCPServer, function: Any, value: str = "", revision: str = MODERN, **chosen):
    server.completion("visit", "city")(function)
    return client_of(server, revision).complete("visit", "city", value, **chosen)


def test_the_function_gets_what_was_typed(server):
    answer = complete(server, lambda value: [f"{value}!", "other"], "Leu")
    assert answer.result["completion"] == {
        "values": ["Leu!", "other"],
        "total": 2,
        "hasMore": False,
    }


def test_resource_templates_are_completed_by_their_uri(server):
    @server.completion("city://{country}/{city}", "city")
    def cities(value: str, arguments: dict[str, str]) -> list[str]:
        return [f"{arguments.get('country')} {value}"]

    client = client_of(server)
    answer = client.complete("city://{country}/{city}", "city", "L", country="be")
    assert values(answer) == ["be L"]
    client.complete("city://be/{city}", "city").assert_error(-32602, "Nothing to complete")


@pytest.mark.django_db
@pytest.mark.parametrize("revision", REVISIONS)
def test_values_chosen_already_come_along_where_the_revision_has_them(server, revision):
    def cities(value: str, arguments: dict[str, str]) -> list[str]:
        return [f"{key}={text}" for key, text in arguments.items()]

    answer = complete(server, cities, "", revision, country="be")
    assert values(answer) == ([] if revision == LEGACY[0] else ["country=be"])
    assert values(complete(server, cities, "", revision)) == []


def test_the_function_may_take_parameters_in_any_order_and_color(server):
    async def cities(ctx: Context, arguments: dict[str, str], value: str) -> list[str]:
        return [ctx.protocol_version, arguments["country"], value]

    assert values(complete(server, cities, "L", country="be")) == ["2026-07-28", "be", "L"]


class Cities:
    def __call__(self, value: str, ctx: Context) -> list[str]:
        return [value, ctx.protocol_version]


def test_a_callable_object_completes_too(server):
    assert values(complete(server, Cities(), "L")) == ["L", "2026-07-28"]


@pytest.mark.parametrize(
    ("count", "total", "more"),
    [(0, 0, False), (99, 99, False), (100, 100, False), (101, None, True)],
)
def test_no_more_than_a_hundred_are_sent(server, count, total, more):
    completion = complete(server, lambda value: map(str, range(count))).result["completion"]
    assert completion["values"] == [str(number) for number in range(min(count, 100))]
    assert completion.get("total") == total
    assert completion["hasMore"] is more


def test_a_list_without_end_is_not_read_to_its_end(server):
    completion = complete(server, lambda value: itertools.count()).result["completion"]
    assert len(completion["values"]) == 100
    assert completion["hasMore"] is True


def test_a_result_may_be_ready_made_and_is_cut_all_the_same(server):
    made = Completion(values=["a"], total=500, has_more=True)
    assert complete(server, lambda value: made).result["completion"] == {
        "values": ["a"],
        "total": 500,
        "hasMore": True,
    }
    many = Completion(values=[str(number) for number in range(150)], total=150)
    completion = complete(server, lambda value: many).result["completion"]
    assert len(completion["values"]) == 100
    assert (completion["total"], completion["hasMore"]) == (150, True)


def test_values_become_text(server):
    made = [1, Status.OPEN, gettext_lazy("Yes"), 1.5, "text"]
    assert values(complete(server, lambda value: made)) == ["1", "open", "Yes", "1.5", "text"]


def test_generators_and_query_sets_are_read(server, db):
    def some(value: str) -> Iterator[str]:
        yield "a"
        yield "b"

    assert values(complete(server, some)) == ["a", "b"]
    Group.objects.create(name="staff")
    found = complete(server, lambda value: Group.objects.values_list("name", flat=True))
    assert values(found) == ["staff"]


def test_an_argument_that_nobody_completes_has_no_suggestions(server):
    server.completion("visit", "city")(lambda value: ["a"])
    client = client_of(server)
    nothing = {"values": [], "total": 0, "hasMore": False}
    for argument in ("country", "unknown"):
        assert client.complete("visit", argument).result["completion"] == nothing
    assert client.complete("city://all", "x").result["completion"] == nothing


@pytest.mark.django_db
@pytest.mark.parametrize("revision", REVISIONS)
def test_an_unknown_reference_is_refused(server, revision):
    server.completion("visit", "city")(lambda value: ["a"])
    client = client_of(server, revision)
    for reference in ("nobody", "city://{nobody}", "x" * 10_000):
        answer = client.complete(reference, "city").assert_error(-32602, "Nothing to complete")
        assert len(answer.error["message"]) < 300
    for ref in ({"type": "ref/tool", "name": "visit"}, {"type": "ref/prompt"}, {}, None):
        client.request(
            "completion/complete", ref=ref, argument={"name": "city", "value": ""}
        ).assert_error(-32602, "params.ref")
    client.request("completion/complete", ref={"type": "ref/prompt", "name": "visit"}).assert_error(
        -32602, "params.argument"
    )


def test_a_prompt_and_a_template_are_told_apart(server):
    server.completion("visit", "city")(lambda value: ["a"])
    client = client_of(server)
    client.request(
        "completion/complete",
        ref={"type": "ref/resource", "uri": "visit"},
        argument={"name": "city", "value": ""},
    ).assert_error(-32602, "Nothing to complete")


@pytest.mark.parametrize(
    "function",
    [
        lambda: [],
        lambda text: [],
        lambda value, other: [],
        lambda arguments: [],
        lambda *value: [],
        lambda value, /: [],
    ],
    ids=["none", "another name", "one more", "no value", "variable", "positional"],
)
def test_a_completion_takes_value_arguments_and_a_context(function):
    with pytest.raises(RegistrationError):
        MCPServer("test").completion("it", "argument")(function)


def test_errors_of_the_function(server, caplog):
    def broken(value: str) -> list[str]:
        raise KeyError("a secret")

    answer = complete(server, broken).assert_error(-32603, "Internal error")
    assert "secret" not in str(answer.message)
    assert "a secret" in caplog.text

    def told(value: str) -> list[str]:
        raise ToolError("Not now.")

    complete(server, told).assert_error(-32602, "Not now.")


def test_a_completion_knows_the_caller(server):
    def cities(value: str, ctx: Context) -> list[str]:
        return [ctx.user.username]

    server.completion("visit", "city")(cities)
    client = client_of(server).as_user(User(username="bob"))
    assert values(client.complete("visit", "city")) == ["bob"]
