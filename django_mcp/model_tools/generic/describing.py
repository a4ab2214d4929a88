"""What ``describe_model`` says of a model, in as few characters as say it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final

from ...server.fields.bound_forms import CLEAR
from ...server.fields.field_types import Schema
from ..admin.admin_options import names_on_page
from ..admin.admin_requests import AdminContext
from ..changing.confirming import CONFIRM
from ..changing.writing import VERSION
from ..fields.row_fields import RowField, RowFields
from ..finding.pages import RESERVED
from .offered_models import OfferedModel, OfferedModels, OfferedOperation

IDS: Final = "ids"


def describe(ctx: AdminContext, model: OfferedModel, models: OfferedModels) -> dict[str, Any]:
    """Return what a caller may see of a model, find it by, and do with it."""
    labels = {each.model: each.label for each in models.visible(ctx)}
    fields, columns, lists = _fields(ctx, model), _columns(ctx, model), _lists(ctx, model)
    arguments = model.find.schema["properties"]
    description: dict[str, Any] = {
        "model": model.label,
        "id": model.key,
        "fields": {each.name: _field(each, labels) for each in fields},
        "lists": {name: _in_words(row["properties"]) for name, row in lists.items()},
        "columns": {each.name: _field(each, labels) for each in columns if each.name not in fields},
        "search": "search" in arguments and arguments["search"].get("description", True),
        "filters": _in_words({name: arguments[name] for name in filter_names(model)}),
        "ordering": _choices(arguments.get("ordering", {})),
        **_writing(ctx, model, lists),
        "delete": model.operation("delete", ctx) is not None,
        "actions": {name: _action(each) for name, each in model.actions(ctx).items()},
    }
    return {name: value for name, value in description.items() if value not in (False, [], {})}


def value_names(model: OfferedModel, operation: OfferedOperation) -> list[str]:
    """Return the names of the values that ``create`` or ``update`` writes."""
    others = (model.key, VERSION, CLEAR) if operation.kind == "update" else ()
    return [name for name in operation.names if name not in others]


def filter_names(model: OfferedModel) -> list[str]:
    """Return the names of the filters that rows are found by."""
    return [name for name in model.find.names if name not in RESERVED]


def _fields(ctx: AdminContext, model: OfferedModel) -> RowFields:
    """Return what the page of a row shows to the caller."""
    options, request = model.admin.options, ctx.admin_request
    names = _of_no_row(lambda: names_on_page(options.admin, request, options.model()), None)
    return model.admin.reading.fields if names is None else options.shown.of(names)


def _columns(ctx: AdminContext, model: OfferedModel) -> RowFields:
    """Return what the list of rows shows to the caller."""
    options = model.admin.options
    admin: Any = options.admin
    return options.shown.of(admin.get_list_display(ctx.admin_request))


def _lists(ctx: AdminContext, model: OfferedModel) -> dict[str, Schema]:
    """Return the schemas of rows of the inlines that the caller sees, by name."""
    inlines = model.admin.reading.inlines
    schemas = _of_no_row(lambda: inlines.schemas(ctx.admin_request), {})
    return {name: schema["items"] for name, schema in schemas.items()}


def _of_no_row(ask: Callable[[], Any], otherwise: Any) -> Any:
    """Return what an admin says of a row that is not there, or what else if it cannot."""
    try:
        return ask()
    except Exception:
        return otherwise


def _writing(ctx: AdminContext, model: OfferedModel, lists: Collection[str]) -> dict[str, Any]:
    """Return which values can be written, with what each is said once."""
    hidden = {*model.lists} - {*lists}
    create, update = model.operation("create", ctx), model.operation("update", ctx)
    operations: dict[str, Any] = {}
    values: dict[str, Any] = {}
    for operation in filter(None, (create, update)):
        for name in _shown_values(model, operation, hidden):
            schema = operation.schema["properties"][name]
            known = values.setdefault(name, schema)
            values[name] = known if known == schema else {"anyOf": [known, schema]}
    if create is not None:
        names = _shown_values(model, create, hidden)
        required = [name for name in names if name in create.signature.required]
        operations["create"] = {"values": names, "required": required}
    if update is not None:
        clear = update.schema["properties"].get(CLEAR, {})
        operations["update"] = {
            "values": _shown_values(model, update, hidden),
            "clear": _choices(clear.get("items", {})),
        }
    return {"values": _in_words(values), **operations}


def _shown_values(
    model: OfferedModel, operation: OfferedOperation, hidden: Collection[str]
) -> list[str]:
    return [name for name in value_names(model, operation) if name not in hidden]


def _action(operation: OfferedOperation) -> dict[str, Any]:
    return {"about": operation.description, "asks": CONFIRM in operation.names}


def _field(field: RowField, labels: dict[Any, str]) -> Any:
    """Return what a field is: its type, what may be chosen, and which model it leads to."""
    more: Schema = {}
    if field.kind is not None and field.kind.choices:
        more["choices"] = {str(value): text for value, text in field.kind.choices.items()}
    leads_to = labels.get(getattr(field.model_field, "related_model", None))
    if leads_to is not None and "object" in str(field.schema):
        more["model"] = leads_to
    return _in_short({**field.schema, **more})


def _choices(schema: Schema) -> list[Any]:
    return list(schema.get("enum") or ([schema["const"]] if "const" in schema else []))


def _in_words(properties: Schema) -> dict[str, Any]:
    return {name: _in_short(schema) for name, schema in properties.items()}


def _in_short(schema: Schema) -> Any:
    """Return a schema, or the word that says as much: ``integer``, ``date-time or null``."""
    if not schema:
        return "any"
    kinds, kind = schema.get("type"), schema.get("format")
    if schema.keys() - {"type", "format"} or not kinds:
        return schema
    several: list[str] = kinds if isinstance(kinds, list) else [kinds]
    return " or ".join(str(kind) if kind and each == "string" else each for each in several)
