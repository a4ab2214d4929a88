"""The server, which is its view."""

from __future__ import annotations

import msgspec
from django.http import HttpRequest
from django.urls import path
from django_mcpz.server import MCPServer, public
from shelf.models import Item

server = MCPServer(name="bench", version="1", auth=public)


class Add(msgspec.Struct):
    """Two numbers."""

    a: int
    b: int


class LookUp(msgspec.Struct):
    """A key."""

    key: int


class Note(msgspec.Struct):
    """A note."""

    title: str
    text: str
    urgent: bool = False


@server.tool(description="Add two numbers.")
def add(request: HttpRequest, params: Add) -> int:
    """Add two numbers."""
    return params.a + params.b


@server.tool(description="Return what a key stands for.")
def look_up(request: HttpRequest, params: LookUp) -> int:
    """Return what a key stands for."""
    return Item.objects.get(pk=params.key).value


def note(request: HttpRequest, params: Note) -> str:
    """Take a note."""
    return f"{params.title}: {params.text}"


for number in range(48):
    server.tool(name=f"note_{number:02}", description="Take a note.")(note)

urlpatterns = [path("mcp", server)]
