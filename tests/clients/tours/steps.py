"""What the scripts beside this file have in common; it needs nothing but Python.

A script has a class for its client, with a method for each step that the client can take. They are
taken one after the other, as the arguments name them; what each returns is printed as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
import uuid
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

STEPS = [
    "tools",
    "resource",
    "prompt",
    "call",
    "progress",
    "logs",
    "question",
    "failure",
    "crash",
    "resumption",
    "cancellation",
]
SECONDS = 30

BIND = {"title": "Emma", "sheets": 4}
BIND_AND_BREAK_OFF = {"title": "Mansfield Park", "sheets": 6}
"""The balancer breaks the stream of this call off."""
BORROW = {"title": "Emma"}
CATALOGUE = "book://catalogue"
LOAN = {"days": 14, "renew": True}
RENEW = {"title": "Persuasion"}
RENEW_IN_VAIN = {"title": "Emma"}
RENEW_AND_CRASH = {"title": "Sanditon"}
REVIEW = {"title": "Emma"}


class Tour:
    """What every client can do that calls a tool, and what reaches it besides."""

    def __init__(self) -> None:
        self.heard_progress: list[Any] = []
        self.heard_logs: list[str] = []
        self.asked: list[str] = []

    async def text_of(self, tool: str, arguments: dict[str, Any]) -> str:
        """Call a tool, and return the text of its result."""
        raise NotImplementedError

    async def call(self) -> list[str]:
        return [await self.text_of("who_asks", {}), await self.text_of("renew", RENEW)]

    async def hear_progress(self, progress: float, total: Any, message: Any, *args: Any) -> None:
        self.heard_progress.append([progress, total, message])

    async def bind(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Let a tool report progress."""
        self.heard_progress.clear()
        text = await self.text_of("bind", arguments)
        return {"text": text, "progress": list(self.heard_progress)}

    async def progress(self) -> dict[str, Any]:
        return await self.bind(BIND)

    async def resumption(self) -> dict[str, Any]:
        return await self.bind(BIND_AND_BREAK_OFF)

    async def question(self) -> dict[str, Any]:
        """Let a tool ask."""
        return {"text": await self.text_of("borrow", BORROW), "asked": self.asked}

    async def failing(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Renew a book in vain, and tell how an agent hears of it."""
        raise NotImplementedError

    async def failure(self) -> dict[str, Any]:
        return await self.failing(RENEW_IN_VAIN)

    async def crash(self) -> dict[str, Any]:
        return await self.failing(RENEW_AND_CRASH)

    async def logs(self) -> list[str]:
        await self.text_of("gossip", {})
        return self.heard_logs

    async def cancellation(self) -> bool:
        """Call off a call that has begun; return whether its function has noted that."""
        name = f"doze {uuid.uuid4()}"
        calling = asyncio.create_task(self.text_of("doze", {"name": name}))
        await self.noted(f"{name} began")
        calling.cancel()
        await asyncio.wait([calling])
        return await self.noted(name)

    async def noted(self, name: str) -> bool:
        """Wait until a function has noted something, at whichever worker."""
        while "true" not in (await self.text_of("noted", {"name": name})).lower():
            await asyncio.sleep(0.05)
        return True


def run(connect: Callable[[str, str, list[str]], AbstractAsyncContextManager[Any]]) -> None:
    """Connect as the arguments say, take the steps that they name, and print the story."""
    url, mode, *steps = sys.argv[1:]

    async def take_all() -> dict[str, Any]:
        async with connect(url, mode, steps) as client:
            return {
                step: await asyncio.wait_for(getattr(client, step)(), SECONDS) for step in steps
            }

    # Some print what they do.
    print("\n" + json.dumps(asyncio.run(take_all())))
