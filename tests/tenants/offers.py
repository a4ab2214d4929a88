"""What the site offers to each tenant's users."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict

from asgiref.sync import sync_to_async
from django.contrib.auth import get_user_model
from django.db import connections

from django_mcp import Context, MCPServer
from django_mcp.partitions import here
from django_mcp.store.database import alias

from .desk.models import Item

desk = MCPServer("desk", version="1")
guarded = MCPServer("guarded", version="1", scopes=["items:read"])
"""What is offered to those who have logged in."""
BOUND = 20
gates: defaultdict[str, threading.Event] = defaultdict(threading.Event)
"""Where tools wait until a test lets them go on."""


def _facts(ctx: Context) -> dict[str, str]:
    return {
        "user": str(ctx.user.username),
        "items": ",".join(Item.objects.order_by("pk").values_list("name", flat=True)),
        "where": here(),
        "schema": str(getattr(connections[alias()], "schema_name", "")),
        "users": ",".join(get_user_model().objects.values_list("username", flat=True)),
    }


@desk.tool
def facts(ctx: Context) -> dict[str, str]:
    """Say what there is here."""
    return _facts(ctx)


@desk.tool
async def afacts(ctx: Context) -> dict[str, str]:
    """Do the same in asynchronous code."""
    await asyncio.sleep(0)
    return await sync_to_async(_facts)(ctx)


@desk.tool
def add_item(name: str) -> str:
    """Add something."""
    return str(Item.objects.create(name=name))


@desk.tool
def wait(ctx: Context, gate: str) -> dict[str, str]:
    """Wait, and say then what there is here."""
    gates[f"{gate} reached"].set()
    assert gates[gate].wait(BOUND)
    return _facts(ctx)


@desk.tool
async def await_(ctx: Context, gate: str) -> dict[str, str]:
    """Do the same in asynchronous code."""
    gates[f"{gate} reached"].set()
    async with asyncio.timeout(BOUND):
        while not gates[gate].is_set():
            await asyncio.sleep(0.01)
    return await sync_to_async(_facts)(ctx)


@desk.tool
def steps(ctx: Context, count: int = 3, gate: str = "") -> str:
    """Log so many lines, for longer than a moment."""
    for number in range(count):
        ctx.log("info", str(number))
    if gate:
        gates[f"{gate} reached"].set()
        assert gates[gate].wait(BOUND)
    return "done"


@desk.tool
def asks(ctx: Context) -> str:
    """Ask the user, and say where."""
    answer = ctx.elicit("How many?", int)
    return f"{here()} {answer}"


@desk.tool
def announce(uri: str = "desk://one") -> str:
    """Say that a resource has changed."""
    desk.notify_resource_updated(uri)
    return here()


@desk.tool
async def aannounce(uri: str = "desk://one") -> str:
    """Do the same in asynchronous code."""
    desk.notify_resource_updated(uri)
    return here()


@desk.resource("desk://one")
def one() -> str:
    """Be subscribed to."""
    return here()


@guarded.tool(read_only=True, name="facts")
def guarded_facts(ctx: Context) -> dict[str, str]:
    """Say what there is here."""
    return _facts(ctx)


@guarded.tool(scopes=["items:write"], name="add_item")
def add_guarded_item(name: str) -> str:
    """Add something."""
    return add_item(name)


@guarded.tool(name="await_")
async def await_guarded(ctx: Context, gate: str) -> dict[str, str]:
    """Wait, and say then what there is here."""
    return await await_(ctx, gate)
