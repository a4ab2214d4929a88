"""Content blocks for tools and prompts: short constructors of the official types."""

from __future__ import annotations

import base64
import mimetypes
from os import PathLike
from pathlib import Path
from typing import Any

from mcp_types import (
    Annotations,
    AudioContent,
    BlobResourceContents,
    EmbeddedResource,
    ImageContent,
    PromptMessage,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

ContentBlock = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource
BLOCKS = (TextContent, ImageContent, AudioContent, ResourceLink, EmbeddedResource)


def text(value: str, *, annotations: Annotations | None = None) -> TextContent:
    """Return a text block."""
    return TextContent(text=value, annotations=annotations)


def image(
    data: bytes | str | PathLike[str],
    *,
    mime_type: str | None = None,
    annotations: Annotations | None = None,
) -> ImageContent:
    """Return an image block from bytes or the path of a file.

    ``mime_type`` is required with bytes; a file's is guessed from its name.
    """
    encoded, mime_type = _load(data, mime_type)
    return ImageContent(data=encoded, mime_type=mime_type, annotations=annotations)


def audio(
    data: bytes | str | PathLike[str],
    *,
    mime_type: str | None = None,
    annotations: Annotations | None = None,
) -> AudioContent:
    """Return an audio block from bytes or the path of a file; see :func:`image`."""
    encoded, mime_type = _load(data, mime_type)
    return AudioContent(data=encoded, mime_type=mime_type, annotations=annotations)


def resource_link(uri: str, *, name: str | None = None, **fields: Any) -> ResourceLink:
    """Return a link to a resource. ``fields``: ``title``, ``description``, ``mime_type``, ..."""
    return ResourceLink(uri=uri, name=name or uri, **fields)


def embedded(uri: str, content: str | bytes, *, mime_type: str | None = None) -> EmbeddedResource:
    """Return a resource embedded whole: text from ``str``, a blob from ``bytes``."""
    return EmbeddedResource(resource=contents(uri, content, mime_type=mime_type))


def contents(
    uri: str, content: str | bytes, *, mime_type: str | None = None
) -> TextResourceContents | BlobResourceContents:
    """Return the contents of a resource: text from ``str``, a blob from ``bytes``."""
    if isinstance(content, str):
        return TextResourceContents(uri=uri, text=content, mime_type=mime_type or "text/plain")
    blob = base64.b64encode(content).decode("ascii")
    return BlobResourceContents(
        uri=uri, blob=blob, mime_type=mime_type or "application/octet-stream"
    )


def user(content: str | ContentBlock) -> PromptMessage:
    """Return a prompt's message in the user's voice."""
    return PromptMessage(role="user", content=_block(content))


def assistant(content: str | ContentBlock) -> PromptMessage:
    """Return a prompt's message in the assistant's voice."""
    return PromptMessage(role="assistant", content=_block(content))


def _block(content: str | ContentBlock) -> ContentBlock:
    return text(content) if isinstance(content, str) else content


def _load(data: bytes | str | PathLike[str], mime_type: str | None) -> tuple[str, str]:
    if not isinstance(data, bytes):
        path = Path(data)
        mime_type = mime_type or mimetypes.guess_type(path.name)[0]
        data = path.read_bytes()
    if mime_type is None:
        raise ValueError('Say what the data is, for example mime_type="image/png"')
    return base64.b64encode(data).decode("ascii"), mime_type
