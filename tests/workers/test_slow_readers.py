"""Clients that do not read, over real sockets: they cost little, and not for long."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from tests.support.client import Client, Server, StatelessClient, served
from tests.support.messages import HEADERS, META_LOG_LEVEL, modern, request

from .serving import serving

WORDS, SIZE = 400, 16_000
"""More than sockets and servers keep for a client, and more than its queue holds."""


@contextmanager
def unread(url: str, message: Any, **headers: str) -> Iterator[socket.socket]:
    """Send a request, and read nothing of its answer."""
    place = urlsplit(url)
    body = json.dumps(message).encode()
    given = {**HEADERS, **headers, "Host": place.netloc, "Content-Length": str(len(body))}
    head = "".join(f"{name}: {value}\r\n" for name, value in given.items())
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect((place.hostname, place.port))
        client.sendall(f"POST {place.path} HTTP/1.1\r\n{head}\r\n".encode() + body)
        yield client


def flooding(url: str, seconds: float) -> Any:
    arguments = {"words": WORDS, "size": SIZE, "seconds": seconds}
    meta = {META_LOG_LEVEL: "info"}
    message, headers = modern("tools/call", meta=meta, name="flood", arguments=arguments)
    return unread(url, message, **headers)


async def settles(here: StatelessClient, **expected: int) -> dict[str, int]:
    """Wait until the process keeps no more than that; return what it keeps."""
    async with asyncio.timeout(30):
        while True:
            found = await here.value("waiting_here")
            if all(found[name] <= number for name, number in expected.items()):
                return found
            await asyncio.sleep(0.1)


@pytest.mark.parametrize("door", ["mount", "asgi-view"])
def test_a_modern_client_that_does_not_read_is_given_up_and_so_is_its_call(door):
    with serving(door, WRITE_TIMEOUT="1") as workers:

        async def main(http: httpx.AsyncClient) -> None:
            here = StatelessClient(Server(workers.urls[0], http))
            with flooding(workers.urls[0], seconds=300) as client:
                async with asyncio.timeout(30):
                    while not (found := await here.value("waiting_here"))["connections"]:
                        await asyncio.sleep(0.02)
                # A thousand messages at most wait in memory, and four megabytes.
                assert found["messages"] * SIZE <= 4 * 1024 * 1024
                await settles(here, connections=0, messages=0)
                assert await asyncio.to_thread(is_cut, client)

        workers.run(main)


def is_cut(client: socket.socket) -> bool:
    """Read what was on its way, and return whether it ends before the answer's end."""
    client.settimeout(30)
    read = b""
    try:
        while part := client.recv(1 << 20):
            read += part
    except ConnectionError:
        pass
    return b'"result"' not in read


def test_a_legacy_client_that_does_not_read_comes_back_for_the_rest():
    with serving("mount", WRITE_TIMEOUT="1") as workers:

        async def main(http: httpx.AsyncClient) -> list[Any]:
            here = StatelessClient(Server(workers.urls[0], http))
            member = await Client(*served(workers.urls, http)).open()
            arguments = {"words": 100, "size": SIZE, "seconds": 0}
            message = request("tools/call", "slow", name="flood", arguments=arguments)
            session = {"Mcp-Session-Id": member.session_id}
            with unread(workers.urls[0], message, **session) as client:
                await asyncio.to_thread(client.recv, 1, socket.MSG_PEEK)
                await settles(here, connections=0, readers=0, messages=0)
                head = await asyncio.to_thread(client.recv, 2000)
            place = head.decode().split("\nid: ")[1].split("\n")[0].strip()
            async with member.listen(place) as answer:
                return await answer.messages()

        *said, last = workers.run(main)
    assert [each["params"]["data"].split()[0] for each in said] == [str(n) for n in range(100)]
    assert last["id"] == "slow"
