"""Arguments that mean null, or nothing, and say something else."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

from django_mcp.server.arguments import MAX_NULLS
from tests.server.shapes import Address, Color, Node
from tests.server.support import call


class Filters(BaseModel):
    model_config = ConfigDict(extra="forbid")

    limit: int | None = None
    since: date | None = None
    colors: list[Color] | None = None


class Choice(TypedDict):
    size: int | None


def taking(annotation: Any, default: Any = ...) -> tuple[Any, list[Any]]:
    got: list[Any] = []
    if default is ...:

        def take(value):
            got.append(value)
    else:

        def take(value=default):
            got.append(value)

    take.__annotations__ = {"value": annotation}
    return take, got


MEANT_AS_NULL: list[Any] = [
    int | None,
    float | None,
    bool | None,
    date | None,
    Color | None,
    Literal["a", "b"] | None,
    Literal["a", None],
    list[int] | None,
    dict[str, int] | None,
    Address | None,
    int | list[int] | None,
    Annotated[int, Field(ge=1)] | None,
    Annotated[str, Field(pattern="^[a-z]{6}$")] | None,
    Node | None,
]


@pytest.mark.parametrize("sent", ["", "null"])
@pytest.mark.parametrize("annotation", MEANT_AS_NULL, ids=str)
def test_cursor_and_claude_code_write_null_as_text(annotation, sent):
    """Cursor sends "" for optional inputs, Claude Code "null"."""
    take, got = taking(annotation)
    call(take, value=sent).assert_ok()
    assert got == [None]


@pytest.mark.parametrize("sent", ["", "null"])
@pytest.mark.parametrize("annotation", [str, str | None, str | int | None, date | str, Any])
def test_text_stays_text_where_it_may_be_meant(annotation, sent):
    take, got = taking(annotation)
    call(take, value=sent).assert_ok()
    assert got == [sent]


@pytest.mark.parametrize("sent", ["", "null"])
@pytest.mark.parametrize(
    "annotation",
    [int, date, Color, list[int], Address, Annotated[str, Field(min_length=5)]],
    ids=str,
)
@pytest.mark.parametrize("default", [..., None, 5])
def test_text_is_refused_where_null_is_not_allowed(annotation, sent, default):
    take, got = taking(annotation, default)
    call(take, value=sent).assert_failed("value: ").assert_contains(f"(given: {sent!r})")
    assert got == []


@pytest.mark.parametrize(
    ("annotation", "default"),
    [
        (int, 5),
        (str, "x"),
        (list[int], [1]),
        (Color, Color.RED),
        (Address, Address(street="Kerk 1")),
        (int | str, 5),
        (int, None),
    ],
    ids=str,
)
def test_crewai_sends_null_for_what_it_leaves_out(annotation, default):
    """The adapter of crewai sends null for each parameter that has a default and got no value."""
    take, got = taking(annotation, default)
    call(take, value=None).assert_ok()
    assert got == [default]


def test_null_that_is_allowed_is_null_and_not_the_default():
    take, got = taking(int | None, 5)
    for sent in (None, "", "null"):
        call(take, value=sent).assert_ok()
    assert got == [None, None, None]


def test_null_is_refused_where_there_is_no_default():
    take, got = taking(int)
    call(take, value=None).assert_failed("value: Input should be a valid integer (given: None)")
    assert got == []


def test_it_holds_at_any_depth():
    take, got = taking(dict[str, list[Filters | Choice]])
    sent = {"a": [{"limit": "", "since": "null", "colors": ""}], "b": [{"size": "null"}]}
    call(take, value=sent).assert_ok()
    assert got == [{"a": [Filters()], "b": [{"size": None}]}]


def test_nothing_is_dropped_below_the_arguments_themselves():
    take, got = taking(dict[str, int], {})
    call(take, value={"a": 1, "b": None}).assert_failed("value.b: ")
    assert got == []


def test_a_string_of_json_may_hold_such_text():
    take, got = taking(Filters)
    call(take, value='{"limit": "", "colors": "null"}').assert_ok()
    assert got == [Filters()]


def test_what_else_is_wrong_is_told_and_nothing_is_repaired():
    def take(limit: int | None, day: date, color: Color = Color.RED) -> str:
        return "taken"

    answer = call(take, limit="", day="soon", color=None).assert_failed("day: ")
    answer.assert_contains("limit: Input should be a valid integer")
    call(take, limit="", day="", color=None).assert_failed("day: ").assert_contains("(given: '')")
    assert call(take, limit="", day="2026-07-28", color=None).text == "taken"


def test_null_for_what_is_left_out_is_not_among_the_mistakes():
    """A model that reads of them makes up values."""

    def take(day: date, pages: int = 1, color: Color = Color.RED) -> None:
        """Never called."""

    answer = call(take, day="soon", pages=None, color=None).assert_failed("day: ")
    assert "pages" not in answer.text
    assert "color" not in answer.text
    answer = call(take, day=None, pages="many", color=None).assert_failed("day: ")
    answer.assert_contains("pages: ")
    assert "color" not in answer.text


def test_what_the_client_sent_is_not_changed():
    def take(value: list[dict[str, int | None]]) -> str:
        return str(value)

    sent = [{"a": ""}, {"a": "null", "b": 1}]
    assert call(take, value=sent).text == "[{'a': None}, {'a': None, 'b': 1}]"
    assert sent == [{"a": ""}, {"a": "null", "b": 1}]


def test_it_is_tried_for_so_many_values_only():
    take, got = taking(list[int | None])
    call(take, value=[""] * MAX_NULLS).assert_ok()
    call(take, value=[""] * (MAX_NULLS + 1)).assert_failed("value.0: ")
    assert len(got) == 1
