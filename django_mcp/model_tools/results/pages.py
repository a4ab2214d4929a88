"""``Page``: a function returns a queryset, and clients get it page by page."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, Generic, TypeVar, get_args

from asgiref.sync import sync_to_async
from django.db.models import Manager, Model, QuerySet
from pydantic import Field, GetCoreSchemaHandler, TypeAdapter
from pydantic_core import core_schema, to_jsonable_python

from ...server.context import Context
from ...server.errors import RegistrationError
from ...server.filled_parameters import Provide
from ...server.functions import is_async, label_of, parameters_of
from ...server.result_types import take_place_of
from ...server.results import unserializable
from ..finding.keyset import Order
from ..finding.pages import MAX_PAGE
from .queryset_orders import order_of
from .shown_fields import Shown, fields_in

T = TypeVar("T")

PAGE_ROWS: Final = 20
"""Rows of a page, unless the client wants another number."""

NEXT: Final = "next"
LIMIT: Final = "limit"
CONTEXT: Final = "page_ctx_"

_Limit = Annotated[int, Field(ge=1, le=MAX_PAGE, description="Items of a page, or 20")]
_Next = Annotated[str, Field(description="`next` of the page before")]


class Page(Generic[T]):
    """Annotate a tool that returns a queryset with it: ``-> Page[TicketOut]``.

    Clients get ``items``, of the type in brackets, and ``next`` if there are more, which they give
    back for the page after. Both ``next`` and ``limit`` are arguments of the tool, of which the
    function knows nothing. Rows are in the order of the queryset; what has none of its own is in
    order of the primary key. Where type checkers look, ``return Page.of(queryset)``.
    """

    def __init__(self, rows: Any) -> None:
        self.rows = rows

    @classmethod
    def of(cls, rows: Any) -> Page[Any]:
        """Return a queryset, or a manager, as a page of it, which is cut when it is sent."""
        return Page(rows)

    @classmethod
    def tool_function(cls, function: Callable[..., Any], annotation: Any) -> Callable[..., Any]:
        """Return a function that takes a cursor, and returns a page of what ``function`` does."""
        parameters = parameters_of(function)
        names = {each.name for each in parameters}
        if twice := names & {NEXT, LIMIT}:
            raise RegistrationError(
                f"{label_of(function)}: Page takes the arguments {NEXT!r} and {LIMIT!r} from "
                f"clients. Give the parameter {min(twice)!r} another name."
            )
        cut = _Cutter(function, annotation).cut

        def paged(**values: Any) -> Any:
            asked = {name: values.pop(name) for name in (CONTEXT, NEXT, LIMIT)}
            return cut(function(**values), asked, values)

        async def apaged(**values: Any) -> Any:
            asked = {name: values.pop(name) for name in (CONTEXT, NEXT, LIMIT)}
            rows = await function(**values)
            return await sync_to_async(cut)(rows, asked, values, validates=True)

        wrapper = apaged if is_async(function) else paged
        take_place_of(wrapper, function, [*parameters, *_PARAMETERS])
        return wrapper

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        """Return the schema of a page."""
        items = handler.generate_schema(_list_of(source))
        fields = {
            "items": core_schema.typed_dict_field(items),
            NEXT: core_schema.typed_dict_field(core_schema.str_schema(), required=False),
        }
        return core_schema.typed_dict_schema(fields)


class _Cutter:
    """Makes pages of what a function returns."""

    def __init__(self, function: Callable[..., Any], annotation: Any) -> None:
        self._label = f"{getattr(function, '__module__', '')}.{label_of(function)}"
        self._list = _list_of(annotation)
        self._fields = fields_in(self._list)
        self._adapter: TypeAdapter[Any] | None = None

    def cut(
        self,
        value: Any,
        asked: Mapping[str, Any],
        values: Mapping[str, Any],
        *,
        validates: bool = False,
    ) -> dict[str, Any]:
        """Return a page, which ``asked`` has the cursor of, given all ``values`` beside.

        ``validates``: nothing of it may ask the database afterwards.
        """
        rows = _rows_of(value)
        order = order_of(rows)
        ctx, cursor, limit = asked[CONTEXT], asked[NEXT], asked[LIMIT] or PAGE_ROWS
        purpose = self._purpose(order, rows, values)
        place = order.read(cursor, ctx, purpose) if cursor else None
        if self._fields is not None:
            rows = self._fields.loading(rows)
        items, last = order.cut(order.walk(order.sort(rows), place, limit + 1), limit)
        page: dict[str, Any] = {"items": self._validated(items) if validates else items}
        return page if last is None else {**page, NEXT: order.write(last, ctx, purpose)}

    def _purpose(
        self, order: Order, rows: QuerySet[Any], values: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return what a cursor is good for: this function and order, with the same arguments."""
        by = [[each.field.path, each.descending] for each in order.keys]
        given = to_jsonable_python(values, fallback=_named, bytes_mode="base64", by_alias=True)
        return {"of": [self._label, rows.model._meta.label, by], "given": given}

    def _validated(self, items: list[Any]) -> Any:
        if self._fields is not None:
            return Shown(self._fields.show_all(items))
        if self._adapter is None:
            self._adapter = TypeAdapter(self._list)
        return self._adapter.validate_python(items, from_attributes=True)


def _list_of(annotation: Any) -> Any:
    """Return the annotation of the items of a page."""
    items = get_args(annotation)
    if not items:
        raise RegistrationError("Page needs to know of what: `-> Page[TicketOut]`.")
    fields = fields_in(items[0])
    return list[items[0]] if fields is None else Annotated[list[Any], fields]  # type: ignore[valid-type]


def _rows_of(value: Any) -> QuerySet[Any]:
    rows = value.rows if isinstance(value, Page) else value
    if isinstance(rows, Manager):
        rows = rows.all()
    if not isinstance(rows, QuerySet):
        raise unserializable(
            f"a Page is cut out of a queryset, not of {type(rows).__name__}. Return the queryset "
            "as it is, or annotate the function `-> list[...]`"
        )
    if rows.query.is_sliced or rows.query.combinator:
        raise unserializable(
            "a Page is cut out of the whole: return the queryset without slicing it, and without "
            "union() and its like"
        )
    return rows


def _named(value: Any) -> Any:
    """Return what an argument is, where JSON has no word for it."""
    # What the server fills in otherwise is the same for the same caller and arguments.
    return [value._meta.label, str(value.pk)] if isinstance(value, Model) else None


def _context(ctx: Context) -> Context:
    return ctx


_KIND: Final = inspect.Parameter.KEYWORD_ONLY
_PARAMETERS: Final = (
    inspect.Parameter(LIMIT, _KIND, default=None, annotation=_Limit | None),
    inspect.Parameter(NEXT, _KIND, default=None, annotation=_Next | None),
    inspect.Parameter(CONTEXT, _KIND, annotation=Annotated[Any, Provide(_context)]),
)
