"""Tools that sleep, speak and ask."""

from __future__ import annotations

import asyncio
import random
import time

from django_mcp import Context, mcp


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
def speak(ctx: Context, value: str, words: int = 3, seconds: float = 0.0) -> str:
    """Say something from time to time."""
    for number in range(words):
        ctx.log("info", f"{value}/{number}")
        time.sleep(random.uniform(0, seconds))
    return value


@mcp.tool
async def aspeak(ctx: Context, value: str, words: int = 3, seconds: float = 0.0) -> str:
    """Do the same on the loop."""
    for number in range(words):
        await ctx.alog("info", f"{value}/{number}")
        await asyncio.sleep(random.uniform(0, seconds))
    return value


@mcp.tool
def ask(ctx: Context, value: str) -> str:
    """Ask for a name, and return it with what was given."""
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    params = {"message": value, "requestedSchema": schema}
    answer = ctx._exchange.peer.ask("elicitation/create", params, 30)
    return f"{value}: {answer['content']['name']}"


@mcp.tool
async def aask(ctx: Context, value: str) -> str:
    """Do the same on the loop."""
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    params = {"message": value, "requestedSchema": schema}
    answer = await ctx._exchange.peer.aask("elicitation/create", params, 30)
    return f"{value}: {answer['content']['name']}"


@mcp.tool
def fail(value: str) -> str:
    """Fail, as code does."""
    raise RuntimeError(value)
