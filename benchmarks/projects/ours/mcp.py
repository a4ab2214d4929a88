"""The tools: `add` and `tell` are asynchronous where the server is, `add_other` where it is not."""

from __future__ import annotations

import asyncio
import os
import time

from shelf.models import Item

from django_mcp import Context, mcp

if os.environ.get("DOOR") == "asgi":

    @mcp.tool
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @mcp.tool
    def add_other(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @mcp.tool
    async def tell(number: int, ctx: Context, pause: int = 0) -> int:
        """Say three things, then return the number; wait, if asked to, after the first."""
        for count in range(3):
            await ctx.alog("info", f"{number} {count}")
            if pause and not count:
                await asyncio.sleep(pause / 1000)
        return number

else:

    @mcp.tool
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @mcp.tool
    async def add_other(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @mcp.tool
    def tell(number: int, ctx: Context, pause: int = 0) -> int:
        """Say three things, then return the number; wait, if asked to, after the first."""
        for count in range(3):
            ctx.log("info", f"{number} {count}")
            if pause and not count:
                time.sleep(pause / 1000)
        return number


@mcp.tool
def look_up(key: int) -> int:
    """Return what a key stands for."""
    return Item.objects.get(pk=key).value


@mcp.tool
def announce() -> str:
    """Tell everybody that the list of tools has changed."""
    mcp.notify_tools_changed()
    return "told"


def note(title: str, text: str, urgent: bool = False) -> str:
    """Take a note."""
    return f"{title}: {text}"


for number in range(45):
    mcp.tool(note, name=f"note_{number:02}")
