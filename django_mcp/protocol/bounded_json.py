"""A copy of pydantic's core schema that makes of parsed JSON what pydantic makes of its text.

Pydantic gives a function what it has parsed, and validates what the function returns as a value of
Python. Of that, a union and what is strict make something else than of JSON: ``date | str`` is a
text. So that a schema with functions of our own is valid for the same values, what is below them
is written as JSON and read again, where that makes a difference. Arrays and objects with such
functions in them are not, or what is nested deeply would be written many times.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Final

from pydantic_core import SchemaValidator

Schema = dict[str, Any]

PARTS: Final = (
    "schema",
    "items_schema",
    "keys_schema",
    "values_schema",
    "extras_schema",
    "extras_keys_schema",
    "lax_schema",
    "strict_schema",
    "json_schema",
    "python_schema",
    "arguments_schema",
    "var_args_schema",
    "var_kwargs_schema",
    "choices",
    "steps",
    "fields",
    "definitions",
)
"""The keys of a schema under which there are others."""

OWN: Final = "django_mcp"
"""The metadata of a schema that calls a function of our own."""

OF_NAMES: Final = ("keys_schema", "extras_keys_schema")
"""Those of them that validate the names of members."""

_FIELDS: Final = ("model-field", "dataclass-field", "typed-dict-field")
_HOLDERS: Final = (*_FIELDS, "default", "model-fields", "dataclass-args", "arguments")
"""What others are in without a function between: it would hide a default, or is no value."""
_UNLIKE: Final = ("tuple", "set", "frozenset", "json")
"""What is read again even with functions in it. An array is no tuple and no set."""
_CHOOSING: Final = ("union", "tagged-union")
_OBJECTS: Final = ("model", "dataclass")
_ALIKE: Final = (
    *("str", "int", "float", "bool", "none", "any", "literal", "nullable", "default", "list"),
    *("union", "dict", "model", "model-fields", "typed-dict", *_FIELDS),
)
"""What makes the same of parsed JSON as of its text: a string where nothing is chosen, since one
of JSON fits less exactly."""


def is_schema(node: Schema) -> bool:
    """Return whether ``node`` is no mapping of names, of which one may be "type"."""
    return isinstance(node.get("type"), str)


def walk(node: Any) -> Iterator[Schema]:
    """Yield a schema and all that are part of it; what it refers to is not."""
    if isinstance(node, (list, tuple)):
        for each in node:
            yield from walk(each)
    elif isinstance(node, dict):
        if is_schema(node):
            yield node
        for key, part in node.items():
            if key in PARTS or not is_schema(node):
                yield from walk(part)


def before(schema: Schema, function: Any) -> Schema:
    """Return what calls a function of our own before it validates."""
    return _applied("function-before", schema, function)


def around(schema: Schema, function: Any) -> Schema:
    """Return what a function of our own is called around."""
    return _applied("function-wrap", schema, function)


class Given(Enum):
    """What a schema validates."""

    JSON = auto()
    """JSON as pydantic has parsed it for itself."""
    PARSED = auto()
    """The same as values of Python, since it was given to a function of our own."""
    VALUES = auto()
    """Values of Python: what came so, what a site's function returns, and defaults."""


@dataclass
class Rereading:
    """Makes the copy of a schema that has functions of our own."""

    encoding: Any
    """Returns a value as the text of its JSON."""
    _waiting: list[tuple[str, Given]] = field(default_factory=list)

    def copied(self, schema: Schema, given: Given) -> Schema:
        """Return the copy for what is given."""
        bodies = {each["ref"]: each for each in walk(schema) if "ref" in each}
        root: Schema = self._copied(schema, given, False)
        # What is both read from JSON and given to a site's function has two copies.
        copies: dict[str, Schema] = {}
        for reference, of in self._waiting:
            name = _name(reference, of)
            if name not in copies:
                copies[name] = {**self._copied(bodies[reference], of, True), "ref": name}
        if not copies:
            return root
        return {"type": "definitions", "schema": root, "definitions": [*copies.values()]}

    def _copied(self, node: Any, given: Given, chosen: bool) -> Any:
        # ``chosen`` says that a union takes the alternative that fits most exactly.
        if isinstance(node, (list, tuple)):
            return type(node)(self._copied(each, given, chosen) for each in node)
        if not isinstance(node, dict):
            return node
        if not is_schema(node):
            return {key: self._copied(part, given, chosen) for key, part in node.items()}
        if node["type"] == "definitions":
            return self._copied(node["schema"], given, chosen)
        if node["type"] == "definition-ref":
            given = Given.PARSED if given is Given.JSON else given
            self._waiting.append((node["schema_ref"], given))
            return {**node, "schema_ref": _name(node["schema_ref"], given)}
        if given is Given.PARSED and _must_be_read(node, chosen):
            read = self._parts(node, Given.JSON, chosen)
            return before({"type": "json", "schema": read}, self.encoding)
        copy = self._parts(node, given, chosen)
        if given is Given.PARSED and node["type"] in ("model", "dataclass"):
            # An object of JSON is one, however strict it is.
            copy["strict"] = False
        return copy

    def _parts(self, node: Schema, given: Given, chosen: bool) -> Schema:
        within, chosen = _given_within(node, given), _is_chosen_within(node, chosen)
        copy = {
            key: self._copied(part, within, chosen) if key in PARTS else part
            for key, part in node.items()
            if key != "ref"
        }
        if "steps" in node:
            first, *others = node["steps"]
            copy["steps"] = [
                self._copied(first, given, chosen),
                *self._copied(others, Given.VALUES, chosen),
            ]
        if within is Given.PARSED:
            for key in copy.keys() & {*OF_NAMES}:
                copy[key] = self._copied(_lax(node[key]), Given.VALUES, chosen)
            if node["type"] == "union":
                copy["choices"] = [*map(_called, node["choices"], copy["choices"])]
        return copy


def _given_within(node: Schema, given: Given) -> Given:
    kind = node["type"]
    if kind == "json":
        return Given.JSON
    if node.get("metadata") == OWN:
        return Given.VALUES if given is Given.VALUES else Given.PARSED
    config = node.get("config") or {}
    has_valid_defaults = node.get("validate_default") or config.get("validate_default")
    is_function = kind in ("function-before", "function-wrap")
    return Given.VALUES if is_function or has_valid_defaults else given


def _is_chosen_within(node: Schema, chosen: bool) -> bool:
    """Return whether a union depends on how exactly parts of ``node`` fit.

    How exactly an object fits does not depend on its members, unless something is converted.
    """
    return node["type"] in _CHOOSING or (chosen and node["type"] not in _OBJECTS)


def _must_be_read(node: Schema, chosen: bool) -> bool:
    """Return whether parsed JSON has to be written and read again for ``node``."""
    if node["type"] in _HOLDERS:
        return False
    if _has_functions(node):
        return node["type"] in _UNLIKE
    return not _is_alike(node, chosen)


def _has_functions(node: Schema) -> bool:
    return any(
        each.get("metadata") == OWN or each["type"] == "definition-ref" for each in walk(node)
    )


def _is_alike(node: Any, chosen: bool) -> bool:
    """Return whether ``node`` makes the same of parsed JSON as of its text."""
    if isinstance(node, (list, tuple)):
        return all(_is_alike(each, chosen) for each in node)
    if not isinstance(node, dict):
        return True
    if not is_schema(node):
        return all(_is_alike(each, chosen) for each in node.values())
    if node["type"] not in _ALIKE or (node["type"] == "str" and chosen):
        return False
    is_strict = node.get("strict") or (node.get("config") or {}).get("strict")
    if is_strict or any(node[key]["type"] != "str" for key in node.keys() & {*OF_NAMES}):
        return False
    within = _is_chosen_within(node, chosen)
    return all(_is_alike(node[key], within) for key in node.keys() & {*PARTS})


def _lax(node: Any) -> Any:
    """Return the schema of names so that it takes texts, as it does of JSON even if strict."""
    if isinstance(node, (list, tuple)):
        return type(node)(map(_lax, node))
    if not isinstance(node, dict):
        return node
    copy = {key: _lax(part) if key in PARTS else part for key, part in node.items()}
    return {**copy, "strict": False} if is_schema(node) else copy


def _called(original: Any, copy: Any) -> Any:
    """Return an alternative with its name, which is not to be that of a function of our own."""
    if isinstance(original, tuple) or copy.get("metadata") != OWN:
        return copy
    return copy, SchemaValidator(original).title


def _name(reference: str, given: Given) -> str:
    return reference if given is Given.VALUES else f"{reference}:json"


def _applied(kind: str, schema: Schema, function: Any) -> Schema:
    reference = schema.pop("ref", None)
    called = {"type": "no-info", "function": function}
    applied = {"type": kind, "function": called, "schema": schema, "metadata": OWN}
    return applied if reference is None else {**applied, "ref": reference}
