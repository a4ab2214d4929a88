"""The results of MCP, and what the site's functions return as content, text and messages."""

from __future__ import annotations

import inspect
import json
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from types import NoneType
from typing import Any, Final, Literal

from django.db import models
from django.utils.functional import Promise
from mcp_types import PromptMessage
from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

from .. import content
from .errors import Unserializable
from .file_links import FileLink
from .files import file_block, is_file

COLLECTED_TYPES: Final = frozenset({str, int, float, bool, dict, list, tuple, NoneType})
"""Of what :func:`collect` returns as it is."""

WRAP_BYTES: Final = (
    "bytes have no JSON form; wrap them, for example "
    'django_mcp.content.image(data, mime_type="image/png")'
)


@dataclass(frozen=True, slots=True)
class Caching:
    """How long a client may keep a result, and for whom (2026-07-28, server/utilities/caching)."""

    ttl_ms: int
    scope: Literal["public", "private"]


@dataclass(slots=True)
class Result:
    """The ``result`` member of an answer, before the era's own fields are added."""

    body: dict[str, Any]
    caching: Caching | None = None
    session_id: str | None = field(default=None, repr=False)
    """The secret id of a session that this request opened."""
    type: Literal["complete", "input_required"] = "complete"
    """What the modern era calls ``resultType``."""
    is_tool_result: bool = False
    """Whether it is a tool's, in which the model can read what went wrong."""
    failed: bool = False
    """Whether something was not foreseen, which the log describes."""
    key: Hashable = None
    """Says which body it is, where many callers get the same: that is encoded once."""


def tool_failure(text: str) -> dict[str, Any]:
    """Return the result of a tool that says what went wrong."""
    return {"content": [{"type": "text", "text": text}], "isError": True}


def collect(value: Any) -> Any:
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
    if is_file(value):
        return [dump(file_block(value))]
    if isinstance(value, (list, tuple)) and any(map(_is_block, value)):
        return [_block(item) for item in value]
    return [{"type": "text", "text": as_text(value)}]


def as_text(value: Any) -> str:
    """Return ``value`` as text: strings, lazy ones and dates too, as such; the rest as JSON."""
    if isinstance(value, str):
        return value
    plain = plain_value(value)
    return plain if isinstance(plain, str) else json_text(plain)


def json_text(plain: Any) -> str:
    """Return plain values as JSON; raises :class:`Unserializable` where it has no word for one."""
    try:
        text = to_json(plain).decode()
        if "NaN" in text or "Infinity" in text:
            # Perhaps only inside of a string, which is slow to find out.
            json.dumps(plain, allow_nan=False)
    except PydanticSerializationError as error:
        raise unserializable(str(error)) from error
    except ValueError as error:
        raise unserializable("NaN and infinity are not JSON; return None instead") from error
    return text


def unserializable(problem: str) -> Unserializable:
    """Return the error for a value that cannot be sent. The reason is the developer's to read."""
    return Unserializable(f"The result could not be serialized: {problem}")


def prompt_messages(value: Any) -> list[dict[str, Any]]:
    """Return what a prompt function returned as messages; plain text is the user's."""
    values = value if isinstance(value, (list, tuple)) else [value]
    return [dump(_message(value)) for value in values]


def dump(model: BaseModel) -> dict[str, Any]:
    """Return an official type as the object that goes over the wire."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def plain_value(value: Any) -> Any:
    """Return ``value`` as plain JSON values; raises :class:`Unserializable` if it has none."""
    if isinstance(value, content.BYTES):
        raise unserializable(WRAP_BYTES)
    try:
        return to_jsonable_python(value, fallback=json_fallback, by_alias=True, inf_nan_mode="null")
    except ValueError as error:
        raise serialization_error(error) from error


def serialization_error(error: ValueError) -> Exception:
    """Return what to raise for an error out of a serialization."""
    # Only what pydantic itself says; the text of an exception out of a property or a serializer
    # belongs in the log.
    if isinstance(error, UnicodeDecodeError):
        return unserializable(WRAP_BYTES)
    text = str(error)
    said = isinstance(error, PydanticSerializationError) and error.__cause__ is None
    if said or text.startswith(("Circular reference", "Maximum serialization depth")):
        return unserializable(text)
    return error


def json_fallback(value: Any) -> Any:
    """Return text for lazy translations; say what to return instead of a model."""
    if isinstance(value, Promise):
        return str(value)
    kind = type(value).__name__
    if isinstance(value, FileLink):
        raise unserializable(
            "a FileLink is returned by a tool or a prompt, alone or in a list of blocks. Within a "
            "structure take its URL: FileLink(...).url(ctx)"
        )
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
    text = plain_value(value)
    if not isinstance(text, str):
        raise unserializable(
            f"{type(value).__name__} is no message. Return text, content blocks or what "
            "django_mcp.content.user() and assistant() make of them"
        )
    return content.user(text)


def _is_block(item: Any) -> bool:
    return isinstance(item, content.BLOCKS) or is_file(item)


def _block(item: Any) -> dict[str, Any]:
    if isinstance(item, str):
        return {"type": "text", "text": item}
    if isinstance(item, content.BLOCKS):
        return dump(item)
    if is_file(item):
        return dump(file_block(item))
    raise unserializable(f"{type(item).__name__} among content blocks; wrap it as text")
