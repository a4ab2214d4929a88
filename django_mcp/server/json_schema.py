"""JSON Schema as pydantic derives it from types, put right where it would mislead a client.

Clients hand the schemas of tools to interfaces of models, and several of those know neither
``$ref`` nor an ``anyOf`` with ``null``: so definitions go where they are referred to, and needless
nulls go. That leaves a schema's meaning as it is. It walks by keyword, since the members of
``properties`` are names, and those of ``default`` and ``enum`` data.
"""

from __future__ import annotations

import enum
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Final

from pydantic.errors import (
    PydanticErrorMixin,
    PydanticInvalidForJsonSchema,
    PydanticUndefinedAnnotation,
    PydanticUserError,
)
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticSerializationError, SchemaError, to_json

SCHEMA_ERRORS: Final = (
    PydanticUserError,
    PydanticUndefinedAnnotation,
    SchemaError,
    TypeError,
    ValueError,
)
"""What pydantic raises for types that it cannot express, or constraints that make no sense."""

MAX_GROWTH: Final = 4
"""How many times as large a schema may become; above, its definitions stay where they are.

Fifteen models, each with two of the next, would grow from 2 KB to 6 MB.
"""

NULL: Final = {"type": "null"}

_SCHEMA: Final = frozenset(
    {
        "additionalProperties",
        "contains",
        "contentSchema",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
"""Keywords whose value is a schema (JSON Schema 2020-12, core, section 10 and 11)."""
_SCHEMAS: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
"""Keywords whose value is a list of schemas."""
_NAMED_SCHEMAS: Final = frozenset({"$defs", "dependentSchemas", "patternProperties", "properties"})
"""Keywords whose value has schemas by names."""
_ASSERTIONS: Final = (
    _SCHEMA
    | _SCHEMAS
    | _NAMED_SCHEMAS
    | {
        "$dynamicRef",
        "$ref",
        "const",
        "dependentRequired",
        "enum",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "maxContains",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minContains",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "multipleOf",
        "pattern",
        "required",
        "type",
        "uniqueItems",
    }
)
"""Keywords that decide what is valid; all others only say something about it."""

_REFERENCE: Final = re.compile(r"#/\$defs/([^/]+)")

Schema = dict[str, Any]


class PlainJsonSchema(GenerateJsonSchema):
    """JSON Schema 2020-12 without the titles that merely repeat names."""

    # A default without a JSON form is left out of the schema; that is all it means.
    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Leave titles to those who wrote one."""
        return False

    def encode_default(self, dft: Any) -> Any:
        """Encode a default, unless JSON has no word for it (infinity, for example)."""
        encoded = super().encode_default(dft)
        try:
            json.dumps(encoded, allow_nan=False)
        except ValueError as error:
            raise PydanticSerializationError(str(error)) from error
        return encoded

    def default_schema(self, schema: Any) -> dict[str, Any]:
        """Give the members of a set one order, the same in every process."""
        described = super().default_schema(schema)
        if described.get("uniqueItems") and isinstance(described.get("default"), list):
            described["default"] = sorted(described["default"], key=to_json)
        return described

    def literal_schema(self, schema: Any) -> dict[str, Any]:
        """Describe None apart from values of a type; refuse what is described but not accepted."""
        members = [each for each in schema["expected"] if isinstance(each, enum.Enum)]
        if self.mode == "validation" and not all(isinstance(each, (str, int)) for each in members):
            raise PydanticInvalidForJsonSchema("Literal takes members of str or int Enums alone")
        others = [each for each in schema["expected"] if each is not None]
        if not others or len(others) == len(schema["expected"]):
            return super().literal_schema(schema)
        some: Any = {**schema, "expected": others}
        return {"anyOf": [super().literal_schema(some), dict(NULL)]}

    def tagged_union_schema(self, schema: Any) -> dict[str, Any]:
        """Describe a union of models by ``anyOf``: clients know ``oneOf`` and its mapping less."""
        return {"anyOf": super().tagged_union_schema(schema)["oneOf"]}

    def generator_schema(self, schema: Any) -> dict[str, Any]:
        """Refuse what would be validated only while the function reads it."""
        if self.mode == "validation":
            raise PydanticInvalidForJsonSchema("Iterable is checked too late; use list instead")
        return super().generator_schema(schema)


def reason(error: Exception) -> str:
    """Return what pydantic objects to, without its advice, which is for those who write models."""
    if isinstance(error, PydanticErrorMixin):
        return error.message.split("\n")[0].split(". Set ")[0].rstrip(".")
    return " ".join(str(error).split())


def inlined(schema: Schema) -> Schema:
    """Return ``schema`` with each definition where it is referred to.

    Definitions that contain themselves stay, and all of them where the whole would grow beyond
    what clients should be sent.
    """
    definitions = _Definitions(schema)
    return schema if definitions.grow_too_large else definitions.inlined()


def grows_too_large(schema: Schema) -> bool:
    """Return whether ``schema`` keeps its definitions because it would grow beyond bounds."""
    return _Definitions(schema).grow_too_large


def without_nulls(schema: Schema) -> Schema:
    """Return the schema of an input with no null where leaving out a member means the same.

    That is where it is not required and its default is null. Null is accepted all the same: only
    the schema says nothing about it.
    """
    stripped: Schema = _without_nulls(schema)
    return stripped


def without_titles(schema: Schema, *names: str) -> Schema:
    """Return a schema of pydantic's without the titles that merely repeat names.

    ``names`` are those of what the schema itself describes.
    """
    stripped: Schema = _without_titles(schema, *names)
    return stripped


def _without_titles(schema: Any, *names: str) -> Any:
    if not isinstance(schema, dict):
        return schema
    repeated = {*names, *(name.title().replace("_", " ") for name in names)}
    found = _mapped(schema, _without_titles)
    for keyword in _NAMED_SCHEMAS & schema.keys():
        if isinstance(schema[keyword], dict):
            found[keyword] = {
                name: _without_titles(each, name) for name, each in schema[keyword].items()
            }
    if found.get("title") in repeated:
        del found["title"]
    return found


def _without_nulls(schema: Any) -> Any:
    schema = _mapped(schema, _without_nulls)
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if isinstance(properties, dict):
        required = schema.get("required", ())
        schema["properties"] = {
            name: each if name in required else _without_null(each)
            for name, each in properties.items()
        }
    return schema


def _without_null(schema: Any) -> Any:
    if not isinstance(schema, dict) or schema.get("default", ...) is not None:
        return schema
    rest = {keyword: value for keyword, value in schema.items() if keyword != "default"}
    branches = rest.get("anyOf", [])
    others = [branch for branch in branches if branch != NULL]
    if others and len(others) < len(branches):
        del rest["anyOf"]
        return _beside(others[0], rest) if len(others) == 1 else {"anyOf": others, **rest}
    if isinstance(rest.get("enum"), list) and any(value is not None for value in rest["enum"]):
        rest["enum"] = [value for value in rest["enum"] if value is not None]
    return rest


class _Definitions:
    """The definitions of a schema, and which of them can go."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._bodies: Mapping[str, Any] = schema.get("$defs", {})
        self._uses = {name: self._references(body) for name, body in self._bodies.items()}
        self._sizes: dict[str, int] = {}

    @cached_property
    def grow_too_large(self) -> bool:
        remaining = {name: self._bodies[name] for name in self._recursive}
        rest = {**self._schema, "$defs": remaining}
        size = _size(rest) + self._growth(self._references(rest))
        return size > MAX_GROWTH * _size(self._schema)

    def inlined(self) -> Schema:
        remaining = {
            name: body
            for name, body in self._bodies.items()
            if name in self._recursive and name in self._needed
        }
        rest = {keyword: value for keyword, value in self._schema.items() if keyword != "$defs"}
        whole: Schema = self._inlined(rest | ({"$defs": remaining} if remaining else {}))
        return whole

    def _inlined(self, schema: Any) -> Any:
        schema = _mapped(schema, self._inlined)
        name = self._target(schema)
        if name is None or name in self._recursive:
            return schema
        beside = {keyword: value for keyword, value in schema.items() if keyword != "$ref"}
        return _beside(self._inlined(self._bodies[name]), beside)

    @cached_property
    def _recursive(self) -> frozenset[str]:
        return frozenset(name for name in self._bodies if name in self._reached(self._uses[name]))

    @cached_property
    def _needed(self) -> set[str]:
        rest = {keyword: value for keyword, value in self._schema.items() if keyword != "$defs"}
        return self._reached(self._references(rest))

    def _reached(self, names: Mapping[str, int]) -> set[str]:
        reached: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name not in reached:
                reached.add(name)
                waiting += self._uses[name]
        return reached

    def _growth(self, uses: Mapping[str, int]) -> int:
        inline = {name: count for name, count in uses.items() if name not in self._recursive}
        return sum(count * self._size_of(name) for name, count in inline.items())

    def _size_of(self, name: str) -> int:
        if name not in self._sizes:
            self._sizes[name] = _size(self._bodies[name]) + self._growth(self._uses[name])
        return self._sizes[name]

    def _references(self, schema: Any) -> Counter[str]:
        found: Counter[str] = Counter()

        def look(each: Any) -> Any:
            name = self._target(each)
            if name is not None:
                found[name] += 1
            return _mapped(each, look)

        look(schema)
        return found

    def _target(self, schema: Any) -> str | None:
        reference = schema.get("$ref") if isinstance(schema, dict) else None
        match = _REFERENCE.fullmatch(reference) if isinstance(reference, str) else None
        return match[1] if match is not None and match[1] in self._bodies else None


def _mapped(schema: Any, change: Callable[[Any], Any]) -> Any:
    """Return a copy of ``schema`` whose direct subschemas are those that ``change`` returns."""
    if not isinstance(schema, dict):
        return schema  # True and False are schemas, too
    return {keyword: _changed(keyword, value, change) for keyword, value in schema.items()}


def _changed(keyword: str, value: Any, change: Callable[[Any], Any]) -> Any:
    if keyword in _SCHEMA:
        return change(value)
    if keyword in _SCHEMAS and isinstance(value, list):
        return [change(each) for each in value]
    if keyword in _NAMED_SCHEMAS and isinstance(value, dict):
        return {name: change(each) for name, each in value.items()}
    return value


def _beside(schema: Any, beside: Schema) -> Any:
    """Return ``schema`` with what stands beside its reference, which goes before its own."""
    if not beside:
        return schema
    if isinstance(schema, dict) and not beside.keys() & _ASSERTIONS:
        return {**schema, **beside}
    # Both hold. One keyword may depend on another of the same schema, so they are not mixed.
    return {**beside, "allOf": [*beside.get("allOf", ()), schema]}


def _size(schema: Any) -> int:
    # What has no JSON form is refused later, with a message that says so.
    return len(json.dumps(schema, default=str))
