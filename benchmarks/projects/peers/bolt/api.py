"""The server. STATELESS=1 keeps no sessions, JSON=1 answers by JSON instead of events."""

from __future__ import annotations

import asyncio
import os

from bolt_mcp import MCP, Context
from django_bolt import BoltAPI
from shelf.models import Item

api = BoltAPI()
mcp = MCP(
    "bench",
    "1",
    stateless=bool(os.environ.get("STATELESS")),
    json_response=bool(os.environ.get("JSON")),
)


@mcp.tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@mcp.tool
async def tell(number: int, ctx: Context, pause: int = 0) -> int:
    """Say three things, then return the number; wait, if asked to, after the first."""
    for count in range(3):
        await ctx.info(f"{number} {count}")
        if pause and not count:
            await asyncio.sleep(pause / 1000)
    return number


@mcp.tool
def look_up(key: int) -> int:
    """Return what a key stands for."""
    return Item.objects.get(pk=key).value


async def note(title: str, text: str, urgent: bool = False) -> str:
    """Take a note."""
    return f"{title}: {text}"


for number in range(47):
    mcp.tool(name=f"note_{number:02}")(note)

api.mount_mcp(mcp)
