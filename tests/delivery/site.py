"""What the delivery tests call: tools that say, ask and wait exactly when a test wants it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import defaultdict
from contextlib import suppress
from copy import deepcopy
from typing import Any

from django.contrib.auth.models import Group
from django.db import DEFAULT_DB_ALIAS, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from django_mcp import Context, MCPServer
from django_mcp.protocol.errors import MCPError
from django_mcp.server.errors import AnswerTimedOut
from tests.support.lasting import last

server = MCPServer("delivery", version="1")


class _Planted(Exception):
    """What makes a transaction roll back."""


BOUND = 20
"""Seconds after which a tool that nobody lets go gives up."""

SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}}


class Gates:
    """Where tools wait until a test lets them go on."""

    def __init__(self) -> None:
        self.entered: defaultdict[str, threading.Semaphore] = defaultdict(
            lambda: threading.Semaphore(0)
        )
        self.opened: defaultdict[str, threading.Semaphore] = defaultdict(
            lambda: threading.Semaphore(0)
        )
        self.left: list[str] = []
        self.connections: list[BaseDatabaseWrapper] = []
        """Those of the threads that tools ran in."""

    def wait(self, name: str) -> None:
        """Wait in a tool, in its thread."""
        self.entered[name].release()
        assert self.opened[name].acquire(timeout=BOUND)

    async def await_(self, name: str) -> None:
        """Wait in a tool, on the loop."""
        self.entered[name].release()
        async with asyncio.timeout(BOUND):
            while not self.opened[name].acquire(blocking=False):
                await asyncio.sleep(0.01)

    def open(self, name: str = "") -> None:
        """Let one tool go on."""
        self.opened[name].release()

    async def reached(self, name: str = "") -> None:
        """Wait, in a test, until a tool waits."""
        assert await asyncio.to_thread(self.entered[name].acquire, timeout=BOUND)


gates = Gates()


def reset() -> None:
    """Begin a test."""
    global gates
    gates = Gates()


@server.tool
def echo(value: str = "") -> str:
    """Return at once, without a word."""
    return value


@server.tool
def steps(ctx: Context, count: int = 3, gate: str | None = None, label: str = "") -> str:
    """Log so many lines, waiting before each if asked to, for longer than a moment."""
    for number in range(count):
        if gate is not None:
            gates.wait(gate)
        ctx.log("info", f"{label}{number}")
        last(ctx)
    return f"{label}done"


@server.tool
async def asteps(ctx: Context, count: int = 3, gate: str | None = None, label: str = "") -> str:
    """Do the same in asynchronous code."""
    for number in range(count):
        if gate is not None:
            await gates.await_(gate)
        await ctx.alog("info", f"{label}{number}")
        await asyncio.to_thread(last, ctx)
    return f"{label}done"


@server.tool
def quick_steps(ctx: Context, count: int = 3, label: str = "") -> str:
    """Do the same, and end at once."""
    for number in range(count):
        ctx.log("info", f"{label}{number}")
    return f"{label}done"


@server.tool
async def aquick_steps(ctx: Context, count: int = 3, label: str = "") -> str:
    """Do the same in asynchronous code."""
    for number in range(count):
        await ctx.alog("info", f"{label}{number}")
    return f"{label}done"


@server.tool
def wait(gate: str = "", value: str = "waited") -> str:
    """Wait without a word."""
    gates.wait(gate)
    return value


@server.tool
async def await_(gate: str = "", value: str = "waited") -> str:
    """Wait without a word, on the loop."""
    try:
        await gates.await_(gate)
    finally:
        gates.left.append(gate)
    return value


@server.tool
def speak_and_wait(ctx: Context, gate: str = "") -> str:
    """Say something, wait, and say something else."""
    ctx.log("info", "before")
    gates.wait(gate)
    try:
        ctx.log("info", "after")
    finally:
        gates.left.append(gate)
    return "done"


@server.tool
def count_to(ctx: Context, total: int = 1000) -> int:
    """Report progress in a tight loop."""
    for number in range(1, total + 1):
        ctx.progress(number, total)
    return total


@server.tool
def pause_after_two(ctx: Context) -> None:
    """Report progress twice at once, and then work in silence."""
    ctx.progress(1, 3)
    ctx.progress(2, 3)
    gates.wait("silence")


@server.tool
def back_and_forth(ctx: Context) -> None:
    """Report progress that does not always grow."""
    for number in (1, 3, 2, 3, 5, 4):
        ctx.progress(number)
        gates.wait("progress")


@server.tool
def in_a_transaction(ctx: Context, fails: bool) -> None:
    """Speak while a transaction is open, which has written, and wait inside and outside of it."""
    with suppress(_Planted), transaction.atomic():
        Group.objects.create(name="written")
        ctx.log("info", "inside")
        gates.wait("inside")
        if fails:
            raise _Planted
    gates.wait("outside")


@server.tool
def throughout(ctx: Context) -> None:
    """Speak in the transaction that the site asks for around every function."""
    Group.objects.create(name="written")
    ctx.log("info", "inside")
    gates.wait("inside")


@server.tool(timeout=0.3)
def too_long(ctx: Context, says: bool = True) -> str:
    """Work longer than it may, and write at the end."""
    gates.wait("too long")
    try:
        if says:
            ctx.log("info", "still there")
        Group.objects.create(name="late")
    finally:
        gates.left.append("too long")
    return "done"


@server.tool(timeout=0.3)
def until_stopped(ctx: Context, says: bool) -> str:
    """Work until it is told to stop, and write then all the same."""
    end = time.monotonic() + BOUND
    while not ctx.cancelled:
        assert time.monotonic() < end
        time.sleep(0.01)
    if says:
        ctx.log("info", "still there")
    Group.objects.create(name="late")
    return "done"


@server.tool(timeout=60)
def in_time(ctx: Context) -> None:
    """Speak, and end in time."""
    ctx.log("info", "quick")


@server.tool(timeout=0.3)
def asks_too_long(ctx: Context) -> None:
    """Wait longer for an answer than it may."""
    try:
        ctx._exchange.peer.request("elicitation/create", _ask("?"), BOUND)
    finally:
        gates.left.append("asked")


@server.tool(timeout=0.3)
async def aasks_too_long(ctx: Context) -> None:
    """Do the same on the loop."""
    try:
        await ctx._exchange.peer.arequest("elicitation/create", _ask("?"), BOUND)
    finally:
        gates.left.append("asked")


@server.tool
def question(ctx: Context, text: str = "?", seconds: float = BOUND) -> str:
    """Ask, in a thread that waits."""
    try:
        return str(_name(ctx._exchange.peer.request("elicitation/create", _ask(text), seconds)))
    except AnswerTimedOut:
        return "no answer"


@server.tool
def question_when_told(ctx: Context, seconds: float) -> str:
    """Say something, wait until told, ask, and say that nobody has answered."""
    ctx.log("info", "here")
    gates.wait("ask")
    answer = question(ctx, seconds=seconds)
    gates.left.append("asked")
    return answer


@server.tool
def question_after_a_look(ctx: Context) -> str:
    """Ask the database, whose connection is noted, and then a person."""
    Group.objects.exists()
    gates.connections.append(connections[DEFAULT_DB_ALIAS])
    return question(ctx)


@server.tool
async def aquestion(ctx: Context, text: str = "?", seconds: float = BOUND) -> str:
    """Ask, on the loop."""
    try:
        return str(
            _name(await ctx._exchange.peer.arequest("elicitation/create", _ask(text), seconds))
        )
    except AnswerTimedOut:
        return "no answer"


@server.tool
def released(ctx: Context, gate: str = "") -> bool:
    """Let the client come back for the result."""
    possible = ctx.release_stream()
    gates.wait(gate)
    return possible


@server.tool
def released_late(ctx: Context) -> bool:
    """Do so once the client has long had something on its connection."""
    ctx.log("info", "before")
    gates.wait("late")
    return ctx.release_stream()


@server.tool
def crash(ctx: Context) -> None:
    """Speak, and then fail."""
    ctx.log("info", "before")
    last(ctx)
    raise RuntimeError("planted")


@server.tool
def refuse(ctx: Context) -> None:
    """Speak, and then end in an error of the protocol."""
    ctx.log("info", "before")
    last(ctx)
    raise MCPError(7001, "of our own")


@server.tool
def scribble(ctx: Context) -> list[Any]:
    """Return what the client says of itself, and write into it."""
    assert ctx.session is not None
    said = [
        ctx.client_info,
        ctx.client_capabilities,
        ctx.session.sender.info,
        ctx.session.sender.capabilities,
    ]
    before = deepcopy(said)
    for each in said:
        assert each is not None
        each["scribbled"] = True
    return before


def _ask(text: str) -> dict[str, object]:
    return {"message": text, "requestedSchema": SCHEMA}


def _name(result: dict[str, object]) -> object:
    content = result.get("content")
    return content["name"] if isinstance(content, dict) else result["action"]
