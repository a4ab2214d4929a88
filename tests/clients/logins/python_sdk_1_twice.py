"""The OAuth provider of the Python SDK 1.12 sends each request twice: what comes of it.

Its `async_auth_flow` ends with a `yield request` that belongs to the branch for 401, and is not in
it (mcp/client/auth.py; mended in 1.14). The first answer is read to its end before, as
`requires_response_body` has it, so what streams is not heard. The second request has the token of
the first, and no branch behind it: if that has expired meanwhile, its 401 ends the connection.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from typing import Any

import httpx
from python_sdk_1 import connect


def failures(error: BaseException) -> Iterator[BaseException]:
    """Give the errors in a group."""
    if not isinstance(error, BaseExceptionGroup):
        yield error
        return
    for each in error.exceptions:
        yield from failures(each)


async def main(site: str, client_id: str, callback: str) -> dict[str, Any]:
    """Call twice, and then for longer than a token is good."""
    story: dict[str, Any] = {}
    try:
        async with connect(site + "/mcp", client_id, callback) as client:
            story["who"] = await client.text_of("whoami")
            story["counted"] = [await client.text_of("count") for _ in range(2)]
            seconds = int(os.environ["LIFETIME"]) + 1
            await client.session.call_tool("wait", {"seconds": seconds})
    except* httpx.HTTPStatusError as group:
        story["failed"] = [each.response.status_code for each in failures(group)]
    return story


if __name__ == "__main__":
    print("\n" + json.dumps(asyncio.run(main(*sys.argv[1:]))), flush=True)
    os._exit(0)
