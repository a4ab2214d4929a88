"""The JSON Schema of a function's parameters, and the values that reach the function."""

from __future__ import annotations

import enum
import math
import re
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import PurePosixPath
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    NotRequired,
    Optional,
    TypeVar,
)
from uuid import UUID

import pytest
from django.db import models
from pydantic import AnyUrl, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints
from typing_extensions import TypeAliasType, TypedDict

from tests.server.support import accepts, call, describe_tool, input_schema


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Size(enum.IntEnum):
    SMALL = 1
    LARGE = 2


class Status(models.TextChoices):
    OPEN = "open", "Still open"
    SHIPPED = "shipped", "On its way"


class Address(BaseModel):
    """Where it goes."""

    street: Annotated[str, Field(description="With the number")]
    city: str = "Leuven"


class Order(BaseModel):
    lines: list[Line]
    address: Address | None = None


class Line(BaseModel):
    sku: str
    amount: Annotated[int, Field(ge=1)] = 1


class Node(BaseModel):
    value: int
    children: list[Node] = []


@dataclass
class Point:
    x: float
    y: float = 0.0
    tags: list[str] = field(default_factory=list)


class Filters(TypedDict):
    status: Literal["open", "shipped"]
    limit: NotRequired[int]


class Pair(NamedTuple):
    key: str
    value: int = 0


T = TypeVar("T")


class Page(BaseModel, Generic[T]):
    items: list[T]


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)

    day: date
    key: UUID
    price: Decimal
    pair: tuple[int, int]
    color: Color
    names: set[str]


Tree = TypeAliasType("Tree", "dict[str, Tree] | int")
OrderId = NewType("OrderId", int)
Percentage = Annotated[int, Field(ge=0, le=100)]

# annotation, its schema, what a client sends, what the function gets
TYPES = {
    "str": (str, {"type": "string"}, "a", "a"),
    "int": (int, {"type": "integer"}, 3, 3),
    "float": (float, {"type": "number"}, 1.5, 1.5),
    "float of an integer": (float, {"type": "number"}, 2, 2.0),
    "bool": (bool, {"type": "boolean"}, True, True),
    "anything": (Any, {}, {"a": [None]}, {"a": [None]}),
    "bounds": (Percentage, {"type": "integer", "minimum": 0, "maximum": 100}, 100, 100),
    "length and pattern": (
        Annotated[str, StringConstraints(min_length=2, max_length=3, pattern="^[a-z]+$")],
        {"type": "string", "minLength": 2, "maxLength": 3, "pattern": "^[a-z]+$"},
        "abc",
        "abc",
    ),
    "literal": (
        Literal["open", "shipped"],
        {"type": "string", "enum": ["open", "shipped"]},
        "open",
        "open",
    ),
    "one literal": (Literal["open"], {"type": "string", "const": "open"}, "open", "open"),
    "integer literal": (Literal[1, 2], {"type": "integer", "enum": [1, 2]}, 2, 2),
    "enum": (Color, None, "red", Color.RED),
    "integer enum": (Size, None, 2, Size.LARGE),
    "choices": (Status, None, "open", Status.OPEN),
    "date": (date, {"type": "string", "format": "date"}, "2026-07-28", date(2026, 7, 28)),
    "datetime": (
        datetime,
        {"type": "string", "format": "date-time"},
        "2026-07-28T12:00:00Z",
        datetime(2026, 7, 28, 12, tzinfo=UTC),
    ),
    "time": (time, {"type": "string", "format": "time"}, "12:30:00", time(12, 30)),
    "duration": (timedelta, {"type": "string", "format": "duration"}, "P1D", timedelta(1)),
    "uuid": (UUID, {"type": "string", "format": "uuid"}, str(UUID(int=1)), UUID(int=1)),
    "decimal": (Decimal, None, "1.50", Decimal("1.50")),
    "decimal of a number": (Decimal, None, 1.5, Decimal("1.5")),
    "path": (PurePosixPath, {"type": "string", "format": "path"}, "a/b", PurePosixPath("a/b")),
    "url": (AnyUrl, None, "https://example.com/", AnyUrl("https://example.com/")),
    "bytes": (bytes, {"type": "string", "format": "binary"}, "abc", b"abc"),
    "list": (list[int], {"type": "array", "items": {"type": "integer"}}, [1, 2], [1, 2]),
    "plain list": (list, {"type": "array", "items": {}}, [1, "a"], [1, "a"]),
    "sequence": (Sequence[int], {"type": "array", "items": {"type": "integer"}}, [1], [1]),
    "deque": (deque[int], {"type": "array", "items": {"type": "integer"}}, [1], deque([1])),
    "set": (
        set[str],
        {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        ["a", "b"],
        {"a", "b"},
    ),
    "frozen set": (
        frozenset[int],
        {"type": "array", "items": {"type": "integer"}, "uniqueItems": True},
        [1],
        frozenset({1}),
    ),
    "tuple": (
        tuple[int, str],
        {
            "type": "array",
            "prefixItems": [{"type": "integer"}, {"type": "string"}],
            "minItems": 2,
            "maxItems": 2,
        },
        [1, "a"],
        (1, "a"),
    ),
    "long tuple": (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}, [1], (1,)),
    "dict": (
        dict[str, int],
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"a": 1},
        {"a": 1},
    ),
    "integer keys": (dict[int, str], None, {"1": "a"}, {1: "a"}),
    "plain dict": (dict, {"type": "object", "additionalProperties": True}, {"a": 1}, {"a": 1}),
    "mapping": (
        Mapping[str, Any],
        {"type": "object", "additionalProperties": True},
        {"a": 1},
        {"a": 1},
    ),
    "model": (Address, None, {"street": "Kerk 1"}, Address(street="Kerk 1")),
    "nested": (
        Order,
        None,
        {"lines": [{"sku": "x"}], "address": {"street": "Kerk 1"}},
        Order(lines=[Line(sku="x")], address=Address(street="Kerk 1")),
    ),
    "recursive": (
        Node,
        None,
        {"value": 1, "children": [{"value": 2}]},
        Node(value=1, children=[Node(value=2)]),
    ),
    "recursive alias": (Tree, None, {"a": {"b": 1}}, {"a": {"b": 1}}),
    "dataclass": (Point, None, {"x": 1, "tags": ["a"]}, Point(1.0, tags=["a"])),
    "typed dict": (Filters, None, {"status": "open"}, {"status": "open"}),
    "named tuple": (Pair, None, ["a", 1], Pair("a", 1)),
    "generic": (Page[Line], None, {"items": [{"sku": "x"}]}, Page[Line](items=[Line(sku="x")])),
    "new type": (OrderId, {"type": "integer"}, 1, 1),
    "optional": (
        Optional[int],  # noqa: UP045 - the old spelling, too
        {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        None,
        None,
    ),
    "union": (int | list[int], None, [1], [1]),
    "union keeps strings": (date | str, None, "soon", "soon"),
    "optional enum": (Color | None, None, "blue", Color.BLUE),
    "strict model": (
        Strict,
        None,
        {
            "day": "2026-07-28",
            "key": str(UUID(int=1)),
            "price": "1.5",
            "pair": [1, 2],
            "color": "red",
            "names": ["a"],
        },
        Strict(
            day=date(2026, 7, 28),
            key=UUID(int=1),
            price=Decimal("1.5"),
            pair=(1, 2),
            color=Color.RED,
            names={"a"},
        ),
    ),
}


@pytest.mark.parametrize(("annotation", "schema", "sent", "received"), TYPES.values(), ids=TYPES)
def test_a_type_is_described_and_its_values_arrive(annotation, schema, sent, received):
    got = []

    def take(value):
        got.append(value)

    take.__annotations__ = {"value": annotation}
    described = input_schema(take)
    if schema is not None:
        assert described["properties"]["value"] == schema
    assert accepts(described, {"value": sent})
    call(take, value=sent).assert_ok()
    assert got == [received]
    assert type(got[0]) is type(received)


def test_values_outside_of_the_schema_are_refused_by_schema_and_server_alike():
    def take(percent: Percentage, color: Color, pair: tuple[int, str]) -> str:
        return "taken"

    good = {"percent": 5, "color": "red", "pair": [1, "a"]}
    call(take, **good).assert_ok()
    bad = {"percent": [101, -1, "x"], "color": ["green", 1], "pair": [[1], [1, "a", 2], "x"]}
    described = input_schema(take)
    for name, values in bad.items():
        for value in values:
            assert not accepts(described, {**good, name: value})
            call(take, **{**good, name: value}).assert_failed(name)


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
        (int | None, None, None),
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
        (int | None, Field(None, description="How many"), None),
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


@pytest.mark.parametrize("default", [math.inf, -math.inf, math.nan, object()], ids=repr)
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
    assert call(take).text == "None"
    call(take, limit=None).assert_failed("limit")


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


def test_types_used_twice_are_defined_once():
    def take(first: Address, second: list[Address]) -> None: ...

    schema = input_schema(take)
    assert list(schema["$defs"]) == ["Address"]
    assert schema["$defs"]["Address"]["description"] == "Where it goes."
    assert schema["properties"]["first"] == {"$ref": "#/$defs/Address"}


def test_types_of_the_same_name_do_not_collide():
    first = type("Thing", (BaseModel,), {"__annotations__": {"a": int}, "__module__": "one"})
    second = type("Thing", (BaseModel,), {"__annotations__": {"b": str}, "__module__": "two"})

    def take(one, two):
        return f"{one.a}{two.b}"

    take.__annotations__ = {"one": first, "two": second, "return": str}
    assert len(input_schema(take)["$defs"]) == 2
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
