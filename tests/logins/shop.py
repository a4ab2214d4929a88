"""What the site offers: a shop, whose orders need scopes, and a library beside it."""

from __future__ import annotations

import asyncio
import itertools

from django_mcp import Context, MCPServer

shop = MCPServer("shop", title="The shop", scopes=["orders:read"])
library = MCPServer("library", scopes=["stock:write"])


@shop.tool(read_only=True)
def whoami(ctx: Context) -> str:
    """Say who is calling, by what, and for what."""
    return f"{ctx.user} {ctx.client_id} {' '.join(sorted(ctx.scopes))}"


@shop.tool(scopes=["orders:write"])
def pay() -> str:
    """Pay all orders."""
    return "Paid"


@shop.tool(read_only=True)
async def wait(ctx: Context, seconds: float = 60) -> str:
    """Wait for long, and say so."""
    ctx.log("info", "waiting")
    ctx.progress(1, 2, "waiting")
    await asyncio.sleep(seconds)
    return "waited"


_calls = itertools.count(1)


@shop.tool(read_only=True)
def count() -> int:
    """Say how often this was called."""
    return next(_calls)


@library.tool
def shelves() -> str:
    """Say what is there."""
    return "Books"
