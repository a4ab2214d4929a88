"""JSON arguments on their way into a function: what is accepted, and what a model reads if not."""

from __future__ import annotations

import datetime as dt
import json
import uuid
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from django.conf import settings
from django.test import override_settings
from pydantic import BaseModel, ConfigDict, Field, field_validator

from tests.server.support import call, client_of, input_schema, serve_tool


class Line(BaseModel):
    sku: str
    amount: int = 1

    @field_validator("sku")
    @classmethod
    def known(cls, sku: str) -> str:
        if sku.startswith("?"):
            raise ValueError(f"no such article: {sku}")
        return sku


class Exact(BaseModel):
    model_config = ConfigDict(extra="forbid")

    sku: str


@dataclass
class Point:
    x: int
    y: int


def order(lines: list[Line], points: dict[str, Point] | None = None) -> str:
    return json.dumps([line.amount for line in lines])


def amounts(amounts: list[int], limit: int = 5) -> str:
    return json.dumps([amounts, limit])


# Models send numbers as strings, and the like. What can mean one thing only is accepted; what would
# lose something is not.
COERCIONS: list[tuple[Any, Any, Any]] = [
    (int, "5", 5),
    (int, " 5 ", 5),
    (int, "-5", -5),
    (int, 1.0, 1),
    (int, "1.0", 1),
    (int, True, 1),
    (int, 10**30, 10**30),
    (float, "1.5", 1.5),
    (float, 1, 1.0),
    (float, "1e3", 1000.0),
    (bool, "true", True),
    (bool, "False", False),
    (bool, "yes", True),
    (bool, "off", False),
    (bool, 1, True),
    (bool, 0, False),
    (bool, "0", False),
    (str, "5", "5"),
    (str, "", ""),
    (str, "[1]", "[1]"),
    (str, "{}", "{}"),
    (str, "null", "null"),
    (Literal[1, 2], "2", 2),
    (Literal[True], "true", True),
    (int | None, "5", 5),
    (int | str, "5", "5"),
    (str | int, 5, 5),
    (bool | int, 1, 1),
    (list[int], ["1", 2.0], [1, 2]),
    (dict[str, int], {"a": "1"}, {"a": 1}),
]
REFUSALS: list[tuple[Any, Any, str]] = [
    (int, "five", "Input should be a valid integer"),
    (int, 1.5, "Input should be a valid integer, got a number with a fractional part"),
    (int, "1.5", "Input should be a valid integer"),
    (int, "", "Input should be a valid integer"),
    (int, None, "Input should be a valid integer"),
    (int, [5], "Input should be a valid integer"),
    (float, "NaN", "Input should be a finite number"),
    (float, "inf", "Input should be a finite number"),
    (list[float], ["Infinity"], "Input should be a finite number"),
    (bool, "maybe", "Input should be a valid boolean"),
    (bool, 2, "Input should be a valid boolean"),
    (str, 5, "Input should be a valid string"),
    (str, True, "Input should be a valid string"),
    (str, None, "Input should be a valid string"),
    (str, ["a"], "Input should be a valid string"),
    (list[int], "1, 2", "Input should be a valid array"),
    (list[int], 1, "Input should be a valid array"),
    (list[int], {"a": 1}, "Input should be a valid array"),
    (dict[str, int], [1], "Input should be an object"),
    (Line, "x", "Input should be an object"),
    (Literal["a", "b"], "c", "Input should be 'a' or 'b'"),
    (Annotated[str, Field(max_length=3)], "[1, 2]", "String should have at most 3 characters"),
    (Annotated[str, Field(max_length=3)], "12345", "String should have at most 3 characters"),
]


def taking(annotation: Any) -> tuple[Any, list[Any]]:
    got: list[Any] = []

    def take(value):
        got.append(value)

    take.__annotations__ = {"value": annotation}
    return take, got


@pytest.mark.parametrize(("annotation", "sent", "received"), COERCIONS, ids=repr)
def test_what_can_mean_one_thing_only_is_accepted(annotation, sent, received):
    take, got = taking(annotation)
    call(take, value=sent).assert_ok()
    assert got == [received]
    assert type(got[0]) is type(received)


@pytest.mark.parametrize(("annotation", "sent", "expected"), REFUSALS, ids=repr)
def test_what_does_not_fit_is_refused_with_name_and_expectation(annotation, sent, expected):
    take, got = taking(annotation)
    answer = call(take, value=sent)
    answer.assert_failed("Invalid arguments. value")
    answer.assert_contains(expected)
    answer.assert_contains("(given: ")
    assert got == []


def test_strict_types_stay_strict():
    take, got = taking(Annotated[int, Field(strict=True)])
    call(take, value="5").assert_failed("value: Input should be a valid integer")
    call(take, value=5).assert_ok()
    assert got == [5]


@pytest.mark.parametrize(
    ("annotation", "sent", "received"),
    [
        (list[int], "[1, 2]", [1, 2]),
        (list[int], "  [1, 2]", [1, 2]),
        (list[int] | None, "[1]", [1]),
        (set[int], "[1]", {1}),
        (tuple[int, str], '[1, "a"]', (1, "a")),
        (dict[str, int], '{"a": 1}', {"a": 1}),
        (Line, '{"sku": "a", "amount": 2}', Line(sku="a", amount=2)),
        (Line | None, '{"sku": "a"}', Line(sku="a")),
        (Point, '{"x": 1, "y": 2}', Point(1, 2)),
        (list[Line], '[{"sku": "a"}]', [Line(sku="a")]),
        (list[int] | dict[str, int], '{"a": 1}', {"a": 1}),
        (list[str], '["[1]"]', ["[1]"]),
        (str | list[str], '["a"]', '["a"]'),
        (Any, "[1]", "[1]"),
    ],
    ids=repr,
)
def test_lists_and_objects_may_come_as_the_string_of_their_json(annotation, sent, received):
    take, got = taking(annotation)
    call(take, value=sent).assert_ok()
    assert got == [received]


@pytest.mark.parametrize(
    "sent", ["[1, 2", "[", "[NaN]", "{'a': 1}", "[" * 5000, '{"a": 1}', "[]]"], ids=lambda s: s[:9]
)
def test_a_string_that_is_no_such_json_is_refused_as_a_string(sent):
    call(amounts, amounts=sent).assert_failed("amounts: Input should be a valid array")


def test_the_error_inside_of_a_string_of_json_is_told():
    call(amounts, amounts='[1, "x"]').assert_failed("amounts.1: Input should be a valid integer")
    call(amounts, amounts="[1]", limit="[x").assert_failed("limit: Input should be")
    assert "amounts" not in call(amounts, amounts="[1]", limit="[x").text


def test_each_problem_is_told_with_its_place():
    answer = call(
        order,
        lines=[{"sku": "a"}, {"amount": 1}, {"sku": 5, "amount": "many"}, "x", {"sku": "?x"}],
        points={"home": {"x": 1}, "work": {"x": "far", "y": 0}},
    )
    answer.assert_failed()
    for problem in (
        "lines.1.sku: this argument is required.",
        "lines.2.sku: Input should be a valid string (given: 5).",
        "lines.2.amount: Input should be a valid integer",
        "lines.3: Input should be an object (given: 'x').",
        "lines.4.sku: Value error, no such article: ?x (given: '?x').",
        "points.home.y: this argument is required.",
        "points.work.x: Input should be a valid integer",
    ):
        answer.assert_contains(problem)


def test_missing_arguments_are_named():
    answer = call(order)
    assert answer.text == "Invalid arguments. lines: this argument is required."


def test_arguments_may_be_left_out_or_null():
    client = client_of(serve_tool(lambda: "done"))
    for arguments in ({}, None):
        assert client.request("tools/call", name="it", arguments=arguments).text == "done"
    assert client.request("tools/call", name="it").text == "done"


@pytest.mark.parametrize("arguments", [[], "{}", 5, True], ids=repr)
def test_arguments_that_are_no_object_are_a_protocol_error(arguments):
    client = client_of(serve_tool(lambda: "done"))
    client.request("tools/call", name="it", arguments=arguments).assert_error(
        -32602, "params.arguments"
    )


def test_an_unknown_argument_is_refused_with_those_that_are_known():
    answer = call(amounts, amounts=[1], limits=3, other=None)
    answer.assert_failed("limits: unknown argument (this takes amounts, limit).")
    answer.assert_contains("other: unknown argument")


def test_an_unknown_argument_of_a_function_that_takes_none():
    def ping() -> str:
        return "pong"

    call(ping, verbose=True).assert_failed("verbose: unknown argument (this takes no arguments).")


def test_unknown_and_wrong_arguments_are_told_together():
    answer = call(amounts, ammounts=[1], limit="x").assert_failed()
    for problem in ("ammounts: unknown", "amounts: this argument is required", "limit: Input"):
        answer.assert_contains(problem)


@pytest.fixture
def lenient():
    with override_settings(DJANGO_MCP={**settings.DJANGO_MCP, "STRICT_ARGUMENTS": False}):
        yield


def test_strict_is_the_default_and_the_schema_says_so():
    assert input_schema(amounts)["additionalProperties"] is False


@pytest.mark.usefixtures("lenient")
def test_lenient_ignores_what_it_does_not_know_and_the_schema_says_so():
    assert "additionalProperties" not in input_schema(amounts)
    assert call(amounts, amounts=[1], reason="because").text == "[[1], 5]"
    call(amounts, amount=[1]).assert_failed("amounts: this argument is required")


def test_strictness_is_read_for_each_request():
    client = client_of(serve_tool(amounts))
    client.tool("it", amounts=[1], reason="x").assert_failed("reason")
    with override_settings(DJANGO_MCP={**settings.DJANGO_MCP, "STRICT_ARGUMENTS": False}):
        client.tool("it", amounts=[1], reason="x").assert_ok()
        assert "additionalProperties" not in client.list_tools()[0]["inputSchema"]
    client.tool("it", amounts=[1], reason="x").assert_failed("reason")
    assert client.list_tools()[0]["inputSchema"]["additionalProperties"] is False


def test_nested_models_decide_for_themselves():
    def take(line: Line, exact: Exact | None = None) -> str:
        return line.sku

    call(take, line={"sku": "a", "more": 1}).assert_ok()
    call(take, line={"sku": "a"}, exact={"sku": "a", "more": 1}).assert_failed(
        "exact.more: Extra inputs are not permitted"
    )
    properties = input_schema(take)["properties"]
    assert properties["exact"]["additionalProperties"] is False
    assert "additionalProperties" not in properties["line"]


LARGE = 90_000


@pytest.mark.parametrize(
    "arguments",
    [
        {"amounts": "x" * LARGE},
        {"amounts": ["x" * LARGE]},
        {"amounts": ["x"] * LARGE},
        {"amounts": [1], "limit": [1] * LARGE},
        {"amounts": {"x" * LARGE: 1}},
        {"x" * LARGE: 1},
        {f"x{number}": 1 for number in range(5000)},
        {"amounts": "[" + ",".join(["null"] * LARGE) + "]"},
    ],
    ids=range(8),
)
def test_messages_stay_short_however_large_the_input(arguments):
    answer = call(amounts, **arguments).assert_failed("Invalid arguments.")
    assert len(answer.text) < 3000


def test_a_huge_key_or_message_of_a_validator_is_cut_too():
    answer = call(order, lines=[], points={"k" * LARGE: 1}).assert_failed()
    assert len(answer.text) < 1000
    answer = call(order, lines=[{"sku": "?" + "x" * LARGE}]).assert_failed("no such article")
    assert len(answer.text) < 2000


def test_the_number_of_problems_left_out_is_told():
    answer = call(amounts, amounts=["x"] * 25).assert_failed("amounts.9: ")
    answer.assert_contains("And 15 more like these.")
    assert "amounts.10" not in answer.text


def test_a_bug_in_a_validator_is_a_bug(caplog):
    def broken(value: Any) -> Any:
        raise LookupError("a secret")

    class Broken(BaseModel):
        sku: str
        _check = field_validator("sku")(staticmethod(broken))

    take, _ = taking(Broken)
    answer = call(take, value={"sku": "a"})
    answer.assert_failed("The tool failed.")
    assert "secret" not in str(answer.message)
    assert "a secret" in caplog.text


def test_of_very_many_unknown_arguments_few_are_put_into_words():
    answer = call(amounts, amounts=[1], **{f"x{number}": 1 for number in range(50_000)})
    answer.assert_failed("x9: unknown argument").assert_contains("And 49990 more like these.")


def test_of_many_values_the_first_problem_of_each_argument_is_told():
    def order(lines: list[Line], points: dict[str, Point], limit: int = 1) -> str:
        return "done"

    lines = [{"sku": "a"}] * 600 + [{"sku": 1}] * 600
    points = {f"p{number}": {"x": 1, "y": 1} for number in range(600)} | {"q": {}, "r": {}}
    answer = call(order, lines=lines, points=points, limit="x").assert_failed()
    assert answer.text == (
        "Invalid arguments. lines.600.sku: Input should be a valid string (given: 1). "
        "points.q.x: this argument is required. points.q.y: this argument is required. "
        "limit: Input should be a valid integer, unable to parse string as an integer "
        "(given: 'x')."
    )
    assert call(order, lines=lines[:600], points={"p": {"x": 1, "y": 1}}).text == "done"


def test_a_large_list_may_come_as_the_string_of_its_json():
    take, got = taking(list[int])
    call(take, value=json.dumps(list(range(50_000)))).assert_ok()
    assert got == [list(range(50_000))]
    for text in ("[1" + ",1" * 150_000 + "]", "[" + " " * 1_000_000 + "1]"):
        call(take, value=text).assert_failed("value: Input should be a valid array")


class Not(BaseModel):
    negated: Condition


class All(BaseModel):
    conditions: list[Condition]


class Any_(BaseModel):
    conditions: list[Condition]


Condition = Not | All | Any_ | int


def test_a_type_that_can_be_read_in_too_many_ways_says_so():
    def find(condition: Condition) -> str:
        return type(condition).__name__

    condition: Any = "none"
    for _ in range(50):
        condition = {"conditions": [condition]}
    answer = call(find, condition=condition)
    answer.assert_failed()
    assert answer.text.startswith(
        "Invalid arguments. It can be read in too many ways to be checked."
    )
    assert call(find, condition={"negated": {"conditions": [1]}}).text == "Not"


class Dated(BaseModel):
    model_config = ConfigDict(strict=True)

    day: dt.date
    ids: set[uuid.UUID] = set()
    next: Dated | None = None


KEY = "6b8ef5a0-0000-4000-8000-000000000000"


@pytest.mark.parametrize("others", [[1], ["1"] * 2_000], ids=len)
@pytest.mark.parametrize("limit", [5, ""])
@pytest.mark.parametrize(
    ("annotation", "sent", "received"),
    [
        (str | dt.date, "2020-01-01", "2020-01-01"),
        (int | str, "5", "5"),
        (Dated, {"day": "2020-01-01"}, Dated(day=dt.date(2020, 1, 1))),
        (
            list[Dated],
            [{"day": "2020-01-01", "next": {"day": "2020-01-02", "ids": [KEY]}}],
            [
                Dated(
                    day=dt.date(2020, 1, 1),
                    next=Dated(day=dt.date(2020, 1, 2), ids={uuid.UUID(KEY)}),
                )
            ],
        ),
    ],
    ids=repr,
)
def test_an_argument_becomes_the_same_beside_whatever_others(
    annotation, sent, received, others, limit
):
    got: list[Any] = []

    def take(value: Any, others: list[int], limit: int | None = None) -> str:
        got.append(value)
        return "taken"

    take.__annotations__["value"] = annotation

    call(take, value=sent, others=others, limit=limit).assert_ok()
    assert got == [received]
    assert repr(got) == repr([received])
