"""A copy of pydantic's core schema whose validation stops early and counts what it tries.

Pydantic goes on after the first error, tries each alternative of a union in full, and lets nobody
interrupt it: a body of 300 bytes keeps it busy for minutes where two alternatives refer back to
their union. The copy has the functions of a :class:`Hooks` at each place where that can happen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from .bounded_json import OF_NAMES, PARTS, Given, Rereading, Schema, around, before, is_schema, walk

Function = Callable[..., Any]

_STOPPABLE: Final = ("list", "set", "frozenset", "tuple", "dict")
_OBJECTS: Final = ("model", "dataclass", "typed-dict", "call")
_HASHING: Final = {"set": "items_schema", "frozenset": "items_schema", "dict": "keys_schema"}
_COMPOSITE: Final = (*_STOPPABLE, *_OBJECTS, "union", "tagged-union", "definition-ref", "json")

#: Their hashes are salted, or there are few of them: nobody can choose values that collide.
_SAFELY_HASHED: Final = ("str", "bytes", "date", "datetime", "time", "bool", "literal", "enum")


@dataclass(frozen=True, slots=True)
class Hooks:
    """What is called while a copy validates; see :mod:`django_mcp.protocol.bounded`."""

    entering: Function
    """Is called around an object that may contain others of its kind."""
    trying: Function
    """Is called around what may contain such objects, and fail without failing the whole."""
    choosing: Callable[[int], Function]
    """Makes what is called before a union of so many alternatives."""
    measuring: Callable[[int | None], Function]
    """Makes what is called before an object, with how many members it may have, if others are
    errors."""
    hashing: Callable[[Callable[[], Schema]], Function]
    """Makes what is called before values are hashed; it is told the schema of a list of them, or of
    objects with one member each, if they are names."""
    decoding: Function
    """Is called before the JSON in a string is parsed."""
    encoding: Function
    """Returns a value as the text of its JSON."""


@dataclass(frozen=True)
class Bounded:
    """Makes the copy."""

    original: Schema
    hooks: Hooks
    stops: bool
    """Whether an array or object ends with its first error."""
    max_items: int | None = None
    """Most items of arrays whose items are more than plain values."""
    from_json: bool = False
    """Whether the copy validates texts of JSON, and not what was parsed."""

    @cached_property
    def schema(self) -> Schema:
        """The copy."""
        return self._read(self._with_functions, Given.JSON)

    def _read(self, schema: Schema, given: Given) -> Schema:
        given = given if self.from_json else Given.VALUES
        return Rereading(self.hooks.encoding).copied(schema, given)

    @cached_property
    def _with_functions(self) -> Schema:
        copy: Schema = self._copied(self.original)
        root = copy["schema"] if copy["type"] == "definitions" else copy
        for field in _fields_of(root):
            self._set_apart(field)
        return copy

    def _copied(self, node: Any) -> Any:
        if isinstance(node, (list, tuple)):
            return type(node)(self._copied(each) for each in node)
        if not isinstance(node, dict):
            return node
        if not is_schema(node):
            return {key: self._copied(part) for key, part in node.items()}
        # Of a name, which is a text, nothing takes long.
        hooked = {*PARTS}.difference(OF_NAMES)
        copy = {key: self._copied(part) if key in hooked else part for key, part in node.items()}
        if node["type"] == "union":
            return self._union(node["choices"], copy)
        return self._hooked(node["type"], copy)

    def _hooked(self, kind: str, copy: Schema) -> Schema:
        if kind in _STOPPABLE:
            return self._collection(kind, copy)
        if kind in _OBJECTS:
            return self._object(copy)
        if kind == "json":
            return before(copy, self.hooks.decoding)
        if kind in ("function-wrap", "custom-error") or copy.get("on_error", "raise") != "raise":
            copy["schema"] = self._tried(copy["schema"])
        return copy

    def _object(self, copy: Schema) -> Schema:
        copy = before(copy, self.hooks.measuring(_most_members(copy)))
        if copy.get("ref") in self._cycles.recursive:
            copy = around(copy, self.hooks.entering)
        return copy

    def _collection(self, kind: str, copy: Schema) -> Schema:
        if self.stops:
            copy["fail_fast"] = True
        items = copy.get("items_schema")
        if kind == "list" and self.max_items is not None and items and is_composite(items):
            copy["max_length"] = min(copy.get("max_length", self.max_items), self.max_items)
        hashed = copy.get(_HASHING.get(kind, ""), {"type": "any"})
        if kind in _HASHING and not _is_safely_hashed(hashed):
            each = {"type": "dict", "keys_schema": hashed} if kind == "dict" else hashed
            return before(copy, self.hooks.hashing(lambda: self._listing(each)))
        return copy

    def _listing(self, items: Schema) -> Schema:
        # What a site's function has made is read as JSON, too: that takes more than it would.
        listing = {"type": "list", "items_schema": items, "fail_fast": True}
        if self._with_functions["type"] != "definitions":
            return self._read(listing, Given.PARSED)
        return self._read({**self._with_functions, "schema": listing}, Given.PARSED)

    def _union(self, choices: Sequence[Any], copy: Schema) -> Schema:
        pairs = zip(choices, copy["choices"], strict=True)
        copy["choices"] = [self._alternative(*pair) for pair in pairs]
        return before(copy, self.hooks.choosing(len(choices)))

    def _alternative(self, original: Any, copy: Any) -> Any:
        if isinstance(copy, tuple):
            schema, label = copy
            return self._tried(schema), label
        # Errors name the alternative, which is not to be called as a hook is.
        return (self._tried(copy), self._label(original)) if is_composite(copy) else copy

    def _tried(self, schema: Schema) -> Schema:
        is_recursive = _references(schema) & self._cycles.leading
        return around(schema, self.hooks.trying) if is_recursive else schema

    @cached_property
    def _cycles(self) -> _Cycles:
        return _cycles_of(self.original)

    def _label(self, schema: Schema) -> str:
        kind: str = schema["type"]
        if kind == "definition-ref":
            return self._label(self._cycles.definitions[schema["schema_ref"]])
        if "cls" in schema:
            name: str = schema["cls"].__name__
            return name
        parts = [
            schema[key]
            for key in ("keys_schema", "values_schema", "items_schema", "schema")
            if isinstance(schema.get(key), dict)
        ]
        return f"{kind}[{','.join(map(self._label, parts))}]" if parts else kind

    def _set_apart(self, field: Schema) -> None:
        """Let a member of the whole be looked at although another one is wrong."""
        owner = field
        while owner["schema"]["type"] == "default":
            owner = owner["schema"]
        owner["schema"] = self._tried(owner["schema"])


def is_composite(schema: Schema) -> bool:
    """Return whether values of ``schema`` may be made of others."""
    return any(each["type"] in _COMPOSITE for each in walk(schema))


def classes_of(schema: Schema) -> set[type]:
    """Return the classes of the objects in ``schema``."""
    return {each["cls"] for each in walk(schema) if each["type"] in ("model", "dataclass")}


def needs_bounds(schema: Schema) -> bool:
    """Return whether even a small body can cost much.

    It can where strings are parsed, and where a union is part of two or more of its alternatives:
    then the cost doubles with each level of nesting.
    """
    if any(each["type"] == "json" for each in walk(schema)):
        return True
    cycles = _cycles_of(schema)
    return any(
        sum(ref in cycles.reached(_references(choice)) for choice in union["choices"]) > 1
        for ref in cycles.recursive
        for union in walk(cycles.definitions[ref])
        if union["type"] == "union"
    )


@dataclass(frozen=True)
class _Cycles:
    """Which definitions refer to themselves, perhaps by way of others."""

    definitions: Mapping[str, Schema]

    @cached_property
    def recursive(self) -> set[str]:
        """Those that do."""
        return {ref for ref in self.definitions if ref in self.reached(self._direct[ref])}

    @cached_property
    def leading(self) -> set[str]:
        """Those from which such a one is reached."""
        return {ref for ref in self.definitions if self.reached({ref}) & self.recursive}

    def reached(self, references: set[str]) -> set[str]:
        """Return what is referred to, with all that this refers to."""
        reached: set[str] = set()
        while references:
            reached |= references
            references = set().union(*(self._direct.get(each, ()) for each in references)) - reached
        return reached

    @cached_property
    def _direct(self) -> dict[str, set[str]]:
        return {ref: _references(body) for ref, body in self.definitions.items()}


def _cycles_of(schema: Schema) -> _Cycles:
    nodes = (each for each in walk(schema) if each["type"] == "definitions")
    return _Cycles({each["ref"]: each for node in nodes for each in node["definitions"]})


def _references(node: Any) -> set[str]:
    return {each["schema_ref"] for each in walk(node) if each["type"] == "definition-ref"}


def _is_safely_hashed(schema: Schema) -> bool:
    kinds = {each["type"] for each in walk(schema)}
    return kinds <= {*_SAFELY_HASHED, "nullable", "chain", "function-after"} and kinds != {"any"}


def _fields_of(schema: Schema) -> list[Schema]:
    for each in walk(schema):
        if each["type"] == "model-fields":
            return list(each["fields"].values())
    return []


def _most_members(schema: Schema) -> int | None:
    """Return how many members an object may have, if others are errors; each would be one."""
    for each in walk(schema):
        if each["type"] in ("model-fields", "typed-dict", "dataclass-args"):
            fields = each["fields"]
            config = schema.get("config") or {}
            extra = each.get("extra_behavior") or config.get("extra_fields_behavior")
            names = fields.values() if isinstance(fields, dict) else fields
            return sum(map(_names_of, names)) if extra == "forbid" else None
    return None


def _names_of(field: Schema) -> int:
    alias = field.get("validation_alias", ())
    return 1 + (1 if isinstance(alias, str) else len(alias))
