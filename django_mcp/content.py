"""Content blocks for tools and prompts, resource contents and prompt messages.

::

    from django_mcp.content import image, text

    @mcp.tool
    def chart(month: date) -> list[TextContent | ImageContent]:
        return [text("Sales by day"), image(render(month), mime_type="image/png")]
"""

from __future__ import annotations

from .server.content import (
    ContentBlock,
    assistant,
    audio,
    contents,
    embedded,
    image,
    resource_link,
    text,
    user,
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
