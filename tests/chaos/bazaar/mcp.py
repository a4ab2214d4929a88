"""Tools that leave a trace, echo their nonce, and take their time, speak, or ask."""

from __future__ import annotations

import asyncio
import time

from django_mcp import Context, mcp

from .models import Effect

ANSWER_SECONDS = 20
"""How long a question waits. A client that lives answers within the bound of the checker."""


def act(nonce: str) -> str:
    Effect.objects.create(nonce=nonce)
    return nonce


async def aact(nonce: str) -> str:
    await Effect.objects.acreate(nonce=nonce)
    return nonce


@mcp.tool
def quick(nonce: str) -> str:
    """Do something at once."""
    return act(nonce)


@mcp.tool
async def aquick(nonce: str) -> str:
    """Do the same on the loop."""
    return await aact(nonce)


@mcp.tool
def slow(nonce: str, seconds: float) -> str:
    """Take a while, without a word."""
    act(nonce)
    time.sleep(seconds)
    return nonce


@mcp.tool
async def aslow(nonce: str, seconds: float) -> str:
    """Do the same on the loop."""
    await aact(nonce)
    await asyncio.sleep(seconds)
    return nonce


@mcp.tool
def speak(ctx: Context, nonce: str, words: int, seconds: float, size: int = 0) -> str:
    """Say so many words, numbered, and how far it is."""
    act(nonce)
    for number in range(words):
        ctx.log("info", {"nonce": nonce, "number": number, "pad": "x" * size})
        ctx.progress(number + 1, words)
        time.sleep(seconds)
    return nonce


@mcp.tool
async def aspeak(ctx: Context, nonce: str, words: int, seconds: float, size: int = 0) -> str:
    """Do the same on the loop."""
    await aact(nonce)
    for number in range(words):
        await ctx.alog("info", {"nonce": nonce, "number": number, "pad": "x" * size})
        await ctx.aprogress(number + 1, words)
        await asyncio.sleep(seconds)
    return nonce


@mcp.tool
def ask(ctx: Context, nonce: str, questions: int = 1) -> str:
    """Ask for the words of each question, and return the nonce if these were the answers."""
    asked = [f"{nonce} {number}" for number in range(questions)]
    answers = [ctx.elicit(each, str, timeout=ANSWER_SECONDS) for each in asked]
    act(nonce)
    return nonce if answers == asked else f"{answers}"


@mcp.tool
async def aask(ctx: Context, nonce: str, questions: int = 1) -> str:
    """Do the same on the loop."""
    asked = [f"{nonce} {number}" for number in range(questions)]
    answers = [await ctx.aelicit(each, str, timeout=ANSWER_SECONDS) for each in asked]
    await aact(nonce)
    return nonce if answers == asked else f"{answers}"


@mcp.resource("thing://{key}")
def thing(key: str) -> str:
    """Something that changes."""
    return key


@mcp.tool
def touch(nonce: str, key: str) -> str:
    """Say that a thing has changed."""
    act(nonce)
    mcp.notify_resource_updated(f"thing://{key}")
    return nonce
