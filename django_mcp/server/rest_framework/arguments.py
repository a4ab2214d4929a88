"""What a view of REST framework takes, as parameters of a tool."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from django.db import models
from rest_framework import serializers
from rest_framework.schemas.openapi import AutoSchema

from ..api_requests import as_json_schema, parameter
from ..errors import RegistrationError
from .filters import filter_parameters
from .operations import METHODS, Operation, is_type, model_of

_NOT_OF_URLS = ("self", "request", "format")


def keys_of(operation: Operation) -> dict[str, inspect.Parameter]:
    """Return the arguments that stand in the URL, by their names there.

    Raises :class:`RegistrationError` where nothing says of what type one is.
    """
    kind = operation.kind
    found: dict[str, inspect.Parameter] = {}
    if operation.is_detail:
        url = kind.lookup_url_kwarg or kind.lookup_field
        model = model_of(kind)
        schema: dict[str, Any] = {"type": "string"}
        if model is not None and kind.lookup_field == "pk":
            schema = _key_schema(model._meta.pk)
        found[url] = parameter(_argument(url), schema, required=True)
    for url, annotation in _said_of_url(operation).items():
        if url not in found:
            # Nobody else checks it: the converter of the URL would have.
            found[url] = inspect.Parameter(
                _argument(url), inspect.Parameter.KEYWORD_ONLY, annotation=annotation
            )
    return found


def arguments_of(operation: Operation) -> Iterator[inspect.Parameter]:
    """Yield what stands in the query or in the body. Raises :class:`RegistrationError`."""
    if operation.method == "get":
        yield from _query_parameters(operation)
    elif operation.method in ("post", "patch", "put"):
        yield from _body_parameters(operation)


def _argument(url: str) -> str:
    return "id" if url == "pk" else url


def _key_schema(field: Any) -> dict[str, Any]:
    while field.remote_field is not None:
        field = field.target_field
    if isinstance(field, models.IntegerField):
        return {"type": "integer"}
    if isinstance(field, models.UUIDField):
        return {"type": "string", "format": "uuid"}
    return {"type": "string"}


def _said_of_url(operation: Operation) -> dict[str, Any]:
    """Return the type of each part of the URL, as ``kwargs`` or a plain view's function has it."""
    said = {name: value for name, value in operation.kwargs.items() if is_type(value)}
    if not operation.is_plain or operation.function is None:
        return said
    for each in inspect.signature(operation.function, eval_str=True).parameters.values():
        is_needed = each.default is each.empty and each.kind is each.POSITIONAL_OR_KEYWORD
        if not is_needed or each.name in _NOT_OF_URLS or each.name in operation.kwargs:
            continue
        if each.annotation is each.empty:
            raise RegistrationError(
                f"{operation.kind.__qualname__} takes {each.name!r} from its URL, and nothing says "
                f'what that is. Say so: kwargs={{"{each.name}": int}}.'
            )
        said[each.name] = each.annotation
    return said


def _query_parameters(operation: Operation) -> Iterator[inspect.Parameter]:
    """Yield what the filters and the paginator of a list take, or what the site says."""
    if operation.is_described:
        yield from _fields_of(operation)
    elif not operation.is_detail:
        yield from filter_parameters(operation.view())


def _body_parameters(operation: Operation) -> Iterator[inspect.Parameter]:
    """Yield what the serializer reads."""
    if not operation.is_described and operation.is_plain:
        raise RegistrationError(
            f"Nothing says what {operation.kind.__qualname__} takes by {operation.method.upper()}. "
            f'Say so by a serializer: serializers={{"{operation.action}": ...}}; None, if it takes '
            "nothing."
        )
    yield from _fields_of(operation)


def _fields_of(operation: Operation) -> Iterator[inspect.Parameter]:
    kind = _serializer_of(operation)
    if kind is None:
        return
    serializer: Any = kind(partial=operation.method == "patch")
    if not isinstance(serializer, serializers.Serializer):
        return
    schemas = AutoSchema().map_serializer(serializer)["properties"]
    for name, each in serializer.fields.items():
        is_file = isinstance(each, serializers.FileField)
        if each.read_only or is_file or isinstance(each, serializers.HiddenField):
            continue
        is_required = each.required and not serializer.partial
        yield parameter(name, as_json_schema(schemas[name]), required=is_required)


def _serializer_of(operation: Operation) -> Any:
    if operation.is_described:
        return operation.serializer
    view = operation.view()
    is_own = operation.action not in METHODS and "serializer_class" not in operation.given
    if is_own or not hasattr(view, "get_serializer_class"):
        return None  # nothing says what an action of the site's own takes
    return view.get_serializer_class()
