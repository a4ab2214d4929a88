"""The one list of fields: what of a row may be shown, and with it, what rows may be found by."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from inspect import signature
from typing import Any, Final, get_type_hints

from django.core.exceptions import FieldDoesNotExist, ObjectDoesNotExist
from django.db.models import (
    Field,
    ForeignObjectRel,
    Model,
    Prefetch,
    QuerySet,
)
from django.utils.functional import cached_property as django_cached_property
from pydantic import TypeAdapter

from ...server.errors import RegistrationError
from ...server.fields.field_types import FieldType, Schema, choices_of, or_null, type_of
from ...server.json_schema import SCHEMA_ERRORS, PlainJsonSchema, inlined
from .databases import load
from .secret_names import check_secrets

MAX_LISTED: Final = 50
"""How many related rows a result shows."""
SEPARATOR: Final = "__"
MORE: Final = "more"
"""Names the lists of a result of which there is more than it shows."""

ID_AND_TEXT: Final[Schema] = {"type": "object"}
"""The schema of what refers to another row, ``{"id": 3, "text": "Ada"}``."""

Getter = Callable[[Any], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowField:
    """Something that a result shows of a row."""

    name: str
    schema: Schema
    get: Getter
    """Returns the value, given the row."""
    model_field: Any = None
    """The field of a model that has the value; ``None`` where it is computed."""
    kind: FieldType | None = None
    """What its values are; ``None`` where rows cannot be found by them."""
    path: str = ""
    """The lookup that leads to it."""
    is_nullable: bool = False
    related: str = ""
    """What is to be selected together with the row."""
    listed: str = ""
    """What is to be prefetched for the row, since it is a list."""

    @property
    def is_own(self) -> bool:
        """Whether it is a field of the row itself, and of no other."""
        return self.model_field is not None and SEPARATOR not in self.path


class RowFields:
    """Fields of a model, by name, as the site has listed them.

    ``method_of`` returns the method of a name, which computes a value from a row, if there is one.
    Raises :class:`RegistrationError` for what cannot be shown, or looks secret and is not
    ``allowed``.
    """

    def __init__(
        self,
        model: type[Model],
        names: Sequence[str],
        label: str,
        *,
        method_of: Callable[[str], Getter | None] = lambda name: None,
        allowed: Collection[str] = (),
    ) -> None:
        self.model = model
        self.label = label
        self._method_of = method_of
        self._allowed = allowed
        self._fields = {name: self._field(name) for name in _checked_names(names, label)}
        self._lists = [each for each in self._fields.values() if each.listed]

    def __iter__(self) -> Iterator[RowField]:
        return iter(self._fields.values())

    def __contains__(self, name: object) -> bool:
        return name in self._fields

    @property
    def names(self) -> Sequence[str]:
        """The names, in order."""
        return tuple(self._fields)

    def subset(self, names: Sequence[str], option: str) -> RowFields:
        """Return those of ``names``, which ``option`` has, as fields of their own."""
        for name in names:
            self.named(name, option)
        return RowFields(
            self.model, names, self.label, method_of=self._method_of, allowed=self._allowed
        )

    def named(self, name: str, option: str) -> RowField:
        """Return the field that ``option`` names.

        What rows can be found by can be found out. So whatever is not to be seen is no way to find
        them either; raises :class:`RegistrationError`.
        """
        if name not in self._fields:
            raise RegistrationError(
                f"{self.label}: {option} has {name!r}, and fields has not. By what rows can be "
                "found, or are in order of, it can be found out: add it to fields, or leave it out "
                "here, too."
            )
        return self._fields[name]

    @cached_property
    def schema(self) -> Schema:
        """The schema of a row, in as few characters as may be: models pay for each."""
        return {"type": "object", "properties": {each.name: each.schema for each in self}}

    def of(self, row: Any) -> dict[str, Any]:
        """Return what is shown of a row; lists that are cut are named."""
        shown = {each.name: each.get(row) for each in self}
        cut = [
            each.name for each in self._lists if len(getattr(row, _to(each.listed))) > MAX_LISTED
        ]
        return shown | ({MORE: cut} if cut else {})

    def loading(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        """Return ``rows`` with all that is shown of each, by the same number of queries for any."""
        related, listed = self._related, self._prefetched
        rows = rows.select_related(*related) if related else rows
        return rows.prefetch_related(*listed) if listed else rows

    def load(self, rows: Sequence[Any]) -> None:
        """Load what is shown of rows, but for what they have already."""
        load(rows, [*self._related, *self._prefetched])

    @property
    def _related(self) -> Sequence[str]:
        return [each.related for each in self if each.related]

    @property
    def _prefetched(self) -> Sequence[Prefetch[Any]]:
        return [
            Prefetch(
                each.listed, queryset=_few(each.model_field.related_model), to_attr=_to(each.listed)
            )
            for each in self._lists
        ]

    def _field(self, name: str) -> RowField:
        method = self._method_of(name)
        if method is None:
            return self._on_path(name)
        self._check([(name, None)], name)
        return self._computed_by(method, name)

    def _on_path(self, name: str) -> RowField:
        *before, last = name.split(SEPARATOR)
        model, above, is_nullable = self.model, [], False
        for part in before:
            field = self._model_field(model, part, name)
            if not _leads_to_one(field):
                raise RegistrationError(
                    f"{self.label}: {name!r} leads over {part!r} to many rows. Show them by "
                    "related, in the result of a single row."
                )
            above.append((part, field))
            is_nullable |= bool(getattr(field, "null", False)) or isinstance(
                field, ForeignObjectRel
            )
            model = field.related_model
        get, path = _walking(before), SEPARATOR.join(before)
        computed = self._computed(name, model, last)
        if computed is not None:
            self._check([*above, (last, None)], name)
            schema = or_null(computed) if is_nullable else computed
            return RowField(name=name, schema=schema, get=_reading(get, last), related=path)
        field = self._model_field(model, last, name)
        self._check([*above, (last, field)], name)
        return self._of_field(
            name, last, field, get, path, is_nullable or bool(getattr(field, "null", False))
        )

    def _of_field(
        self, name: str, last: str, field: Any, get: Getter, path: str, is_nullable: bool
    ) -> RowField:
        full = f"{path}{SEPARATOR}{field.name}" if path else field.name
        if field.many_to_many and not field.auto_created and not path:
            return _list_of(name, field)
        if not isinstance(field, Field) or field.many_to_many:
            raise RegistrationError(
                f"{self.label}: {name!r} is about many rows. Show them by related, in the result "
                "of a single row."
            )
        is_link = field.is_relation and last != field.attname
        valued = _valued(field)
        kind = None if valued is None else type_of(valued)
        if kind is None:
            raise RegistrationError(
                f"{self.label}: {name!r} is a {type(field).__name__}, which JSON has not. Leave "
                "it out, or show something of it by a method of the class."
            )
        schema, read = kind.schema, _reading(get, field.attname, kind.show)
        if is_link:
            schema, read = ID_AND_TEXT, _linking(get, field)
        elif choices_of(field) and kind.schema != {"type": "string"}:
            schema, read = ID_AND_TEXT, _choosing(get, field)
        return RowField(
            name=name,
            schema=or_null(schema) if is_nullable else schema,
            get=read,
            model_field=field,
            kind=kind,
            path=full,
            is_nullable=is_nullable,
            related=full if is_link else path,
        )

    def _computed_by(self, method: Getter, name: str) -> RowField:
        if len(signature(method).parameters) != 1:
            raise RegistrationError(
                f"{self.label}: the method {name!r} takes one argument, the row: "
                f"`def {name}(self, row) -> str:`."
            )
        return RowField(name=name, schema=_returned(method), get=method)

    def _computed(self, name: str, model: type[Model], last: str) -> Schema | None:
        """Return the schema of a property of a model, if that is what the name means."""
        found = next((vars(kind)[last] for kind in model.__mro__ if last in vars(kind)), None)
        if last != "pk" and isinstance(found, property) and found.fget is not None:
            return _returned(found.fget)
        if isinstance(found, (cached_property, django_cached_property)):
            return _returned(found.func)
        return None

    def _model_field(self, model: type[Model], part: str, name: str) -> Any:
        try:
            return model._meta.pk if part == "pk" else model._meta.get_field(part)
        except FieldDoesNotExist:
            known = ", ".join(sorted(field.name for field in model._meta.get_fields()))
            raise RegistrationError(
                f"{self.label}: {model.__name__} has no field {part!r} for {name!r}, and no such "
                f"property. It has {known}. A method `def {part}(self, row)` of the class makes "
                "one."
            ) from None

    def _check(self, names: Sequence[tuple[str, Any]], path: str) -> None:
        check_secrets(self.label, path, names, self._allowed)


def id_and_text(key: Any, row: Any) -> dict[str, Any] | None:
    """Return how a result refers to another row."""
    return None if row is None else {"id": key, "text": str(row)}


def _checked_names(names: Any, label: str) -> Sequence[str]:
    if names == "__all__" or isinstance(names, str) or not names:
        raise RegistrationError(
            f'{label}: fields names what models may read, as in fields = ["id", "subject"]. There '
            "is no way to say all: a column that is added later would be shown as well."
        )
    return tuple(dict.fromkeys(names))


def _valued(field: Any) -> Any:
    """Return the field whose values a field has: that of another model, if it leads to one.

    ``None`` where there is no such one, as of a generic foreign key.
    """
    while field.is_relation:
        if len(getattr(field, "foreign_related_fields", ())) != 1:
            return None
        field = field.target_field
    return field


def _leads_to_one(field: Any) -> bool:
    return bool(field.is_relation and (field.many_to_one or field.one_to_one)) and bool(
        field.related_model
    )


def _few(model: type[Model]) -> QuerySet[Any]:
    rows = model._default_manager.all()
    return (rows if rows.ordered else rows.order_by("pk"))[: MAX_LISTED + 1]


def _to(listed: str) -> str:
    """Return the attribute of a row that has the first of its list."""
    return f"_mcp_{listed}"


def _list_of(name: str, field: Any) -> RowField:
    key = field.related_model._meta.pk
    attribute = _to(field.name)

    def read(row: Any) -> list[Any]:
        return [id_and_text(each.pk, each) for each in getattr(row, attribute)[:MAX_LISTED]]

    return RowField(
        name=name,
        schema={"type": "array", "items": ID_AND_TEXT},
        get=read,
        model_field=field,
        kind=type_of(key),
        path=field.name,
        listed=field.name,
    )


def _walking(parts: Sequence[str]) -> Getter:
    def walk(row: Any) -> Any:
        for part in parts:
            try:
                row = None if row is None else getattr(row, part)
            except ObjectDoesNotExist:
                return None  # the other side of a one-to-one relation
        return row

    return walk


def _reading(get: Getter, name: str, show: Getter | None = None) -> Getter:
    def read(row: Any) -> Any:
        holder = get(row)
        value = None if holder is None else getattr(holder, name)
        return value if show is None else show(value)

    return read


def _linking(get: Getter, field: Any) -> Getter:
    def link(row: Any) -> Any:
        holder = get(row)
        if holder is None:
            return None
        return id_and_text(getattr(holder, field.attname), getattr(holder, field.name))

    return link


def _choosing(get: Getter, field: Any) -> Getter:
    texts = dict(field.flatchoices)

    def choose(row: Any) -> Any:
        holder = get(row)
        value = None if holder is None else getattr(holder, field.attname)
        return None if value is None else {"id": value, "text": str(texts.get(value, value))}

    return choose


def _returned(function: Callable[..., Any]) -> Schema:
    """Return the schema of what a function says that it returns; of anything without a word."""
    try:
        annotation = get_type_hints(function, include_extras=True).get("return", Any)
        adapter: TypeAdapter[Any] = TypeAdapter(annotation)
        return inlined(adapter.json_schema(mode="serialization", schema_generator=PlainJsonSchema))
    except (NameError, AttributeError, *SCHEMA_ERRORS):
        return {}
