"""FastMCP. JSON=1 answers by JSON instead of events, its default."""

from __future__ import annotations

import asyncio
import os

from fastmcp import Context, FastMCP
from fastmcp.tools import Tool

server = FastMCP("bench")


@server.tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool
async def tell(number: int, ctx: Context, pause: int = 0) -> int:
    """Say three things, then return the number; wait, if asked to, after the first."""
    for count in range(3):
        await ctx.info(f"{number} {count}")
        if pause and not count:
            await asyncio.sleep(pause / 1000)
    return number


async def note(title: str, text: str, urgent: bool = False) -> str:
    """Take a note."""
    return f"{title}: {text}"


for number in range(48):
    server.add_tool(Tool.from_function(note, name=f"note_{number:02}"))

application = server.http_app(json_response=bool(os.environ.get("JSON")))
