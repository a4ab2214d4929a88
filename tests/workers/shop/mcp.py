"""Tools that sleep, wait, speak and ask, and tools that tell a test what they find."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import random
import time
import uuid
from typing import Any

from django.db import connection, transaction
from django.db.models import Count, Max

from django_mcp import Context, mcp
from django_mcp.http.connection_limits import open_connections
from django_mcp.models import PendingRequest, Session, Stream
from django_mcp.running.send_queue import SendQueue
from django_mcp.store.delivery import outbox
from django_mcp.store.ledger import ledger
from django_mcp.store.sessions.finding import digest
from tests.support.lasting import last

from .gates import gates
from .statements import statements


@mcp.tool
def work(value: str, seconds: float = 0.0) -> str:
    """Take a while, without a word."""
    time.sleep(random.uniform(0, seconds))
    return value


@mcp.tool
async def awork(value: str, seconds: float = 0.0) -> str:
    """Do the same on the loop."""
    await asyncio.sleep(random.uniform(0, seconds))
    return value


@mcp.tool
def speak(
    ctx: Context, value: str, words: int = 3, seconds: float = 0.0, lasts: bool = False
) -> str:
    """Say something from time to time."""
    for number in range(words):
        ctx.log("info", f"{value}/{number}")
        time.sleep(random.uniform(0, seconds))
        if lasts:
            last(ctx)
    return value


@mcp.tool
async def aspeak(
    ctx: Context, value: str, words: int = 3, seconds: float = 0.0, lasts: bool = False
) -> str:
    """Do the same on the loop."""
    for number in range(words):
        await ctx.alog("info", f"{value}/{number}")
        await asyncio.sleep(random.uniform(0, seconds))
        if lasts:
            await asyncio.to_thread(last, ctx)
    return value


@mcp.tool
def hold(ctx: Context, value: str, speaks: bool = False) -> str:
    """Wait at the gate of this name; speak before and after if asked to."""
    if speaks:
        ctx.log("info", f"{value}/before")
    gates().wait(value, unless=lambda: ctx.cancelled)
    if speaks:
        ctx.log("info", f"{value}/after")
    return value


@mcp.tool
async def ahold(ctx: Context, value: str, speaks: bool = False) -> str:
    """Do the same on the loop."""
    if speaks:
        await ctx.alog("info", f"{value}/before")
    await gates().await_(value)
    if speaks:
        await ctx.alog("info", f"{value}/after")
    return value


@mcp.tool
def stay(ctx: Context, value: str, speaks: bool = False) -> str:
    """Wait at the gate of this name, deaf to everything else."""
    if speaks:
        ctx.log("info", f"{value}/before")
    gates().wait(value)
    return value


@mcp.tool
def ask(ctx: Context, value: str) -> str:
    """Ask for a name, and return it with what was given."""
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    params = {"message": value, "requestedSchema": schema}
    answer = ctx._exchange.peer.request("elicitation/create", params, 30)
    return f"{value}: {answer['content']['name']}"


@mcp.tool
async def aask(ctx: Context, value: str) -> str:
    """Do the same on the loop."""
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    params = {"message": value, "requestedSchema": schema}
    answer = await ctx._exchange.peer.arequest("elicitation/create", params, 30)
    return f"{value}: {answer['content']['name']}"


@mcp.tool
def fail(value: str) -> str:
    """Fail, as code does."""
    raise RuntimeError(value)


@mcp.tool
def stumble(ctx: Context, value: str, lasts: bool = False) -> str:
    """Speak, and then fail."""
    ctx.log("info", f"{value}/0")
    if lasts:
        last(ctx)
    raise RuntimeError(value)


@mcp.resource("thing://{key}")
def thing(key: str) -> str:
    """Something that changes when a test says so."""
    return key


@mcp.tool
def change_things(count: int) -> None:
    """Say that so many things have changed."""
    for key in range(count):
        mcp.notify_resource_updated(f"thing://{key}")


@mcp.tool
def change_tools() -> None:
    """Say that the list of tools has changed."""
    mcp.notify_tools_changed()


@mcp.tool
def put_everywhere() -> int:
    """Queue a message on each session's own stream, naming the session by its digest."""
    rows = Stream.objects.filter(own=True).values_list("pk", "session__key_digest")
    for stream, session in rows:
        put(str(stream), session)
    return len(rows)


@mcp.tool
def put(stream: str, data: str) -> None:
    """Queue a message on a session's own stream, and ring."""
    params = {"level": "info", "data": data}
    message = {"jsonrpc": "2.0", "method": "notifications/message", "params": params}
    reader = outbox.write_notifications(uuid.UUID(stream), [json.dumps(message)])
    ledger().doorbell.wake([reader or ""])


@mcp.tool
def session_rows(secret: str) -> dict[str, Any]:
    """Return what the rows of a session say: how often it was used, what runs, its streams."""
    session = Session.objects.get(key_digest=digest(secret))
    requests = PendingRequest.objects.filter(session=session)
    streams = Stream.objects.filter(session=session, own=None).annotate(
        count=Count("messages"), last=Max("messages__seq")
    )
    return {
        "request_count": session.request_count,
        "running": requests.filter(state=PendingRequest.State.RUNNING).count(),
        "requests": list(requests.values_list("state", flat=True)),
        "open": streams.filter(closed=None).count(),
        "streams": [[each.next_seq, each.count, each.last] for each in streams],
    }


@mcp.tool
def hold_sessions() -> int:
    """Keep a thread and a connection busy, and whoever would write sessions waiting meanwhile."""
    with transaction.atomic():
        held = Session.objects.select_for_update().order_by("pk").values_list("pk", flat=True)
        number = len(held)
        time.sleep(0.05)
    return number


@mcp.tool
def database_connections() -> int:
    """Return how many connections the database has, this one included."""
    question = {
        "postgresql": "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()",
        "mysql": "SELECT count(*) FROM information_schema.processlist WHERE db = database()",
    }
    with connection.cursor() as cursor:
        cursor.execute(question[connection.vendor])
        return int(cursor.fetchone()[0])


@mcp.tool
async def forget_ticks() -> None:
    """Begin anew to record what the ledger does."""
    statements.ticks.clear()


@mcp.tool
async def ticks() -> dict[str, Any]:
    """Return the statements of each tick of this worker's ledger."""
    return {"ticks": list(statements.ticks)}


@mcp.tool
async def process() -> int:
    """Return which process this is."""
    return os.getpid()


@mcp.tool
async def updates() -> dict[str, Any]:
    """Return table and columns of every kind of UPDATE that this worker has made."""
    return {"updates": sorted(statements.updates)}


@mcp.tool
def flood(ctx: Context, words: int, size: int, seconds: float) -> int:
    """Say much, and work on until told to stop, but not for ever."""
    end = time.monotonic() + seconds
    for number in range(words):
        ctx.log("info", f"{number} " + "x" * size)
    while time.monotonic() < end:
        ctx.log("info", "still there")
        time.sleep(0.1)
    return words


@mcp.tool
def waiting_here() -> dict[str, int]:
    """Return what this process keeps for its clients, and how many messages it holds for them."""
    kept = [each for each in gc.get_objects() if type(each) is SendQueue]
    return {
        # This very call is one of them.
        "connections": len(open_connections) - 1,
        "readers": len(ledger().readers.all()),
        "messages": sum(len(each) for each in kept),
    }
