"""What a form asks for, field by field, and the JSON Schema of it in each revision.

Elicitation knows flat objects of primitive values and no more, and every revision knows others of
them (client/elicitation, "Requested Schema"). What a field cannot say in a revision is left out:
every answer is validated again here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

from ...protocol.versions import Revision, fit

FieldKind = Literal["string", "integer", "number", "boolean", "choice", "choices"]

FORMATS: Final = ("email", "uri", "date", "date-time")
"""Formats of text that a client may know."""

MAX_CHOSEN: Final = 1_000
"""Most that may be chosen of fewer options, for some may be chosen twice."""

_SCHEMAS: Final = {
    "string": "StringSchema",
    "integer": "NumberSchema",
    "number": "NumberSchema",
    "boolean": "BooleanSchema",
}


@dataclass(frozen=True, slots=True)
class Option:
    """One of several values to choose from. On the wire they are text."""

    value: str
    title: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of a form."""

    name: str
    kind: FieldKind
    title: str | None = None
    description: str | None = None
    required: bool = True
    default: Any = None
    """The value to begin with, as it goes over the wire."""
    limits: Mapping[str, Any] = field(default_factory=dict)
    """``minLength``, ``maximum``, ``format``, ``maxItems``..."""
    options: Sequence[Option] = ()
    enum_names: bool = False
    """Whether titles go into ``enumNames`` also where ``oneOf`` exists."""


class Form(Protocol):
    """Something to fill in: its fields, and the way from an answer to its value."""

    @property
    def fields(self) -> Sequence[Field]:
        """The fields, in order."""

    def read(self, content: Mapping[str, Any]) -> Any:
        """Return the value that an answer stands for; raises :class:`InvalidAnswer`."""


class InvalidAnswer(Exception):
    """An answer that does not fit; ``problems`` are sentences for whoever is asked again."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)


class Confirmation:
    """A form without fields: the answer is that there is one."""

    fields: Sequence[Field] = ()

    def read(self, content: Mapping[str, Any]) -> None:
        """Return nothing: that the user has accepted is all."""


def requested_schema(fields: Sequence[Field], revision: Revision) -> dict[str, Any]:
    """Return the schema that asks for ``fields`` in ``revision``."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {each.name: _property(each, revision) for each in fields},
    }
    required = [each.name for each in fields if each.required]
    return schema | ({"required": required} if required else {})


def chosen(each: Field, value: Any) -> Any:
    """Return what was chosen of a field's options, with several as a list in any revision.

    Raises :class:`InvalidAnswer` for more than anybody chooses.
    """
    if each.kind != "choices" or not isinstance(value, (str, list)):
        return value
    most = max(MAX_CHOSEN, len(each.options))
    if (value.count(",") if isinstance(value, str) else len(value)) > most:
        raise InvalidAnswer([f"{each.name}: choose {most} at most."])
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return value


def _property(each: Field, revision: Revision) -> dict[str, Any]:
    if each.kind == "choices":
        return _choices(each, revision)
    if each.kind == "choice":
        return _choice(each, revision)
    described = {"type": each.kind, **_common(each), **each.limits}
    return fit(_SCHEMAS[each.kind], described, revision)


def _choice(each: Field, revision: Revision) -> dict[str, Any]:
    common = {"type": "string", **_common(each)}
    values = [option.value for option in each.options]
    if not any(option.title for option in each.options):
        return fit("UntitledSingleSelectEnumSchema", {**common, "enum": values}, revision)
    if revision.select_enums and not each.enum_names:
        return {**common, "oneOf": _titled(each)}
    names = [option.title or option.value for option in each.options]
    return fit("LegacyTitledEnumSchema", {**common, "enum": values, "enumNames": names}, revision)


def _choices(each: Field, revision: Revision) -> dict[str, Any]:
    if not revision.select_enums:
        return _as_text(each, revision)
    items: dict[str, Any] = {"anyOf": _titled(each)}
    if not any(option.title for option in each.options):
        items = {"type": "string", "enum": [option.value for option in each.options]}
    return {"type": "array", **_common(each), "items": items, **each.limits}


def _as_text(each: Field, revision: Revision) -> dict[str, Any]:
    # A revision in which nobody can choose several still has text.
    known = ", ".join(_named(option) for option in each.options)
    about = f"{each.description or ''} Any of: {known}. Separate several by commas.".strip()
    described = {"type": "string", **_common(each), "description": about}
    return fit("StringSchema", described, revision)


def _titled(each: Field) -> list[dict[str, str]]:
    return [
        {"const": option.value, "title": option.title or option.value} for option in each.options
    ]


def _named(option: Option) -> str:
    return f"{option.value} ({option.title})" if option.title else option.value


def _common(each: Field) -> dict[str, Any]:
    common = {"title": each.title, "description": each.description, "default": each.default}
    return {name: value for name, value in common.items() if value is not None}
