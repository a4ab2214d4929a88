"""Types of every kind as parameters: how they are described, and what arrives."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import PurePosixPath
from typing import (
    Annotated,
    Any,
    Literal,
    Optional,
)
from uuid import UUID

import pytest
from pydantic import AnyUrl, StringConstraints

from tests.server.shapes import (
    Address,
    Color,
    Filters,
    Line,
    Node,
    Order,
    OrderId,
    Page,
    Pair,
    Percentage,
    Point,
    Size,
    Status,
    Strict,
    Tree,
)
from tests.server.support import accepts, call, input_schema

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
