"""``python python_2.py URL``: the official Python client 2.x, in a session, prints each change
that it hears of.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from mcp import Client
from mcp.client.streamable_http import streamable_http_client


async def hear(message: Any) -> None:
    """Print a notification by its method."""
    method = getattr(message, "method", None)
    if method is not None:
        print(method, flush=True)


async def main(url: str) -> None:
    """Connect, and stay until this process is ended."""
    async with Client(streamable_http_client(url), mode="legacy", message_handler=hear):
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
