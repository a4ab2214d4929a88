"""``python python_1.py URL``: the official Python client 1.x prints each change that it hears of.

It needs nothing but that package.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client


async def hear(message: Any) -> None:
    """Print a notification by its method."""
    method = getattr(getattr(message, "root", None), "method", None)
    if method is not None:
        print(method, flush=True)


async def main(url: str) -> None:
    """Connect, and stay until this process is ended."""
    async with (
        streamablehttp_client(url) as (reading, writing, _),
        ClientSession(reading, writing, message_handler=hear) as session,
    ):
        await session.initialize()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
