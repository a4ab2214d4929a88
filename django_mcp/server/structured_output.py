"""The structured output of tools: the schema that a return annotation makes, and values of it."""

from __future__ import annotations

import inspect
from collections.abc import Generator, Iterator, Mapping
from types import NoneType, UnionType
from typing import Any, Final, Literal, Never, NoReturn, Union, get_args, get_origin

from django.core.exceptions import SynchronousOnlyOperation
from django.db.models import Model, QuerySet
from mcp_types import CallToolResult, GetPromptResult, PromptMessage
from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from .. import content
from .errors import RegistrationError
from .file_links import FileLink
from .files import is_file_type
from .functions import bare, is_kind
from .json_schema import SCHEMA_ERRORS, PlainJsonSchema, inlined, reason
from .results import WRAP_BYTES, json_fallback, plain_value, serialization_error, unserializable
from .signature import Signature

_ANYTHING = (inspect.Signature.empty, Any, object, NoReturn, Never)
_UNSTRUCTURED = (
    str,
    NoneType,
    *content.BLOCKS,
    CallToolResult,
    GetPromptResult,
    PromptMessage,
)


class Output:
    """The structured output that a return annotation promises."""

    def __init__(self, annotation: Any, label: str) -> None:
        try:
            adapter: TypeAdapter[Any] = TypeAdapter(annotation)
            schema = adapter.json_schema(mode="serialization", schema_generator=PlainJsonSchema)
        except SCHEMA_ERRORS as error:
            raise RegistrationError(
                f"{label}: its return type has no JSON Schema ({reason(error)}). Return pydantic "
                "models, dataclasses, TypedDicts, lists, dicts or plain values; annotate "
                "`-> Any` for unstructured output."
            ) from error
        self.schema = inlined(_inline_root(schema))
        # What is behind the adapter: each call saved is one in every tool's.
        self._validate = adapter.validator.validate_python
        self._to_python = adapter.serializer.to_python
        # Of a plain value pydantic has nothing to warn of. To read the options takes it longer
        # than all the rest.
        is_plain = adapter.core_schema in _PLAIN_SCHEMAS
        self._options = _PLAIN if is_plain else _AS_JSON

    def dump(self, value: Any) -> Any:
        """Return ``value`` as JSON-able Python, checked against the annotation.

        Raises :class:`Unserializable` where it is not what was promised.
        """
        try:
            valid = self._validate(value, from_attributes=True)
            try:
                return self._to_python(valid, **self._options)
            except PydanticSerializationError:
                # pydantic trusts instances, and with them defaults and `model_construct`. What does
                # not look as annotated gets the validation that it has missed.
                fields = self._to_python(valid, by_alias=True, round_trip=True, warnings="none")
                return self._to_python(self._validate(fields), **_AS_JSON)
        except ValidationError as error:
            raise _mismatch(value, error) from error
        except ValueError as error:
            raise serialization_error(error) from error


def output_of(signature: Signature) -> Output | None:
    """Return the structured output that a function's return annotation promises, if any."""
    annotation = signature.return_type
    if _is_unstructured(annotation):
        return None
    if bare(annotation) is bytes:
        raise RegistrationError(f"{signature.label}: {WRAP_BYTES}.")
    if get_origin(bare(annotation)) in (Iterator, Generator):
        annotation = list[get_args(bare(annotation))[0]]  # type: ignore[misc]
    return Output(annotation, signature.label)


def output_schema_of(
    given: dict[str, Any] | Literal[False] | None, output: Output | None, signature: Signature
) -> dict[str, Any] | None:
    """Return the schema that lists show: the site's own, if it has ``given`` one."""
    if not given:
        return output.schema if output else None
    if output is None and signature.return_type is not CallToolResult:
        raise RegistrationError(
            f"{signature.label}: output_schema= needs a return annotation whose values are "
            "structured, for example `-> dict[str, Any]`, or `-> CallToolResult`."
        )
    return given


def text_of(signature: Signature) -> Output | None:
    """Return the output of a function that returns text, or text or nothing."""
    annotation = bare(signature.return_type)
    is_union = get_origin(annotation) in (Union, UnionType)
    kinds = {bare(kind) for kind in (get_args(annotation) if is_union else (annotation,))}
    others = kinds - {NoneType}
    if not others or not all(is_kind(kind, (str,)) and not _is_enum(kind) for kind in others):
        return None
    # Of subclasses of str, such as SafeString, pydantic knows nothing.
    plain = str | None if NoneType in kinds else str
    return Output(signature.return_type if annotation is str else plain, signature.label)


def is_object(schema: Mapping[str, Any]) -> bool:
    """Return whether every instance of ``schema`` is a JSON object."""
    return schema.get("type") == "object"


def wrap_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of ``{"result": ...}``, for revisions whose output must be an object."""
    inner = {key: value for key, value in schema.items() if key not in ("$defs", "$schema")}
    wrapped = {"type": "object", "properties": {"result": inner}, "required": ["result"]}
    return wrapped | {key: schema[key] for key in ("$schema", "$defs") if key in schema}


def structured_text(output: Output, value: Any) -> dict[str, Any]:
    """Return text as structured content, in the form in which the official SDK sends it."""
    return {"result": output.dump(plain_value(value))}


def _mismatch(value: Any, error: ValidationError) -> Exception:
    """Return what to raise for a value that is not what was promised."""
    first = error.errors(include_url=False)[0]
    given = first["input"]
    if first["type"] in _UNREAD and isinstance(given, QuerySet):
        _read(given)
    # A row would be what was promised but for what it lacks.
    if not (first["type"] == "missing" and isinstance(given, Model)):
        try:
            plain_value(given)
        except Exception:
            plain_value(value)  # of a queryset, it is to be named rather than its rows
            raise
    where = ".".join(str(part) for part in first["loc"]) or "the value"
    return unserializable(f"it does not match the return annotation ({where}: {first['msg']})")


def _read(rows: QuerySet[Any]) -> None:
    """Raise what pydantic does not tell: it may be for the log alone."""
    try:
        len(rows)
    except SynchronousOnlyOperation as error:
        raise unserializable(
            f"a QuerySet of {rows.model.__name__} asks the database when it is read, which an "
            "asynchronous function has to wait for. Return [each async for each in queryset]"
        ) from error


def _is_unstructured(annotation: Any) -> bool:
    annotation = bare(annotation)
    if annotation in _ANYTHING:
        return True
    if get_origin(annotation) in (Union, UnionType):
        # Text is also a JSON value, beside others; a content block is nothing else.
        others = [each for each in get_args(annotation) if bare(each) not in (NoneType, str)]
        return not others or any(_is_unstructured(x) or bare(x) is bytes for x in others)
    if get_origin(annotation) is not None:
        parts = get_args(annotation)
        return any(is_kind(part, content.BLOCKS) or _is_file(bare(part)) for part in parts)
    if _is_file(annotation):
        return True
    return is_kind(annotation, _UNSTRUCTURED) and not _is_enum(annotation)


def _is_file(annotation: Any) -> bool:
    return annotation is FileLink or is_file_type(annotation)


def _is_enum(annotation: type) -> bool:
    return hasattr(annotation, "__members__")


def _inline_root(schema: dict[str, Any]) -> dict[str, Any]:
    # A recursive model's schema is a bare reference; clients look for "type" at the root.
    reference = schema.get("$ref")
    if reference is None:
        return schema
    target = schema["$defs"][reference.rsplit("/", 1)[-1]]
    return {**target, "$defs": schema["$defs"]}


_UNREAD: Final = ("list_type", "tuple_type", "set_type", "frozen_set_type", "iteration_error")
"""What pydantic says of a queryset that fails as it is read."""
_PLAIN: Final[dict[str, Any]] = {"mode": "json"}
_PLAIN_SCHEMAS: Final = [{"type": kind} for kind in ("bool", "float", "int", "none", "str")]
_AS_JSON: Final[dict[str, Any]] = {
    **_PLAIN,
    "by_alias": True,
    "warnings": "error",
    "fallback": json_fallback,
}
