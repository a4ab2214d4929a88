"""What the scripts in Python have in common: a client's story of its login, told as JSON.

Each step is taken with one client that is logged in, in this order; what is printed says what the
server saw of it. The person's visits are noted by ``person`` in the file that VISITS names.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from person import Person

SECONDS = 60


class Teller:
    """A client that is logged in."""

    def __init__(self) -> None:
        self.waiting = asyncio.Event()
        self._back = ""

    # What a client asks of its host, if it opens no browser itself

    async def visit(self, url: str) -> None:
        """Have the person agree."""
        self._back = await asyncio.to_thread(Person().agree, url)

    @property
    def back(self) -> dict[str, str]:
        """What came back with the person."""
        return dict(parse_qsl(urlsplit(self._back).query))

    # What it does

    async def text_of(self, tool: str) -> str:
        """Call a tool, and return the text of its result."""
        raise NotImplementedError

    async def tools(self) -> list[str]:
        """Return the names of the tools."""
        raise NotImplementedError

    async def expire(self) -> None:
        """Wait until the access token has expired, as the client sees it."""
        until = time.monotonic() + SECONDS
        while not self.is_expired():
            if time.monotonic() > until:
                raise TimeoutError("the token does not expire")
            await asyncio.sleep(0.05)

    def is_expired(self) -> bool:
        """Return whether the access token has expired, as the client sees it."""
        raise NotImplementedError


def visits() -> int:
    """Return how often the person was asked."""
    notes = Path(os.environ["VISITS"])
    return len(notes.read_text().splitlines()) if notes.exists() else 0


async def tell(client: Teller, site: str) -> dict[str, Any]:
    """Take all steps."""
    story: dict[str, Any] = {"tools": sorted(await client.tools())}
    story["who"] = await client.text_of("whoami")
    story["pay"] = await _said(client.text_of("pay"))
    before = visits()
    await client.expire()
    story["refreshed"] = await client.text_of("whoami")
    story["asked_again"] = visits() - before
    calling = asyncio.create_task(_said(client.text_of("wait")))
    await asyncio.wait_for(client.waiting.wait(), SECONDS)
    story["revoked"] = await asyncio.to_thread(Person().revoke, site)
    begun = time.monotonic()
    story["ended"] = await asyncio.wait_for(calling, SECONDS)
    story["ended_after"] = time.monotonic() - begun
    return story


async def _said(calling: Awaitable[str]) -> str:
    """Return what a call said, or how it failed."""
    try:
        return await calling
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def run(connect: Callable[[str, str, str], AbstractAsyncContextManager[Teller]]) -> None:
    """Connect to the endpoint of the site that the first argument names, and print the story.

    The second says how to come to a client id, `registration` or the URL of a document, and the
    third where the browser is sent back. The process ends at once: the clients would end sessions
    of a login that is no more.
    """
    site, client_id, callback = sys.argv[1:]

    async def whole() -> None:
        async with asyncio.timeout(3 * SECONDS), connect(site + "/mcp", client_id, callback) as it:
            print("\n" + json.dumps(await tell(it, site)), flush=True)
            os._exit(0)

    asyncio.run(whole())
