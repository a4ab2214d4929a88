"""Content blocks for tools and prompts, resource contents and prompt messages.

Short constructors of the official types::

    from django_mcp.content import image, text

    @mcp.tool
    def chart(month: date) -> list[TextContent | ImageContent]:
        return [text("Sales by day"), image(render(month), mime_type="image/png")]
"""

from __future__ import annotations

import base64
import mimetypes
from os import PathLike
from pathlib import Path
from typing import Any, Final

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

__all__ = [
    "ContentBlock",
    "assistant",
    "audio",
    "contents",
    "embedded",
    "image",
    "resource_link",
    "text",
    "user",
]

ContentBlock = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource
BLOCKS: Final = (TextContent, ImageContent, AudioContent, ResourceLink, EmbeddedResource)

Binary = bytes | bytearray | memoryview
BYTES: Final = (bytes, bytearray, memoryview)
"""What counts as binary; some databases give a memoryview for a BinaryField."""

TEXT: Final = "text/plain"
BINARY: Final = "application/octet-stream"
JSON: Final = "application/json"


def text(value: str, *, annotations: Annotations | None = None) -> TextContent:
    """Return a text block."""
    return TextContent(text=value, annotations=annotations)


def image(
    data: Binary | str | PathLike[str],
    *,
    mime_type: str | None = None,
    annotations: Annotations | None = None,
) -> ImageContent:
    """Return an image block from bytes or the path of a file.

    ``mime_type`` is required with bytes; a file's is guessed from its name.
    """
    encoded, mime_type = _load(data, mime_type, "image")
    return ImageContent(data=encoded, mime_type=mime_type, annotations=annotations)


def audio(
    data: Binary | str | PathLike[str],
    *,
    mime_type: str | None = None,
    annotations: Annotations | None = None,
) -> AudioContent:
    """Return an audio block from bytes or the path of a file; see :func:`image`."""
    encoded, mime_type = _load(data, mime_type, "audio")
    return AudioContent(data=encoded, mime_type=mime_type, annotations=annotations)


def resource_link(uri: str, *, name: str | None = None, **fields: Any) -> ResourceLink:
    """Return a link to a resource. ``fields``: ``title``, ``description``, ``mime_type``, ..."""
    return ResourceLink(uri=uri, name=name or uri, **fields)


def embedded(uri: str, content: str | Binary, *, mime_type: str | None = None) -> EmbeddedResource:
    """Return a resource embedded whole: text from ``str``, a blob from ``bytes``."""
    return EmbeddedResource(resource=contents(uri, content, mime_type=mime_type))


def contents(
    uri: str, content: str | Binary, *, mime_type: str | None = None
) -> TextResourceContents | BlobResourceContents:
    """Return the contents of a resource: text from ``str``, a blob from ``bytes``."""
    if isinstance(content, str):
        return TextResourceContents(uri=uri, text=content, mime_type=mime_type or TEXT)
    blob = base64.b64encode(content).decode("ascii")
    return BlobResourceContents(uri=uri, blob=blob, mime_type=mime_type or BINARY)


def user(content: str | ContentBlock) -> PromptMessage:
    """Return a prompt's message in the user's voice."""
    return PromptMessage(role="user", content=_block(content))


def assistant(content: str | ContentBlock) -> PromptMessage:
    """Return a prompt's message in the assistant's voice."""
    return PromptMessage(role="assistant", content=_block(content))


def _block(content: str | ContentBlock) -> ContentBlock:
    return text(content) if isinstance(content, str) else content


def _load(data: Binary | str | PathLike[str], mime_type: str | None, kind: str) -> tuple[str, str]:
    if not isinstance(data, BYTES):
        path = Path(data)
        mime_type = mime_type or mimetypes.guess_type(path.name)[0]
        data = path.read_bytes()
    if mime_type is None or not mime_type.startswith(f"{kind}/"):
        raise ValueError(
            f"{mime_type or 'Data of no known type'} is no {kind}; say what it is, for example "
            f'mime_type="{_EXAMPLES[kind]}"'
        )
    return base64.b64encode(data).decode("ascii"), mime_type


_EXAMPLES: Final = {"image": "image/png", "audio": "audio/wav"}
