"""The JSON Schema of a function's parameters, and the values that reach the function."""

from __future__ import annotations

import math
import re
from datetime import date
from decimal import Decimal
from typing import (
    Annotated,
    Any,
)

import pytest
from pydantic import BaseModel, BeforeValidator, Field

from tests.server.shapes import Address, Color, Line, Node, Order, Page, Point, Status
from tests.server.support import accepts, call, describe_tool, input_schema


def test_parameters_without_a_default_are_required_and_keep_their_order():
    def search(zeta: str, alpha: int, *, mid: bool, last: int = 1) -> None: ...

    schema = input_schema(search)
    assert schema["required"] == ["zeta", "alpha", "mid"]
    assert list(schema["properties"]) == ["zeta", "alpha", "mid", "last"]
    assert schema["type"] == "object"


def test_a_function_without_parameters_takes_an_empty_object():
    def ping() -> None: ...

    assert input_schema(ping) == {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    ("annotation", "default", "shown"),
    [
        (int, 5, 5),
        (str, "", ""),
        (bool, False, False),
        (Color, Color.RED, "red"),
        (Status, Status.OPEN, "open"),
        (date, date(2026, 7, 28), "2026-07-28"),
        (Decimal, Decimal("1.5"), "1.5"),
        (list[int], [1, 2], [1, 2]),
        (dict[str, int], {"a": 1}, {"a": 1}),
        (Address, Address(street="Kerk 1"), {"street": "Kerk 1", "city": "Leuven"}),
        (Point, Point(1.0), {"x": 1.0, "y": 0.0, "tags": []}),
        (set[str], {"b", "a"}, ["a", "b"]),
        (set[Color], {Color.RED, Color.BLUE}, ["blue", "red"]),
        (int, Field(5, ge=1), 5),
        (Annotated[int, Field(ge=1)], 5, 5),
    ],
)
def test_a_default_is_shown_and_used(annotation, default, shown):
    got = []

    def take(value=default):
        got.append(value)

    take.__annotations__ = {"value": annotation}
    schema = input_schema(take)
    assert "required" not in schema
    assert schema["properties"]["value"]["default"] == shown
    call(take).assert_ok()
    assert got == [default.default if hasattr(default, "annotation") else default]


@pytest.mark.parametrize(
    "default", [math.inf, -math.inf, math.nan, object()], ids=["inf", "-inf", "nan", "object"]
)
def test_a_default_that_json_has_no_word_for_is_used_but_not_shown(default):
    got = []

    def take(value: float = default) -> None:
        got.append(value)

    assert input_schema(take)["properties"]["value"] == {"type": "number"}
    call(take).assert_ok()
    assert got[0] is default or math.isnan(got[0])


def test_a_default_may_be_made_for_each_call():
    got = []

    def take(tags: list[str] = Field(default_factory=list)) -> None:  # noqa: B008
        tags.append("seen")
        got.append(tags)

    assert "required" not in input_schema(take)
    call(take).assert_ok()
    call(take).assert_ok()
    assert got == [["seen"], ["seen"]]


def test_a_mutable_default_is_not_shared_between_calls():
    server_side = []

    def take(tags: list[str] = server_side) -> str:
        tags.append("seen")
        return ",".join(tags)

    call(take).assert_contains("seen")
    assert call(take).text == "seen"
    assert server_side == []


def test_a_default_need_not_match_the_annotation():
    def take(limit: int = None) -> str:  # noqa: RUF013 - people write this
        return repr(limit)

    assert "required" not in input_schema(take)
    assert input_schema(take)["properties"]["limit"] == {"type": "integer"}
    assert call(take).text == call(take, limit=None).text == "None"
    call(take, limit=[]).assert_failed("limit")


def test_descriptions_of_parameters():
    def search(
        query: Annotated[str, Field(description="From Field")],
        limit: int = 5,
        page: int = Field(1, description="From the default"),
        color: Color = Color.RED,
        both: Annotated[int, Field(description="Field wins")] = 0,
        bare: int = 0,
    ) -> None:
        """Search for orders.

        The best come first.

        Args:
            query: Not this one.
            limit (int, optional): How many (at most),
                over two lines.
            page: Nor this one.
            color: What it looks like.
            both: Not me.
            nothing: There is no such parameter.

        Returns:
            Nothing.
        """

    described = describe_tool(search)
    assert described["description"] == (
        "Search for orders.\n\nThe best come first.\n\nReturns:\n    Nothing."
    )
    properties = input_schema(search)["properties"]
    assert {name: each.get("description") for name, each in properties.items()} == {
        "query": "From Field",
        "limit": "How many (at most), over two lines.",
        "page": "From the default",
        "color": "What it looks like.",
        "both": "Field wins",
        "bare": None,
    }


def test_titles_and_examples_are_those_that_somebody_wrote():
    def take(
        amount: Annotated[int, Field(title="Amount", examples=[1, 2])], rate_limit: int
    ) -> None: ...

    properties = input_schema(take)["properties"]
    assert properties["amount"] == {"type": "integer", "title": "Amount", "examples": [1, 2]}
    assert properties["rate_limit"] == {"type": "integer"}


def test_types_are_described_wherever_they_are_used():
    def take(first: Address, second: list[Address]) -> None: ...

    schema = input_schema(take)
    assert "$defs" not in schema
    assert schema["properties"]["first"]["description"] == "Where it goes."
    assert schema["properties"]["second"]["items"] == schema["properties"]["first"]


def test_types_of_the_same_name_do_not_collide():
    first = type("Thing", (BaseModel,), {"__annotations__": {"a": int}, "__module__": "one"})
    second = type("Thing", (BaseModel,), {"__annotations__": {"b": str}, "__module__": "two"})

    def take(one, two):
        return f"{one.a}{two.b}"

    take.__annotations__ = {"one": first, "two": second, "return": str}
    described = input_schema(take)["properties"]
    assert [list(each["properties"]) for each in described.values()] == [["a"], ["b"]]
    assert call(take, one={"a": 1}, two={"b": "x"}).text == "1x"


def test_a_recursive_schema_holds_real_values_to_account():
    def take(node: Node) -> None: ...

    schema = input_schema(take)
    assert accepts(schema, {"node": {"value": 1, "children": [{"value": 2}]}})
    assert not accepts(schema, {"node": {"value": 1, "children": [{"value": "x"}]}})


def test_no_schema_refers_to_the_network():
    def take(order: Order, node: Node, page: Page[Line]) -> None: ...

    assert not re.search(r'"\$ref": "(?!#/)', str(input_schema(take)).replace("'", '"'))


def test_validators_and_extra_schema_of_the_site_apply():
    def upper(value: Any) -> Any:
        if value == "x":
            raise ValueError("x is taken")
        return value.upper()

    Code = Annotated[str, BeforeValidator(upper), Field(json_schema_extra={"format": "code"})]

    def take(code):
        return code

    take.__annotations__ = {"code": Code, "return": str}
    assert input_schema(take)["properties"]["code"] == {"type": "string", "format": "code"}
    assert call(take, code="abc").text == "ABC"
    call(take, code="x").assert_failed("code: Value error, x is taken")


def test_a_deprecated_parameter_is_marked_and_still_works():
    def take(old: Annotated[int, Field(deprecated="Use new")] = 0) -> int:
        return old

    assert input_schema(take)["properties"]["old"]["deprecated"] is True
    assert call(take, old=3).structured == 3


def test_an_explicit_schema_is_shown_as_it_stands_and_the_signature_still_decides():
    given = {"type": "object", "properties": {"n": {"type": "integer", "default": None}}}

    def take(n: int = 0) -> int:
        return n

    described = describe_tool(take, input_schema=given)
    assert described["inputSchema"] == {
        "type": "object",
        "properties": {"n": {"type": "integer", "default": None}},
    }
    assert call(take, n=4).structured == 4
