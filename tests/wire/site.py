"""The site that the acceptance tests talk to: servers, who may use them, and their URLs."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import mcp_types
from django.core.exceptions import ObjectDoesNotExist
from django.http import Http404
from django.urls import reverse
from pydantic import BaseModel, Field

from django_mcp import Context, MCPServer, ResourceNotFound, ToolError, content
from django_mcp.models import Session
from django_mcp.protocol.errors import ErrorCode, MCPError
from django_mcp.store.sessions.finding import digest

ICON = mcp_types.Icon(
    src="https://example.com/i.png", mime_type="image/png", sizes=["48x48"], theme="dark"
)
NOTED = mcp_types.Annotations(audience=["user"], priority=0.5, last_modified="2025-01-12T15:00:58Z")
META = {"example.com/k": "v"}
PIXEL = b"\x89PNG\r\n\x1a\n"

calls: list[str] = []
"""What has been called, by name: to see that a refused request calls nothing."""


def session_state(secret: str) -> str:
    """Return the state of the session with this id."""
    return Session.objects.get(key_digest=digest(secret)).state


wire = MCPServer(
    "wire",
    version="1.2",
    title="Wire",
    description="What the tests talk to",
    instructions="Test it.",
    website_url="https://example.com/",
    icons=[ICON],
)


class Point(BaseModel):
    """A place."""

    x: int
    y: int = 0


class Colour(enum.Enum):
    """A choice."""

    RED = "red"
    BLUE = "blue"


@wire.tool
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    calls.append("add")
    return a + b


@wire.tool
async def aadd(a: int, b: int = 1) -> int:
    """Add two numbers, asynchronously."""
    return a + b


@wire.tool(
    title="Everything",
    read_only=True,
    destructive=False,
    idempotent=True,
    open_world=False,
    icons=[ICON],
    meta=META,
)
def everything() -> list[content.ContentBlock]:
    """Return every kind of content, with every field."""
    calls.append("everything")
    return [
        mcp_types.TextContent(text="text", annotations=NOTED, _meta=META),
        mcp_types.ImageContent(data="aGk=", mime_type="image/png", annotations=NOTED, _meta=META),
        mcp_types.AudioContent(data="aGk=", mime_type="audio/wav", annotations=NOTED, _meta=META),
        mcp_types.ResourceLink(
            uri="note://1",
            name="note",
            title="Note",
            description="A note",
            mime_type="text/plain",
            size=3,
            icons=[ICON],
            annotations=NOTED,
            _meta=META,
        ),
        mcp_types.EmbeddedResource(
            resource=mcp_types.TextResourceContents(uri="note://1", text="hi", _meta=META),
            annotations=NOTED,
            _meta=META,
        ),
        content.embedded("note://2", b"hi"),
    ]


@wire.tool
def point() -> Point:
    """Return an object."""
    return Point(x=1)


@wire.tool
def points() -> list[Point]:
    """Return an array."""
    return [Point(x=1), Point(x=2)]


@wire.tool
def maybe(there: bool) -> Point | None:
    """Return an object or nothing."""
    return Point(x=1) if there else None


@wire.tool
def number(text: str) -> float:
    """Return the number that a text spells."""
    return float(text)


@wire.tool
def numbers_in_a_dict(text: str) -> dict[str, Any]:
    """Return the number that a text spells, where no type promises one."""
    return {"deep": [float(text)]}


@wire.tool
def ready_made() -> mcp_types.CallToolResult:
    """Return a result that is complete already."""
    return mcp_types.CallToolResult(
        content=[mcp_types.TextContent(text="made")], structured_content=[1, 2], _meta=META
    )


@wire.tool
def mirrored(
    region: Annotated[str | None, Field(json_schema_extra={"x-mcp-header": "Region"})] = None,
    count: Annotated[int | None, Field(json_schema_extra={"x-mcp-header": "Count"})] = None,
    dry: Annotated[bool | None, Field(json_schema_extra={"x-mcp-header": "Dry"})] = None,
) -> str:
    """Return what came."""
    calls.append("mirrored")
    return f"{region!r} {count!r} {dry!r}"


@wire.tool
def paint(colour: Colour, shades: list[int] | None = None) -> str:
    """Take an enumeration and a list."""
    return f"{colour.value} {shades}"


@wire.tool
def fail(kind: Literal["tool", "bug", "missing"]) -> str:
    """Fail."""
    calls.append("fail")
    if kind == "tool":
        raise ToolError("told so")
    if kind == "missing":
        raise ObjectDoesNotExist("No such note.")
    raise RuntimeError("a secret")


@wire.tool
async def afail() -> str:
    """Fail asynchronously."""
    raise RuntimeError("a secret")


@wire.tool(timeout=0.05)
async def hangs() -> str:
    """Never return."""
    await asyncio.Event().wait()
    return "never"


@wire.tool
def whoami(ctx: Context) -> dict[str, Any]:
    """Say who is calling, and how."""
    return {
        "user": ctx.user.get_username(),
        "client": ctx.client_info.get("name"),
        "revision": ctx.protocol_version,
        "session": ctx.session is not None,
        "path": ctx.request.path,
        "link": reverse("elsewhere"),
    }


@wire.tool
def half_a_character() -> str:
    """Return text that has no UTF-8."""
    return "\ud800"


@wire.tool
def own_error() -> str:
    """Raise an error with a code of the site's own."""
    raise MCPError(7001, "of our own")


@wire.tool
def demand() -> str:
    """Want what the client may not have."""
    missing: dict[str, Any] = {"requiredCapabilities": {"sampling": {}}}
    raise MCPError(ErrorCode.MISSING_CLIENT_CAPABILITY, "Sampling is needed", missing)


@wire.tool
def body_length(ctx: Context) -> int:
    """Say how long the request's body is."""
    return len(ctx.request.body)


@wire.resource(
    "page://front",
    name="front",
    title="Front",
    description="The front page",
    mime_type="text/html",
    size=4,
    annotations=NOTED,
    icons=[ICON],
    meta=META,
    ttl=5,
)
def front() -> str:
    """Return text."""
    return "<p/>"


@wire.resource("page://pixel")
def pixel() -> bytes:
    """Return bytes."""
    return PIXEL


def list_notes(after: str | None) -> Iterator[mcp_types.Resource]:
    """List notes after one."""
    for each in range(1, 6):
        uri = f"note://{each}"
        if after is None or uri > after:
            yield mcp_types.Resource(uri=uri, name=f"note {each}", icons=[ICON], _meta=META)


@wire.resource(
    "note://{number}", title="Notes", icons=[ICON], annotations=NOTED, meta=META, list=list_notes
)
def note(number: int) -> dict[str, int]:
    """Return JSON; some numbers are missing."""
    if number == 404:
        raise Http404("a secret")
    if number == 405:
        raise ObjectDoesNotExist("a secret")
    if number == 406:
        raise ResourceNotFound("a secret")
    if number == 500:
        raise RuntimeError("a secret")
    return {"number": number}


@wire.prompt(title="Greeting", icons=[ICON], meta=META)
def greet(name: str, tone: Literal["warm", "cold"] = "warm") -> str:
    """Greet somebody."""
    return f"Greet {name}, {tone}."


@wire.prompt
def show() -> list[mcp_types.PromptMessage]:
    """Show content of every kind."""
    return [content.user(block) for block in everything()]


@wire.completion("greet", "name")
def names(value: str, arguments: dict[str, str]) -> list[str]:
    """Complete a name; the tone chosen already is part of it."""
    if value == "many":
        return [f"many {each}" for each in range(150)]
    return [f"{value}-{arguments.get('tone')}"]


@wire.completion("note://{number}", "number")
def numbers(value: str) -> mcp_types.Completion:
    """Complete a number, with a result that is ready made."""
    return mcp_types.Completion(values=[str(each) for each in range(150)], total=150)
