"""Files as Django and its libraries have them, as content blocks."""

from __future__ import annotations

import mimetypes
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import PurePath
from typing import Any, Final
from urllib.parse import quote

from django.core.files.base import File
from django.http.response import HttpResponseBase

from .. import content
from ..content import ContentBlock
from .errors import ToolError

MAX_FILE_BYTES: Final = 1024 * 1024
"""The largest file that a result holds. All of it is in the context of the model."""

FILES: Final = (File, HttpResponseBase)
"""What is sent as a file; pictures of Pillow as well, where it has been imported."""

_WEB_FORMATS: Final = ("GIF", "JPEG", "PNG", "WEBP")
"""Formats of pictures that models take; Pillow writes others as PNG."""
_TEXTS: Final = frozenset(
    ("application/json", "application/xml", "application/yaml", "application/x-yaml")
)


def is_file(value: Any) -> bool:
    """Return whether a value is sent as a file: one of a model's field, a response, a picture."""
    return isinstance(value, FILES) or _is_picture(value)


def is_file_type(annotation: Any) -> bool:
    """Return whether values of a class are sent as files."""
    return isinstance(annotation, type) and (
        issubclass(annotation, FILES) or _is_picture_type(annotation)
    )


@dataclass(frozen=True, slots=True)
class FileContents:
    """What has been read of a file."""

    data: str | bytes
    """Text where it is some, and in UTF-8."""
    mime_type: str
    name: str
    """Without directories; empty where it has none."""


def read_file(value: Any, *, mime_type: str = "") -> FileContents:
    """Return the contents of a file, of which a name says what it is unless ``mime_type`` does.

    Raises :class:`ToolError` for what is larger than :data:`MAX_FILE_BYTES`, and for a response
    that says that it is an error.
    """
    if isinstance(value, HttpResponseBase):
        return _read_response(value)
    if isinstance(value, File):
        return _contents(_read(value), value.name or "", mime_type)
    return _read_picture(value)


def close_files(response: Any) -> None:
    """Close what a response has open. It is no response of the request that goes on here, so it is
    not closed itself: that would say that this request has ended, and close its connections.
    """
    for close in response._resource_closers:
        close()


def file_block(value: Any, *, mime_type: str = "") -> ContentBlock:
    """Return a file as a block: pictures and sound as such, a page as text, all else embedded.

    ``mime_type`` and what is raised are as with :func:`read_file`.
    """
    file = read_file(value, mime_type=mime_type)
    kind = file.mime_type.partition("/")[0]
    if isinstance(file.data, bytes) and kind == "image":
        return content.image(file.data, mime_type=file.mime_type)
    if isinstance(file.data, bytes) and kind == "audio":
        return content.audio(file.data, mime_type=file.mime_type)
    if isinstance(file.data, str) and not file.name:
        return content.text(file.data)
    uri = f"attachment:///{quote(file.name or 'file')}"
    return content.embedded(uri, file.data, mime_type=file.mime_type)


def _contents(data: bytes, name: str, mime_type: str) -> FileContents:
    mime_type = mime_type or mimetypes.guess_type(name)[0] or content.BINARY
    return FileContents(_decoded(data, mime_type), mime_type, PurePath(name).name)


def _decoded(data: bytes, mime_type: str) -> str | bytes:
    if not (mime_type.startswith("text/") or mime_type in _TEXTS or mime_type.endswith("+json")):
        return data
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _read(file: File[Any]) -> bytes:
    if not file:
        raise ToolError("There is no file.")
    with file.open("rb") as opened:
        return _bounded(opened.chunks(), file.name or "The file")


def _read_response(response: Any) -> FileContents:
    name = _name_of(response)
    if not getattr(response, "is_rendered", True):
        response.render()  # a TemplateResponse, as the handler of requests would
    mime_type, _, _ = response.headers.get("Content-Type", "").partition(";")
    try:
        pieces = response.streaming_content if response.streaming else (response.content,)
        data = _bounded(iter(pieces), name or "The response")
    finally:
        close_files(response)
    if mime_type.startswith("text/"):
        data = data.decode(response.charset, "replace").encode()
    file = _contents(data, name, mime_type)
    if response.status_code >= 400:
        said = file.data if mime_type == content.TEXT and isinstance(file.data, str) else ""
        raise ToolError(said or f"{response.status_code} {response.reason_phrase}")
    return file


def _name_of(response: Any) -> str:
    """Return the name by which a browser would save the file of a ``FileResponse``."""
    given = getattr(response, "filename", "") or ""
    name = given or getattr(getattr(response, "file_to_stream", None), "name", "")
    return name if isinstance(name, str) else ""


def _bounded(pieces: Iterator[bytes | str], name: str) -> bytes:
    data = BytesIO()
    for piece in pieces:
        data.write(piece.encode() if isinstance(piece, str) else piece)
        if data.tell() > MAX_FILE_BYTES:
            raise ToolError(
                f"{PurePath(name).name} is larger than {MAX_FILE_BYTES:,} bytes, which is too much "
                "for an answer."
            )
    return data.getvalue()


def _is_picture(value: Any) -> bool:
    return _is_picture_type(type(value))


def _is_picture_type(kind: type) -> bool:
    # Where nobody has imported Pillow, nothing is a picture of its.
    images = sys.modules.get("PIL.Image")
    base = getattr(images, "Image", None)
    return isinstance(base, type) and issubclass(kind, base)


def _read_picture(picture: Any) -> FileContents:
    kind = picture.format if picture.format in _WEB_FORMATS else "PNG"
    data = BytesIO()
    picture.save(data, kind)
    mime_type = f"image/{kind.lower()}"
    return _contents(_bounded(iter((data.getvalue(),)), "The picture"), "", mime_type)
