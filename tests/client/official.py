"""A server of the official Python SDK, which uvicorn serves: `tests.client.official:app`."""

from __future__ import annotations

from typing import Annotated, Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve
from mcp.server.streamable_http import EventCallback, EventId, EventMessage, EventStore, StreamId
from mcp_types import JSONRPCMessage, ToolAnnotations
from pydantic import BaseModel


class Table(BaseModel):
    """What a guest is asked."""

    number: int


class Memory(EventStore):
    """Keeps events in memory, so that streams can be resumed."""

    def __init__(self) -> None:
        self._events: list[tuple[StreamId, JSONRPCMessage | None]] = []

    async def store_event(self, stream_id: StreamId, message: JSONRPCMessage | None) -> EventId:
        """Keep one event; return its id."""
        self._events.append((stream_id, message))
        return str(len(self._events))

    async def replay_events_after(
        self, last_event_id: EventId, send_callback: EventCallback
    ) -> StreamId | None:
        """Send what came after an event on its stream."""
        after = int(last_event_id)
        stream_id = self._events[after - 1][0]
        for number, (stream, message) in enumerate(self._events[after:], start=after + 1):
            if stream == stream_id and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream_id


server = MCPServer("official", version="7.0", instructions="Ask nicely.")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@server.tool()
async def count(ctx: Context[Any, Any], to: int) -> str:
    """Count, and say so."""
    for number in range(1, to + 1):
        await ctx.report_progress(number, to, f"at {number}")
    return "counted"


def ask() -> Elicit[Table]:
    """Ask for a table."""
    return Elicit("Which table?", Table)


@server.tool()
async def book(table: Annotated[Table, Resolve(ask)]) -> str:
    """Book a table."""
    return f"table {table.number}"


@server.tool()
async def fetch(ctx: Context[Any, Any]) -> str:
    """Close the stream, so that the client has to come back."""
    await ctx.close_sse_stream()
    return "fetched"


@server.tool()
async def change(ctx: Context[Any, Any]) -> str:
    """Say that the tools have changed."""
    await ctx.notify_tools_changed()
    await ctx.session.send_tool_list_changed()
    return "changed"


@server.resource("note://{name}")
def note(name: str) -> str:
    """A note."""
    return f"note {name}"


@server.prompt()
def greet(name: str) -> str:
    """Greet somebody."""
    return f"Greet {name}."


app = server.streamable_http_app(event_store=Memory(), retry_interval=50)
