"""HTTP/1.1 and Server-Sent Events on bare sockets: one request per connection, nothing hidden.

It shares no code with the package, and no library decides here when to try again.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

GONE = (OSError, asyncio.IncompleteReadError)


class Broken(Exception):
    """The connection ended before the answer did."""


class Refused(Broken):
    """The connection ended, or never was, before the first line of an answer."""


@dataclass
class Response:
    """An answer that is read as it comes."""

    status: int
    headers: dict[str, str]
    reader: asyncio.StreamReader

    @property
    def is_stream(self) -> bool:
        """Whether its body is a stream of events."""
        return self.headers.get("content-type", "").startswith("text/event-stream")

    async def messages(self) -> AsyncIterator[tuple[str | None, Any]]:
        """Yield each message with its event id; ``None`` for an event without one."""
        if not self.is_stream:
            body = b"".join([piece async for piece in self._pieces()])
            if body.strip():
                yield None, json.loads(body)
            return
        rest = b""
        async for piece in self._pieces():
            *whole, rest = (rest + piece).split(b"\n\n")
            for block in whole:
                fields = dict(line.partition(b": ")[::2] for line in block.splitlines())
                if b"data" in fields or b"id" in fields:
                    data = fields.get(b"data", b"").strip()
                    event = fields[b"id"].decode() if b"id" in fields else None
                    yield event, json.loads(data) if data else None

    async def _pieces(self) -> AsyncIterator[bytes]:
        try:
            if "chunked" not in self.headers.get("transfer-encoding", ""):
                yield await self.reader.readexactly(int(self.headers.get("content-length", "0")))
                return
            while size := int((await self.reader.readuntil(b"\r\n")).split(b";")[0], 16):
                yield await self.reader.readexactly(size)
                await self.reader.readexactly(2)
            await self.reader.readuntil(b"\r\n")
        except GONE as error:
            raise Broken from error


@asynccontextmanager
async def exchange(
    url: str, method: str, headers: dict[str, str], body: bytes = b""
) -> AsyncIterator[Response]:
    """Make one request on a connection of its own, which is aborted at the end of the block."""
    parts = urlsplit(url)
    lines = [f"{method} {parts.path} HTTP/1.1", f"Host: {parts.netloc}", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    lines += [f"Content-Length: {len(body)}", "", ""]
    writer = None
    try:
        try:
            reader, writer = await _connect(parts.hostname or "", parts.port or 80)
            writer.write("\r\n".join(lines).encode() + body)
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
        except GONE as error:
            raise Refused from error
        first, *rest = head.strip().split("\r\n")
        pairs = (line.split(":", 1) for line in rest)
        yield Response(
            int(first.split()[1]), {name.lower(): value.strip() for name, value in pairs}, reader
        )
    finally:
        if writer is not None:
            writer.transport.abort()


async def _connect(host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    # Small buffers, so that whoever does not read is soon felt by whoever writes.
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
    sock.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(sock, (host, port))
    except BaseException:
        sock.close()
        raise
    return await asyncio.open_connection(sock=sock, limit=65536)
