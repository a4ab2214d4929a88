"""``Fields``: rows that a function returns, shown by these fields alone."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from asgiref.sync import sync_to_async
from django.core.exceptions import SynchronousOnlyOperation
from django.db.models import Manager, Model, QuerySet
from django.db.models.query import ModelIterable
from pydantic import GetCoreSchemaHandler, PlainValidator, WithJsonSchema
from pydantic_core import core_schema

from ...server.errors import RegistrationError
from ...server.fields.field_types import Schema
from ...server.functions import bare, is_async, parameters_of
from ...server.result_types import extras_of, is_list, take_place_of
from ...server.results import plain_value, unserializable
from ..fields.row_fields import RowFields


class Shown:
    """What is shown already, wherever that was done."""

    def __init__(self, value: Any) -> None:
        self.value = value


class Fields:
    """Annotate what a tool returns with it, to show rows of a model by these fields alone.

    ``-> Annotated[Any, Fields(Ticket, ["id", "subject"])]`` is for an instance, and
    ``-> list[Annotated[Any, Fields(Ticket, ["id", "subject"])]]`` for a queryset or a list of them;
    the type may as well be the model's. ``fields`` are as those of :class:`ModelTools`: also
    properties, and fields of other rows such as ``"customer__name"``. What they need is loaded by
    the same number of queries for any number of rows. Raises :class:`RegistrationError` for a field
    that there is not, and one that looks as if it held a secret and is not in ``allow_secret``.
    """

    def __init__(
        self, model: Any, fields: Sequence[str], *, allow_secret: Sequence[str] = ()
    ) -> None:
        if not (isinstance(model, type) and issubclass(model, Model)):
            raise RegistrationError(
                f'Fields begins with a model: `Fields(Ticket, ["id", "subject"])`, not {model!r}.'
            )
        self.model = model
        self._fields = RowFields(
            model, fields, f"Fields({model.__name__})", allowed=tuple(allow_secret)
        )

    def loading(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        """Return a queryset that loads what is shown of each row.

        Raises :class:`Unserializable` for one of another model.
        """
        if not issubclass(rows.model, self.model):
            raise self._no_row(rows.model())
        return self._fields.loading(rows)

    def show(self, row: Any) -> Any:
        """Return what is shown of a row; ``None`` of none."""
        if row is None:
            return None
        (shown,) = self.show_all([row])
        return shown

    def show_all(self, rows: Any) -> list[Any]:
        """Return what is shown of each of some rows, which are a queryset, a manager or a list.

        Raises :class:`Unserializable` for what are no rows of the model.
        """
        return [plain_value(self._fields.of(row)) for row in self._loaded(rows)]

    def tool_function(self, function: Callable[..., Any], annotation: Any) -> Callable[..., Any]:
        """Return a function that shows what ``function`` returns where it may ask the database."""
        is_many = is_list(bare(annotation))
        kind: Any = self.model | None if _may_lack(annotation) else self.model
        shows: Any = Annotated[list[Any] if is_many else kind, self]
        show = self.show_all if is_many else self.show

        def shown(**values: Any) -> Any:
            return Shown(show(function(**values)))

        async def ashown(**values: Any) -> Any:
            return Shown(await sync_to_async(show)(await function(**values)))

        wrapper = ashown if is_async(function) else shown
        take_place_of(wrapper, function, parameters_of(function), returns=shows)
        return wrapper

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        """Return the schema of a row, or of a list of them if that is what is annotated."""
        is_many = is_list(bare(source))
        show = self.show_all if is_many else self.show

        def read(value: Any) -> Any:
            return value.value if isinstance(value, Shown) else show(value)

        schema: Schema = copy.deepcopy(self._fields.schema)
        if is_many:
            schema = {"type": "array", "items": schema}
        elif _may_lack(source):
            schema = {"anyOf": [schema, {"type": "null"}]}
        shown = Annotated[Any, PlainValidator(read), WithJsonSchema(schema)]
        return handler.generate_schema(shown)

    def _loaded(self, rows: Any) -> list[Any]:
        """Return rows with all that is shown of them."""
        if isinstance(rows, Manager):
            rows = rows.all()
        if isinstance(rows, QuerySet) and not _is_read(rows):
            rows = self.loading(rows)
        if not isinstance(rows, Iterable) or isinstance(rows, (str, dict)):
            raise self._no_row(rows)
        return self._read(rows)

    def _read(self, rows: Any) -> list[Any]:
        try:
            found = list(rows)
            for each in found:
                if not isinstance(each, self.model):
                    raise self._no_row(each)
            self._fields.load(found)
        except SynchronousOnlyOperation as error:
            raise unserializable(
                f"rows of {self.model.__name__} ask the database when they are shown, which an "
                "asynchronous function has to wait for. Have Fields stand in its return "
                "annotation itself, and not within a model"
            ) from error
        return found

    def _no_row(self, value: Any) -> Exception:
        return unserializable(
            f"Fields({self.model.__name__}) shows rows of this model, not {type(value).__name__}. "
            "Return instances or a queryset of them, without values()"
        )


def fields_in(annotation: Any) -> Fields | None:
    """Return the :class:`Fields` in an annotation, if any."""
    return next((each for each in extras_of(annotation) if isinstance(each, Fields)), None)


def _may_lack(source: Any) -> bool:
    source = bare(source)
    return get_origin(source) in (Union, UnionType) and NoneType in get_args(source)


def _is_read(rows: QuerySet[Any]) -> bool:
    """Return whether nothing can be loaded together with a queryset any more."""
    is_read = rows._result_cache is not None
    return is_read or bool(rows.query.combinator) or rows._iterable_class is not ModelIterable
