"""Definitions take the place of references to them, and a schema still accepts the same."""

from __future__ import annotations

import enum
import json
from dataclasses import dataclass
from typing import Annotated, Any, Generic, Literal, NamedTuple, NotRequired, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel, Discriminator, Field, RootModel, Tag, TypeAdapter, create_model
from typing_extensions import TypedDict

from django_mcp import MCPServer
from django_mcp.server.json_schema import PlainJsonSchema, grows_too_large, inlined, without_nulls
from tests.server.shapes import Filters, Node, Order, Page, Pair, Percentage, Point, Status, Tree
from tests.server.support import (
    assert_valid_schema,
    client_of,
    input_schema,
    references,
    serve_tool,
)


class Size(enum.Enum):
    """How large."""

    SMALL = "s"
    LARGE = 2
    NONE = None


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: Percentage = 9


class Dog(BaseModel):
    kind: Literal["dog"]
    pups: list[Dog] = []


class Kennel(BaseModel):
    pets: dict[str, Annotated[Cat | Dog, Field(discriminator="kind")]]
    best: Cat | None = None


def kind_of(value: Any) -> str:
    return "cat" if isinstance(value, dict) and "lives" in value else "dog"


Called = Annotated[Annotated[Cat, Tag("cat")] | Annotated[Dog, Tag("dog")], Discriminator(kind_of)]


class Found(BaseModel):
    name: str | None = None


class Codes(RootModel[dict[str, Size]]):
    pass


class Link(TypedDict):
    to: NotRequired[Link | None]
    size: Size


@dataclass
class Box:
    inside: list[Box | Point]
    label: Annotated[str, Field(max_length=3)] | None = None


class Triple(NamedTuple):
    first: Cat
    second: Size = Size.SMALL
    third: Literal["a", None] = None


T = TypeVar("T")


class Chain(BaseModel, Generic[T]):
    value: T
    rest: Chain[T] | None = None


SHAPES: dict[str, Any] = {
    "alias of itself": Tree,
    "called discriminator": Called,
    "dataclass of itself": Box,
    "dict of models": dict[str, Cat],
    "discriminated": Kennel,
    "enum": list[Size],
    "generic": Page[Cat],
    "generic of itself": Chain[Cat],
    "generic of a generic": Page[Page[Size]],
    "model of itself": Node,
    "models in models": Order,
    "named tuple": Triple,
    "other named tuple": list[Pair],
    "root model": Codes,
    "set of choices": set[Status],
    "tuple": tuple[Cat, Size, int],
    "typed dict": Filters,
    "typed dict of itself": Link,
}


def described(annotation: Any, mode: Any = "validation") -> dict[str, Any]:
    adapter: TypeAdapter[Any] = TypeAdapter(annotation)
    return adapter.json_schema(mode=mode, schema_generator=PlainJsonSchema)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 12) | st.sampled_from(["", "a", "cat", "dog", "s"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["kind", "value", "x", "lives"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@st.composite
def values(draw: st.DrawFn, schema: Any, whole: dict[str, Any], depth: int = 0) -> Any:
    """Return something that mostly, but not always, fits ``schema``, which is part of ``whole``."""
    if not isinstance(schema, dict) or depth > 6 or draw(st.integers(0, 15)) == 0:
        return draw(JSON)

    def inner(part: Any) -> Any:
        return draw(values(part, whole, depth + 1))

    if "$ref" in schema:
        return inner(whole["$defs"][schema["$ref"].rsplit("/", 1)[-1]])
    branches = schema.get("anyOf", schema.get("oneOf", schema.get("allOf", ())))
    if branches:
        return inner(draw(st.sampled_from(branches)))
    if "enum" in schema or "const" in schema:
        return draw(st.sampled_from(schema.get("enum", [schema.get("const")])))
    if schema.get("type") == "object" or "properties" in schema:
        members = schema.get("properties", {})
        chosen = [name for name in members if draw(st.integers(0, 4))]
        made = {name: inner(members[name]) for name in chosen}
        more = draw(st.lists(st.sampled_from(["a", "b"]), max_size=2))
        return made | {name: inner(schema.get("additionalProperties", {})) for name in more}
    if schema.get("type") == "array":
        first = [inner(part) for part in schema.get("prefixItems", ())]
        return first + [inner(schema.get("items", {})) for _ in range(draw(st.integers(0, 2)))]
    simple = {"string": st.text(max_size=4), "integer": st.integers(-1, 101), "null": st.none()}
    return draw(simple.get(schema.get("type", ""), JSON))


@pytest.mark.slow
@pytest.mark.parametrize("annotation", SHAPES.values(), ids=SHAPES)
@settings(max_examples=10, deadline=None)
@given(mode=st.sampled_from(["validation", "serialization"]), data=st.data())
def test_an_inlined_schema_accepts_what_the_original_accepts(annotation, mode, data):
    original = described(annotation, mode)
    before, after = Draft202012Validator(original), Draft202012Validator(inlined(original))
    for _ in range(5):
        value = data.draw(values(original, original))
        assert after.is_valid(value) == before.is_valid(value), value


@pytest.mark.parametrize("annotation", SHAPES.values(), ids=SHAPES)
def test_only_what_contains_itself_stays_defined(annotation):
    shorter = inlined(described(annotation))
    assert_valid_schema(shorter)
    definitions = shorter.get("$defs", {})
    assert {f"#/$defs/{name}" for name in definitions} == set(references(shorter))
    for name, definition in definitions.items():
        assert f"#/$defs/{name}" in references(definition)


# Schemas of any form: definitions that refer to each other, with anything beside a reference

NAMES = ("A", "B", "C", "D")
ANNOTATIONS = st.fixed_dictionaries(
    {},
    optional={
        "description": st.sampled_from(["one", "two"]),
        "default": st.sampled_from([None, 1, {"$ref": "#/$defs/A"}]),
        "examples": st.just([{"$ref": "#/$defs/A", "properties": {"a": {"$ref": "x"}}}]),
        "title": st.just("T"),
    },
)
ASSERTIONS = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["string", "object", "integer"]),
        "minLength": st.integers(0, 2),
        "required": st.lists(st.sampled_from(["a", "$ref"]), unique=True),
        "enum": st.just(["a", 1, {"$ref": "#/$defs/A"}]),
        "additionalProperties": st.booleans(),
    },
)


def schemas(below: int) -> st.SearchStrategy[Any]:
    """Schemas that refer to any definition through a member, and directly to those below."""
    anywhere = st.sampled_from(NAMES).map(lambda name: {"$ref": f"#/$defs/{name}"})
    direct = st.sampled_from(NAMES[:below] or ("none",)).map(
        lambda name: {"$ref": f"#/$defs/{name}"} if below else {}
    )
    members = st.dictionaries(st.sampled_from(["a", "b", "$ref", "properties"]), anywhere)
    nested = st.fixed_dictionaries(
        {},
        optional={
            "properties": members,
            "items": anywhere,
            "additionalProperties": anywhere,
            "anyOf": st.lists(direct, min_size=1, max_size=2),
            "not": direct,
        },
    )
    parts = st.tuples(direct, ANNOTATIONS, ASSERTIONS, nested)
    return parts.map(lambda each: each[0] | each[1] | each[2] | each[3])


@st.composite
def wholes(draw: st.DrawFn) -> dict[str, Any]:
    definitions = {name: draw(schemas(number)) for number, name in enumerate(NAMES)}
    return draw(schemas(len(NAMES))) | {"$defs": definitions}


VALUES = st.recursive(
    st.sampled_from([None, 1, "", "a", "abc", {"$ref": "#/$defs/A"}]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["a", "b", "$ref", "properties"]), inner, max_size=3)
    ),
    max_leaves=5,
)


@settings(max_examples=60, deadline=None)
@given(original=wholes(), value=VALUES)
def test_any_schema_means_the_same_when_it_is_inlined(original, value):
    shorter = inlined(original)
    assert Draft202012Validator(shorter).is_valid(value) == Draft202012Validator(original).is_valid(
        value
    )


# Pitfalls


def test_names_and_data_that_look_like_references_are_left_alone():
    data = {"$ref": "#/$defs/Cat"}
    original = {
        "$defs": {"Cat": {"type": "object"}},
        "properties": {
            "$ref": {"$ref": "#/$defs/Cat"},
            "default": {"default": data, "examples": [data], "enum": [data], "const": data},
        },
    }
    assert inlined(original) == {
        "properties": {"$ref": {"type": "object"}, "default": original["properties"]["default"]}
    }


def test_what_stands_beside_a_reference_goes_before_what_the_definition_says():
    original = {
        "$defs": {"A": {"type": "string", "description": "theirs", "title": "A"}},
        "properties": {"a": {"$ref": "#/$defs/A", "description": "mine", "default": "x"}},
    }
    assert inlined(original)["properties"]["a"] == {
        "type": "string",
        "title": "A",
        "description": "mine",
        "default": "x",
    }


def test_what_decides_beside_a_reference_decides_beside_the_definition():
    original = {
        "$defs": {"A": {"type": "string", "minLength": 3}},
        "properties": {"a": {"$ref": "#/$defs/A", "minLength": 1}},
    }
    assert inlined(original)["properties"]["a"] == {
        "minLength": 1,
        "allOf": [{"type": "string", "minLength": 3}],
    }


def test_references_to_elsewhere_stay():
    original = {
        "properties": {"a": {"$ref": "https://example.com/a"}, "b": {"$ref": "#/properties/a"}}
    }
    assert inlined(original) == original


def models(count: int, *, each: int) -> type[BaseModel]:
    """Return the first of ``count`` models, each of which has several of the next."""
    model = create_model("Last", value=(int, ...))
    for number in range(count - 1):
        fields: dict[str, Any] = {f"f{index}": (model, ...) for index in range(each)}
        model = create_model(f"Level{number}", **fields)
    return model


def test_fifteen_models_with_two_each_keep_their_definitions():
    original = described(models(15, each=2))
    assert len(json.dumps(original)) < 4_000
    assert grows_too_large(original)
    assert inlined(original) is original


def test_fifteen_models_with_one_each_do_not():
    original = described(models(15, each=1))
    assert not grows_too_large(original)
    assert "$defs" not in inlined(original)


@pytest.mark.parametrize(("number", "keeps"), [(4, False), (5, True)])
def test_a_schema_may_become_four_times_as_large(number, keeps):
    large = create_model("Large", value=(Annotated[int, Field(description="x" * 5_000)], ...))
    fields: dict[str, Any] = {f"f{index}": (large, ...) for index in range(number)}
    assert grows_too_large(described(create_model("Several", **fields))) is keeps


def test_null_goes_only_where_leaving_out_means_the_same():
    class Taken(BaseModel):
        optional: int | None = None
        nested: list[int | None] = []
        other: int | None = 5
        needed: int | None
        literal: Literal["a", None] = None
        needed_literal: Literal["a", None]
        several: int | str | None = None
        size: Size = Field(None, validate_default=False)
        bounded: Annotated[int, Field(ge=1)] | None = Field(None, description="mine")
        nothing: None = None
        anything: Any = None

    properties = without_nulls(inlined(described(Taken)))["properties"]
    null = {"type": "null"}
    assert properties == {
        "optional": {"type": "integer"},
        "nested": {
            "type": "array",
            "items": {"anyOf": [{"type": "integer"}, null]},
            "default": [],
        },
        "other": {"anyOf": [{"type": "integer"}, null], "default": 5},
        "needed": {"anyOf": [{"type": "integer"}, null]},
        "literal": {"type": "string", "const": "a"},
        "needed_literal": {"anyOf": [{"type": "string", "const": "a"}, null]},
        "several": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        "size": {"enum": ["s", 2], "title": "Size", "description": "How large."},
        "bounded": {"type": "integer", "minimum": 1, "description": "mine"},
        "nothing": null,
        "anything": {},
    }


def test_null_stays_in_what_a_tool_returns():
    def find(near: Found | None = None) -> Found:
        return Found()

    (described,) = client_of(serve_tool(find)).list_tools()
    nullable = {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}
    assert described["outputSchema"]["properties"]["name"] == nullable
    assert described["inputSchema"]["properties"]["near"]["properties"]["name"] == {
        "type": "string"
    }


@pytest.mark.parametrize("annotation", SHAPES.values(), ids=SHAPES)
def test_no_schema_that_is_derived_has_alternatives_at_its_root(annotation):
    def take(value): ...

    take.__annotations__ = {"value": annotation}
    schema = input_schema(take)
    assert schema["type"] == "object"
    assert not {"anyOf", "oneOf", "allOf", "$ref"} & schema.keys()


@pytest.mark.django_db
def test_a_schema_that_is_given_is_sent_as_it_stands():
    """The official conformance suite has one with definitions, and with ``allOf`` at its root."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {"$anchor": "here", "type": "object"}},
        "properties": {
            "address": {"$ref": "#/$defs/address"},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        },
        "allOf": [{"anyOf": [{"required": ["address"]}, {"required": ["note"]}]}],
        "if": {"required": ["address"]},
        "additionalProperties": False,
    }
    server = MCPServer("test")

    @server.tool(input_schema=schema)
    def find(address: Any = None, note: str | None = None) -> str:
        return ""

    for revision in ("2025-06-18", "2026-07-28"):
        (described,) = client_of(server, revision).list_tools()
        assert described["inputSchema"] == schema
