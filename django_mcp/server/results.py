"""What user functions return, as the results of MCP."""

from __future__ import annotations

import inspect
import json
from collections.abc import Generator, Iterator, Mapping
from types import NoneType, UnionType
from typing import Any, Never, NoReturn, Union, get_args, get_origin

from django.db import models
from django.utils.functional import Promise
from mcp_types import CallToolResult, GetPromptResult, PromptMessage
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

from . import content
from .errors import RegistrationError, Unserializable
from .functions import bare, is_kind
from .inlining import inlined
from .json_schema import SCHEMA_ERRORS, PlainJsonSchema, reason
from .signature import Signature

"""Gives a framework object a JSON form, or raises ``TypeError`` with the cure."""

_ANYTHING = (Signature.empty, Any, object, NoReturn, Never)
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
            self._adapter: TypeAdapter[Any] = TypeAdapter(annotation)
            schema = self._adapter.json_schema(
                mode="serialization", schema_generator=PlainJsonSchema
            )
        except SCHEMA_ERRORS as error:
            raise RegistrationError(
                f"{label}: its return type has no JSON Schema ({reason(error)}). Return pydantic "
                "models, dataclasses, TypedDicts, lists, dicts or plain values; annotate "
                "`-> Any` for unstructured output."
            ) from error
        self.schema = inlined(_inline_root(schema))

    def dump(self, value: Any) -> Any:
        """Return ``value`` as JSON-able Python, checked against the annotation."""
        value = self._adapter.validate_python(value, from_attributes=True)
        try:
            return self._dump(value)
        except PydanticSerializationError:
            # pydantic trusts instances, and with them defaults and `model_construct`. What does
            # not look as annotated gets the validation that it has missed.
            fields = self._adapter.dump_python(
                value, by_alias=True, round_trip=True, warnings="none"
            )
            return self._dump(self._adapter.validate_python(fields))

    def _dump(self, value: Any) -> Any:
        return self._adapter.dump_python(
            value, mode="json", by_alias=True, warnings="error", fallback=_fallback
        )


def output_of(signature: Signature) -> Output | None:
    """Return the structured output that a function's return annotation promises, if any."""
    annotation = signature.return_type
    if _is_unstructured(annotation):
        return None
    if bare(annotation) is bytes:
        raise RegistrationError(f"{signature.label}: {_WRAP_BYTES}.")
    if get_origin(bare(annotation)) in (Iterator, Generator):
        annotation = list[get_args(bare(annotation))[0]]  # type: ignore[misc]
    return Output(annotation, signature.label)


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


def failure(text: str) -> dict[str, Any]:
    """Return the result of a tool that says what went wrong."""
    return {"content": [{"type": "text", "text": text}], "isError": True}


def settle(value: Any) -> Any:
    """Return what a function returned, with a generator run to its end.

    Here the function's own errors are still its own; later they would look like those of a value
    that has no JSON form.
    """
    if inspect.iscoroutine(value):
        value.close()
        raise unserializable(
            "the function returned a coroutine. A decorator hides that it is asynchronous; make "
            "the wrapper `async def`"
        )
    return list(value) if isinstance(value, Iterator) else value


def content_blocks(value: Any) -> list[dict[str, Any]]:
    """Return what a function returned as content blocks: blocks and text as such, else JSON."""
    if value is None:
        return []
    if isinstance(value, content.BLOCKS):
        return [_block(value)]
    if isinstance(value, (list, tuple)) and any(isinstance(v, content.BLOCKS) for v in value):
        return [_block(item) for item in value]
    return [{"type": "text", "text": as_text(value)}]


def as_text(value: Any) -> str:
    """Return ``value`` as text: strings, lazy ones and dates too, as such; the rest as JSON."""
    if isinstance(value, str):
        return value
    plain = _plain(value)
    return plain if isinstance(plain, str) else json_text(plain)


def json_text(plain: Any) -> str:
    """Return plain values as JSON; raises :class:`Unserializable` where it has no word for one."""
    try:
        text = to_json(plain).decode()
        if "NaN" in text or "Infinity" in text:
            # Perhaps only inside of a string, which is slow to tell.
            json.dumps(plain, allow_nan=False)
    except PydanticSerializationError as error:
        raise unserializable(str(error)) from error
    except ValueError as error:
        raise unserializable("NaN and infinity are not JSON; return None instead") from error
    return text


def unserializable(problem: str) -> Unserializable:
    """Return the error for a value that cannot be sent. The reason is the developer's to read."""
    return Unserializable(f"The result could not be serialized: {problem}")


def structured(output: Output, value: Any) -> Any:
    """Return ``value`` as the structured content that ``output`` promises."""
    try:
        return output.dump(value)
    except ValidationError as error:
        _plain(value)
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the value"
        raise unserializable(
            f"it does not match the return annotation ({where}: {first['msg']})"
        ) from error
    except ValueError as error:
        raise _unserializable(error) from error


def structured_text(output: Output, value: Any) -> dict[str, Any]:
    """Return text as structured content, in the form in which the official SDK sends it."""
    return {"result": structured(output, _plain(value))}


def prompt_messages(value: Any) -> list[dict[str, Any]]:
    """Return what a prompt function returned as messages; plain text speaks for the user."""
    values = value if isinstance(value, (list, tuple)) else [value]
    return [dump(_message(value)) for value in values]


def dump(model: BaseModel) -> dict[str, Any]:
    """Return an official type as the object that goes over the wire."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def _plain(value: Any) -> Any:
    if isinstance(value, content.BYTES):
        raise unserializable(_WRAP_BYTES)
    try:
        return to_jsonable_python(value, fallback=_fallback, by_alias=True, inf_nan_mode="null")
    except ValueError as error:
        raise _unserializable(error) from error


def _unserializable(error: ValueError) -> Exception:
    # Only what pydantic itself says; the text of an exception out of a property or a serializer
    # belongs in the log.
    if isinstance(error, UnicodeDecodeError):
        return unserializable(_WRAP_BYTES)
    text = str(error)
    said = isinstance(error, PydanticSerializationError) and error.__cause__ is None
    if said or text.startswith(("Circular reference", "Maximum serialization depth")):
        return unserializable(text)
    return error


def _fallback(value: Any) -> Any:
    """Return text for lazy translations; say what to return instead of a model."""
    if isinstance(value, Promise):
        return str(value)
    kind = type(value).__name__
    if isinstance(value, models.Model):
        raise unserializable(
            f"a {kind} instance has no JSON form. Return a pydantic model made of it (with "
            f"from_attributes=True: {kind}Out.model_validate(instance)), or a dict"
        )
    if isinstance(value, (models.QuerySet, models.Manager)):
        name = value.model.__name__
        raise unserializable(
            f"a {kind} of {name} has no JSON form. Return a list of pydantic models "
            f"([{name}Out.model_validate(each) for each in queryset]), or list(queryset"
            ".values(...))"
        )
    raise unserializable(f"{kind} has no JSON form. Return plain values or pydantic models")


def _message(value: Any) -> PromptMessage:
    if isinstance(value, PromptMessage):
        return value
    if isinstance(value, (str, *content.BLOCKS)):
        return content.user(value)
    text = _plain(value)
    if not isinstance(text, str):
        raise unserializable(
            f"{type(value).__name__} is no message. Return text, content blocks or what "
            "django_mcp.content.user() and assistant() make of them"
        )
    return content.user(text)


def _block(item: Any) -> dict[str, Any]:
    if isinstance(item, str):
        return {"type": "text", "text": item}
    if isinstance(item, content.BLOCKS):
        return dump(item)
    raise unserializable(f"{type(item).__name__} among content blocks; wrap it as text")


def _is_unstructured(annotation: Any) -> bool:
    annotation = bare(annotation)
    if annotation in _ANYTHING:
        return True
    if get_origin(annotation) in (Union, UnionType):
        # Text is also a JSON value, beside others; a content block is nothing else.
        others = [each for each in get_args(annotation) if bare(each) not in (NoneType, str)]
        return not others or any(_is_unstructured(x) or bare(x) is bytes for x in others)
    if get_origin(annotation) is not None:
        return any(is_kind(argument, content.BLOCKS) for argument in get_args(annotation))
    return is_kind(annotation, _UNSTRUCTURED) and not _is_enum(annotation)


def _is_enum(annotation: type) -> bool:
    return hasattr(annotation, "__members__")


def _inline_root(schema: dict[str, Any]) -> dict[str, Any]:
    # A recursive model's schema is a bare reference; clients look for "type" at the root.
    reference = schema.get("$ref")
    if reference is None:
        return schema
    target = schema["$defs"][reference.rsplit("/", 1)[-1]]
    return {**target, "$defs": schema["$defs"]}


_WRAP_BYTES = (
    "bytes have no JSON form; wrap them, for example "
    'django_mcp.content.image(data, mime_type="image/png")'
)
