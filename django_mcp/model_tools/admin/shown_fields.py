"""What an admin shows of a row, as fields of a result: columns, callables, never a secret."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

from django.contrib.admin.utils import lookup_field
from django.core.exceptions import FieldDoesNotExist, ObjectDoesNotExist
from django.db.models import Manager, Model, QuerySet
from django.db.models.constants import LOOKUP_SEP
from django.utils.functional import Promise
from pydantic_core import to_jsonable_python

from ...server.errors import RegistrationError
from ..fields.row_fields import MAX_LISTED, RowFields, id_and_text
from ..fields.secret_names import looks_secret
from .admin_requests import as_text

TEXTS: Final = ("text", "title", "label", "as_text")
"""What the text of a row may be called, which an admin calls ``__str__``."""
VALUES_OF_SECRETS: Final = frozenset({"key", "value", "code", "data"})
"""Names that say of a model called ``Token`` that there is the token."""


class ShownFields:
    """Makes fields of the names that an admin gives, of its model or an inline's.

    ``admin`` may have methods that compute values. What looks secret and is not ``allowed`` is left
    out, and so is what JSON has not.
    """

    def __init__(self, model: type[Model], admin: Any, allowed: Collection[str]) -> None:
        self.model = model
        self._admin = admin
        self._allowed = allowed
        self._known: dict[tuple[str, ...], RowFields] = {}
        self._callables: dict[str, Callable[[Any], Any]] = {}
        self._text = next(
            name for name in TEXTS if _field_of(model, name) is None and not hasattr(admin, name)
        )

    @property
    def key(self) -> str:
        """The name of the primary key, by which rows are asked for."""
        return self.model._meta.pk.name

    def of(self, names: Sequence[Any]) -> RowFields:
        """Return the fields of these names, after the key."""
        wanted = tuple(dict.fromkeys([self.key, *map(self.name_of, names)]))
        if wanted not in self._known:
            shown = [name for name in wanted if self._single(name) is not None]
            self._known[wanted] = self._fields(shown)
        return self._known[wanted]

    def name_of(self, given: Any) -> str:
        """Return what a field is called that an admin names by a function, or by ``__str__``."""
        if isinstance(given, str):
            return self._text if given == "__str__" else given
        name = getattr(given, "__name__", type(given).__name__)
        name = name if name.isidentifier() else "computed"
        if self._callables.setdefault(name, given) is not given:
            name = f"{name}_{len(self._callables)}"
            self._callables[name] = given
        return name

    def is_secret(self, path: str) -> bool:
        """Return whether something on a path of names looks secret, and was not allowed."""
        if path in self._allowed:
            return False
        model: Any = self.model
        for part in path.split(LOOKUP_SEP):
            field = _field_of(model, part) if model is not None else None
            if looks_secret(part, field) or (
                model is not None and part in VALUES_OF_SECRETS and looks_secret(model.__name__)
            ):
                return True
            model = getattr(field, "related_model", None)
        return False

    def is_column(self, name: str) -> bool:
        """Return whether a name is that of a field, or a path to one, and nothing computed."""
        if name in self._callables:
            return False
        model: Any = self.model
        for part in name.split(LOOKUP_SEP):
            field = _field_of(model, part) if model is not None else None
            if field is None:
                return False
            model = getattr(field, "related_model", None)
        return True

    def _single(self, name: str) -> RowFields | None:
        if self.is_secret(name):
            return None
        if not self.is_column(name) and not self._is_computed(name):
            return None
        try:
            return self._fields([name])
        except RegistrationError:
            return None

    def _is_computed(self, name: str) -> bool:
        if name in self._callables or name == self._text:
            return True
        first = name.split(LOOKUP_SEP, maxsplit=1)[0]
        return any(hasattr(each, first) for each in (self._admin, self.model))

    def _fields(self, names: Sequence[str]) -> RowFields:
        return RowFields(
            self.model,
            names,
            type(self._admin).__name__,
            method_of=self._method_of,
            # What is secret has been left out, by more than names.
            allowed=names,
        )

    def _method_of(self, name: str) -> Callable[[Any], Any] | None:
        if self.is_column(name):
            return None
        given: Any = self._callables.get(name, "__str__" if name == self._text else name)

        def value(row: Any) -> Any:
            try:
                return plain(lookup_field(given, row, self._admin)[2])
            except (AttributeError, ObjectDoesNotExist):
                return None  # as the admin's pages have it: a dash

        return value


def plain(value: Any) -> Any:
    """Return what an admin would show of a value, as JSON has it: without HTML."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, (str, Promise)):
        return as_text(value)
    if isinstance(value, Model):
        return id_and_text(value.pk, value)
    if isinstance(value, (Manager, QuerySet)):
        return [id_and_text(each.pk, each) for each in value.all()[:MAX_LISTED]]
    return to_jsonable_python(value, fallback=as_text)


def _field_of(model: Any, name: str) -> Any:
    """Return the field of a name that has values of its own, or leads to rows; else ``None``."""
    opts = model._meta
    if name == "pk":
        return opts.pk
    try:
        field = opts.get_field(name)
    except FieldDoesNotExist:
        return None
    is_own = field.concrete or field.many_to_many
    return field if is_own and (not field.is_relation or field.related_model) else None
