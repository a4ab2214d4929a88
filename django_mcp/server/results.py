"""What user functions return, as the results of MCP."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from mcp_types import CallToolResult, GetPromptResult, PromptMessage
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic_core import to_json, to_jsonable_python

from ..protocol.errors import ErrorCode, MCPError
from . import content
from .errors import RegistrationError
from .signature import PlainJsonSchema, Signature

Jsonable = Callable[[Any], Any]
"""Gives a framework object a JSON form, or raises ``TypeError`` with the cure."""

_UNSTRUCTURED = (str, bytes, NoneType, *content.BLOCKS, CallToolResult, PromptMessage)


class Output:
    """The structured output that a return annotation promises."""

    def __init__(self, annotation: Any, label: str) -> None:
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", module="pydantic.json_schema")
                self._adapter: TypeAdapter[Any] = TypeAdapter(annotation)
                schema = self._adapter.json_schema(
                    mode="serialization", schema_generator=PlainJsonSchema
                )
        except PydanticUserError as error:
            raise RegistrationError(
                f"{label}: its return type has no JSON Schema ({error.message}). Return pydantic "
                "models, dataclasses, TypedDicts, lists, dicts or plain values; annotate "
                "`-> Any` for unstructured output."
            ) from error
        self.schema = _inline_root(schema)

    def dump(self, value: Any) -> Any:
        """Return ``value`` as JSON-able Python, checked against the annotation."""
        return self._adapter.dump_python(
            self._adapter.validate_python(value, from_attributes=True), mode="json", by_alias=True
        )


def output_of(signature: Signature) -> Output | None:
    """Return the structured output that a function's return annotation promises, if any."""
    annotation = signature.return_type
    if annotation in (Signature.empty, Any, object) or _is_unstructured(annotation):
        return None
    return Output(annotation, signature.label)


def is_object(schema: Mapping[str, Any]) -> bool:
    """Return whether every instance of ``schema`` is a JSON object."""
    return schema.get("type") == "object"


def wrap_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of ``{"result": ...}``, for revisions whose output must be an object."""
    inner = {key: value for key, value in schema.items() if key not in ("$defs", "$schema")}
    wrapped = {"type": "object", "properties": {"result": inner}, "required": ["result"]}
    return wrapped | {key: schema[key] for key in ("$schema", "$defs") if key in schema}


def content_blocks(value: Any, jsonable: Jsonable) -> list[dict[str, Any]]:
    """Return what a function returned as content blocks: blocks and text as such, else JSON."""
    if value is None:
        return []
    if isinstance(value, (str, *content.BLOCKS)):
        return [_block(value)]
    if isinstance(value, (list, tuple)) and any(isinstance(v, content.BLOCKS) for v in value):
        return [_block(item) for item in value]
    return [{"type": "text", "text": json_text(value, jsonable)}]


def json_text(value: Any, jsonable: Jsonable) -> str:
    """Return ``value`` as JSON, or raise :class:`MCPError` that says what to return instead."""
    if isinstance(value, bytes):
        raise unserializable(
            "bytes have no JSON form; wrap them, for example "
            'django_mcp.content.image(data, mime_type="image/png")'
        )
    try:
        return to_json(to_jsonable_python(value, fallback=jsonable, by_alias=True)).decode()
    except (TypeError, ValueError) as error:
        raise unserializable(str(error)) from error


def unserializable(reason: str) -> MCPError:
    """Return the error for a value that cannot be sent. The reason is the developer's to read."""
    return MCPError(ErrorCode.INTERNAL_ERROR, f"The result could not be serialized: {reason}")


def structured(output: Output, value: Any, jsonable: Jsonable) -> Any:
    """Return ``value`` as the structured content that ``output`` promises."""
    try:
        return output.dump(value)
    except ValidationError as error:
        to_jsonable_python(value, fallback=_refusal(jsonable))
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the value"
        raise unserializable(
            f"it does not match the return annotation ({where}: {first['msg']})"
        ) from error


def prompt_messages(value: Any) -> list[dict[str, Any]]:
    """Return what a prompt function returned as messages; plain text speaks for the user."""
    values = value if isinstance(value, (list, tuple)) else [value]
    messages = [v if isinstance(v, PromptMessage) else content.user(v) for v in values]
    return [dump(message) for message in messages]


def dump(model: BaseModel) -> dict[str, Any]:
    """Return an official type as the object that goes over the wire."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def _refusal(jsonable: Jsonable) -> Jsonable:
    # Gives framework objects the chance to say what to return instead of them.
    def refuse(value: Any) -> Any:
        try:
            return jsonable(value)
        except TypeError as error:
            raise unserializable(str(error)) from error

    return refuse


def _block(item: Any) -> dict[str, Any]:
    if isinstance(item, str):
        return {"type": "text", "text": item}
    if isinstance(item, content.BLOCKS):
        return dump(item)
    raise unserializable(f"{type(item).__name__} among content blocks; wrap it as text")


def _is_unstructured(annotation: Any) -> bool:
    origin = get_origin(annotation)
    if origin is Annotated:
        return _is_unstructured(get_args(annotation)[0])
    if origin in (Union, UnionType):
        return any(
            _is_unstructured(argument)
            for argument in get_args(annotation)
            if argument is not NoneType
        )
    if origin in (list, tuple):
        return any(_is_block(argument) for argument in get_args(annotation))
    if not isinstance(annotation, type):
        return False
    return issubclass(annotation, (*_UNSTRUCTURED, GetPromptResult)) and not _is_enum(annotation)


def _is_block(annotation: Any) -> bool:
    if get_origin(annotation) in (Union, UnionType, Annotated):
        return any(_is_block(argument) for argument in get_args(annotation))
    return isinstance(annotation, type) and issubclass(annotation, content.BLOCKS)


def _is_enum(annotation: type) -> bool:
    return hasattr(annotation, "__members__")


def _inline_root(schema: dict[str, Any]) -> dict[str, Any]:
    # A recursive model's schema is a bare reference; clients look for "type" at the root.
    reference = schema.get("$ref")
    if reference is None:
        return schema
    target = schema["$defs"][reference.rsplit("/", 1)[-1]]
    return {**target, "$defs": schema["$defs"]}
