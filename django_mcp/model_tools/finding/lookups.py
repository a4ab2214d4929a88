"""What rows can be found by: filters as a dictionary of lookups, and words to be searched for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

from django.db.models import Q, QuerySet
from django.utils.text import smart_split, unescape_string_literal
from pydantic import Field, WithJsonSchema

from ...server.context import Context
from ...server.errors import RegistrationError
from ...server.fields.field_types import DAY, TEXT, YEAR, YEAR_OF_MOMENTS, day
from ..fields.row_fields import SEPARATOR, RowField, RowFields
from ..tool_functions import Arguments

SAME: Final = ("exact", "in", "isnull")
COMPARED: Final = (*SAME, "gt", "gte", "lt", "lte")
DATED: Final = (*COMPARED, "date", "year")
SEARCHED: Final = (
    *SAME,
    "iexact",
    "contains",
    "icontains",
    "startswith",
    "istartswith",
    "endswith",
    "iendswith",
)
MAX_VALUES: Final = 100
"""Of a list of values, one of which is looked for."""
MAX_WORDS: Final = 10
"""That are searched for at once."""
PREFIXES: Final = {"^": "istartswith", "=": "iexact"}
"""What stands in front of a name in ``search_fields``, as in ``ModelAdmin``."""


class LookupFilters:
    """Filters that are lookups of fields, and the arguments for them."""

    def __init__(self, given: Any, fields: RowFields, reserved: Sequence[str]) -> None:
        lookups = given if isinstance(given, Mapping) else dict.fromkeys(given, ("exact",))
        self._lookups: dict[str, tuple[str, str]] = {}
        self.arguments: Arguments = {}
        for name, kinds in lookups.items():
            field = fields.named(name, "filters")
            for kind in kinds if not isinstance(kinds, str) else (kinds,):
                self._add(field, kind, fields.label, reserved)

    def filter(self, rows: QuerySet[Any], given: Mapping[str, Any], ctx: Context) -> QuerySet[Any]:
        """Return those of ``rows`` that the arguments want."""
        wanted: dict[str, Any] = {}
        for name, value in given.items():
            path, kind = self._lookups[name]
            if kind == "date":
                # By moments: for days MySQL wants tables of time zones, and no index is used.
                wanted[f"{path}__gte"], wanted[f"{path}__lte"] = day(value)
            else:
                wanted[f"{path}{SEPARATOR}{kind}"] = value
        return rows.filter(**wanted) if wanted else rows

    def _add(self, field: RowField, kind: str, label: str, reserved: Sequence[str]) -> None:
        allowed = _lookups_of(field)
        if kind not in allowed:
            can = ", ".join(allowed) or "none: write a method of a FilterSet, or a tool"
            raise RegistrationError(
                f"{label}: filters has the lookup {kind!r} of {field.name!r}, which takes {can}."
            )
        name = f"{field.name}{SEPARATOR}{kind}"
        if kind == "exact" and field.name not in reserved:
            name = field.name
        self._lookups[name] = (field.path, kind)
        self.arguments[name] = (_argument(field, kind), None)


def search_argument(about: Any) -> tuple[Any, Any]:
    """Return the argument that takes words, with what the site says of them, if it does."""
    kind: Any = TEXT
    if about:
        kind = Annotated[TEXT, WithJsonSchema({"type": "string", "description": str(about)})]
    return kind | None, None


class Search:
    """Words that are searched for in several fields, each of which must be in one of them."""

    def __init__(self, names: Sequence[str], fields: RowFields, about: str = "") -> None:
        self._lookups = [self._lookup(name, fields) for name in names]
        self.arguments: Arguments = {}
        if names:
            self.arguments["search"] = search_argument(about)

    def filter(self, rows: QuerySet[Any], searched: str | None) -> QuerySet[Any]:
        """Return those of ``rows`` that have every word."""
        for word in _words(searched or ""):
            found: list[Any] = [Q(**{lookup: word}) for lookup in self._lookups]
            rows = rows.filter(Q.create(found, connector=Q.OR))
        return rows

    def _lookup(self, name: str, fields: RowFields) -> str:
        kind = PREFIXES.get(name[:1], "icontains")
        field = fields.named(name.lstrip("".join(PREFIXES)), "search_fields")
        if field.kind is None or field.listed or not field.kind.is_text:
            raise RegistrationError(
                f"{fields.label}: search_fields has {field.name!r}, which is no text. Put it into "
                "filters."
            )
        return f"{field.path}{SEPARATOR}{kind}"


def _lookups_of(field: RowField) -> Sequence[str]:
    if field.kind is None or field.kind.value is None:
        return ()
    if field.listed:
        return SAME
    if field.schema.get("format") in ("date", "date-time"):
        return DATED if field.schema["format"] == "date-time" else (*COMPARED, "year")
    if field.kind.is_text:
        return SEARCHED
    return COMPARED if field.kind.is_ordered and not _is_link(field) else SAME


def _is_link(field: RowField) -> bool:
    return bool(field.model_field is not None and field.model_field.is_relation)


def _argument(field: RowField, kind: str) -> Any:
    if kind == "isnull":
        return bool | None
    if kind == "date":
        return DAY | None
    if kind == "year":
        is_moment = field.schema["format"] == "date-time"
        return (YEAR_OF_MOMENTS if is_moment else YEAR) | None
    assert field.kind is not None
    value: Any = field.kind.argument
    if kind == "in":
        return Annotated[list[value], Field(max_length=MAX_VALUES)] | None
    if field.kind.is_text and kind != "exact":
        return TEXT | None
    return value | None


def _words(searched: str) -> list[str]:
    words = []
    for word in list(smart_split(searched))[:MAX_WORDS]:
        is_quoted = len(word) > 1 and word[0] == word[-1] and word[0] in ("'", '"')
        words.append(unescape_string_literal(word) if is_quoted else word)
    return words
