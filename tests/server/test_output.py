"""What tools return: structured content and its schema, revision by revision, or plain content."""

from __future__ import annotations

import enum
import json
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, TypeVar
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.db import models
from pydantic import AnyUrl, BaseModel, ConfigDict, Field, JsonValue, RootModel, computed_field
from typing_extensions import TypeAliasType, TypedDict

from django_mcp.server.structured_output import wrap_schema
from tests.server.support import (
    LEGACY,
    accepts,
    assert_valid_schema,
    client_of,
    describe_tool,
    returning,
    serve_tool,
)


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Status(models.TextChoices):
    OPEN = "open", "Still open"


class Person(BaseModel):
    """Somebody."""

    id: int | None
    username: str


class Aliased(BaseModel):
    model_config = ConfigDict(populate_by_name=True)

    order_id: Annotated[int, Field(alias="orderId")]


class Computed(BaseModel):
    price: Decimal
    hidden: Annotated[int, Field(exclude=True)] = 1

    @computed_field
    def double(self) -> Decimal:
        return self.price * 2


class Defaulted(BaseModel):
    home: AnyUrl = "https://example.com/"
    price: Decimal = 0
    color: Color = "red"


class Node(BaseModel):
    value: int
    children: list[Node] = []


@dataclass
class Point:
    x: int
    y: int = 0


class Filters(TypedDict):
    status: Literal["open"]


class Pair(NamedTuple):
    key: str
    value: int


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    name: str


class Puppy(Dog):
    age: int = 0


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"


T = TypeVar("T")


class Page(BaseModel, Generic[T]):
    items: list[T]


class Numbers(RootModel[list[int]]):
    pass


Anything = TypeAliasType("Anything", "dict[str, Anything] | int")
OrderId = NewType("OrderId", int)

BOB = {"id": 1, "username": "bob"}
NOON = datetime(2026, 7, 28, 12, tzinfo=UTC)

# annotation, what the function returns, the structured content
STRUCTURED: dict[str, tuple[Any, Any, Any]] = {
    "model": (Person, Person(**BOB), BOB),
    "dict as model": (Person, BOB, BOB),
    "Django model as model": (Person, User(id=1, username="bob"), BOB),
    "any object as model": (Person, SimpleNamespace(**BOB), BOB),
    "list of Django models": (list[Person], [User(id=1, username="bob")], [BOB]),
    "aliased model": (Aliased, Aliased(order_id=1), {"orderId": 1}),
    "computed field": (Computed, Computed(price="1.50"), {"price": "1.50", "double": "3.00"}),
    "defaults that were never validated": (
        Defaulted,
        Defaulted(),
        {"home": "https://example.com/", "price": "0", "color": "red"},
    ),
    "recursive model": (
        Node,
        Node(value=1, children=[Node(value=2)]),
        {"value": 1, "children": [{"value": 2, "children": []}]},
    ),
    "subclass": (Dog, Puppy(name="Rex", age=1), {"kind": "dog", "name": "Rex"}),
    "generic": (Page[Dog], Page[Dog](items=[]), {"items": []}),
    "root model": (Numbers, Numbers([1, 2]), [1, 2]),
    "dataclass": (Point, Point(1), {"x": 1, "y": 0}),
    "dict as dataclass": (Point, {"x": 1}, {"x": 1, "y": 0}),
    "typed dict": (Filters, {"status": "open"}, {"status": "open"}),
    "named tuple": (Pair, Pair("a", 1), ["a", 1]),
    "dict": (dict, {"a": [1, None]}, {"a": [1, None]}),
    "dict of anything": (
        dict[str, Any],
        {"at": NOON, "price": Decimal("1.5"), "tags": {"a"}, "who": Person(**BOB)},
        {"at": "2026-07-28T12:00:00Z", "price": "1.5", "tags": ["a"], "who": BOB},
    ),
    "integer keys": (dict[int, str], {1: "a"}, {"1": "a"}),
    "mapping": (Mapping[str, int], {"a": 1}, {"a": 1}),
    "list": (list[int], [1, 2], [1, 2]),
    "empty list": (list[Person], [], []),
    "tuple as list": (list[int], (1, 2), [1, 2]),
    "plain list": (list, [1, "a"], [1, "a"]),
    "sequence": (Sequence[Person], [BOB], [BOB]),
    "tuple": (tuple[int, str], (1, "a"), [1, "a"]),
    "set": (set[int], {1}, [1]),
    "frozen set": (frozenset[str], frozenset("a"), ["a"]),
    "int": (int, 5, 5),
    "huge int": (int, 2**80, 2**80),
    "float": (float, 1.5, 1.5),
    "bool": (bool, False, False),
    "decimal": (Decimal, Decimal("1.50"), "1.50"),
    "date": (date, date(2026, 7, 28), "2026-07-28"),
    "datetime": (datetime, NOON, "2026-07-28T12:00:00Z"),
    "duration": (timedelta, timedelta(hours=1), "PT1H"),
    "uuid": (UUID, UUID(int=1), str(UUID(int=1))),
    "enum": (Color, Color.RED, "red"),
    "choices": (Status, Status.OPEN, "open"),
    "value of choices": (Status, "open", "open"),
    "literal": (Literal["a", "b"], "a", "a"),
    "new type": (OrderId, 5, 5),
    "annotated": (Annotated[int, Field(ge=1)], 5, 5),
    "optional": (Person | None, Person(**BOB), BOB),
    "optional without a value": (Person | None, None, None),
    "union": (Dog | Cat, Cat(), {"kind": "cat"}),
    "any JSON": (JsonValue, {"a": [None]}, {"a": [None]}),
    "text or number": (int | str, "a", "a"),
    "text or model": (str | Person, Person(**BOB), BOB),
    "text, number or nothing": (str | int | None, None, None),
    "recursive alias": (Anything, {"a": {"b": 1}}, {"a": {"b": 1}}),
    "generator": (Generator[int, None, None], (n for n in range(3)), [0, 1, 2]),
    "iterator": (Iterator[Person], iter([BOB]), [BOB]),
    "iterable": (Iterable[Person], [User(id=1, username="bob")], [BOB]),
}


@pytest.mark.parametrize(("annotation", "value", "expected"), STRUCTURED.values(), ids=STRUCTURED)
def test_a_value_is_structured_as_its_annotation_promises(annotation, value, expected):
    client = client_of(serve_tool(returning(annotation, value)))
    schema = client.list_tools()[0]["outputSchema"]
    assert_valid_schema(schema)
    answer = client.tool("it").assert_ok().assert_structured(expected)
    assert accepts(schema, answer.structured)
    assert "structuredContent" in answer.result
    (block,) = answer.result["content"]
    assert json.loads(block["text"]) == expected


ONCE = ("generator", "iterator")
"""Values that can be read but once."""

MAYBE_OBJECTS = {"optional", "union", "recursive alias", "text or model", "any JSON"}
"""The schema does not say that every value is an object, so that every value is wrapped."""


@pytest.mark.django_db
@pytest.mark.parametrize("revision", LEGACY[1:])
@pytest.mark.parametrize("case", [name for name in STRUCTURED if name not in ONCE])
def test_legacy_revisions_get_an_object(case, revision):
    annotation, value, expected = STRUCTURED[case]
    client = client_of(serve_tool(returning(annotation, value)), revision)
    schema = client.list_tools()[0]["outputSchema"]
    assert_valid_schema(schema)
    assert schema["type"] == "object"
    answer = client.tool("it").assert_ok()
    assert isinstance(answer.structured, dict)
    assert accepts(schema, answer.structured)
    bare = isinstance(expected, dict) and case not in MAYBE_OBJECTS
    assert answer.structured == (expected if bare else {"result": expected})
    assert json.loads(answer.text) == expected


@pytest.mark.django_db
def test_the_oldest_revision_gets_text_alone():
    client = client_of(serve_tool(returning(Person, BOB)), LEGACY[0])
    assert "outputSchema" not in client.list_tools()[0]
    answer = client.tool("it").assert_ok()
    assert "structuredContent" not in answer.result
    assert json.loads(answer.text) == BOB


def test_constraints_and_descriptions_of_the_annotation_are_described():
    described = describe_tool(returning(Annotated[int, Field(ge=1, description="How many")], 5))
    assert described["outputSchema"] == {
        "type": "integer",
        "minimum": 1,
        "description": "How many",
    }
    schema = describe_tool(returning(list[Person], []))["outputSchema"]
    assert schema["items"]["description"] == "Somebody."
    assert "$defs" not in schema


def test_the_definitions_of_an_output_that_is_wrapped_are_at_its_root():
    about = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": {"a": {}}}
    result = {"type": "array", "items": {"$ref": "#/$defs/a"}}
    assert wrap_schema({**about, **result}) == {
        "type": "object",
        "properties": {"result": result},
        "required": ["result"],
        **about,
    }


def test_a_recursive_schema_has_its_type_at_the_root():
    schema = describe_tool(returning(Node, None))["outputSchema"]
    assert schema["type"] == "object"
    assert not accepts(schema, {"value": 1, "children": [{"value": "x"}]})
