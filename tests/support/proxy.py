"""A reverse proxy through which a client proposes an older revision than its own.

The suite's client always proposes 2025-11-25, whatever revision it is told to test. The proxy
rewrites `protocolVersion` in `initialize` requests and nothing else, so that the older revisions
are negotiated for real. Replies pass as raw bytes: streams keep streaming, and a connection that
ends on one side ends on the other.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TypeVar

HOST = "127.0.0.1"
FRAMING = (b"content-length", b"transfer-encoding")
END_OF_HEAD = b"\r\n\r\n"
CLOSED = (asyncio.IncompleteReadError, ConnectionError)
STARTUP_SECONDS = 10


@dataclass
class Front:
    """Takes the connections of clients, on a port of the system's choosing."""

    port: int = field(default=0, init=False)
    _listening: threading.Event = field(default_factory=threading.Event, init=False)
    _close: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    async def run(self) -> None:
        """Serve on a port of the system's choosing until :meth:`stop`."""
        self._loop = asyncio.get_running_loop()
        server = await asyncio.start_server(self._connected, HOST, 0)
        self.port = server.sockets[0].getsockname()[1]
        self._listening.set()
        await self._close.wait()
        server.close()

    def wait_until_listening(self) -> None:
        """Block until the port is known; called from another thread than :meth:`run`."""
        if not self._listening.wait(STARTUP_SECONDS):
            raise TimeoutError("Nobody listens.")

    def stop(self) -> None:
        """End :meth:`run`; called from another thread."""
        self._loop.call_soon_threadsafe(self._close.set)

    async def _connected(
        self, client: asyncio.StreamReader, client_writer: asyncio.StreamWriter
    ) -> None:
        raise NotImplementedError


F = TypeVar("F", bound=Front)


@contextmanager
def served(front: F) -> Iterator[F]:
    """Let it serve from a thread of its own."""
    thread = threading.Thread(target=lambda: asyncio.run(front.run()), daemon=True)
    thread.start()
    front.wait_until_listening()
    try:
        yield front
    finally:
        front.stop()
        thread.join(STARTUP_SECONDS)


@dataclass
class DowngradingProxy(Front):
    """Forwards HTTP/1.1 to `upstream` on this host, with older proposals in `initialize`."""

    upstream: int
    revision: str

    async def _connected(
        self, client: asyncio.StreamReader, client_writer: asyncio.StreamWriter
    ) -> None:
        server, server_writer = await asyncio.open_connection(HOST, self.upstream)
        ways = [
            asyncio.create_task(self._forward_requests(client, server_writer)),
            asyncio.create_task(forward_replies(server, client_writer)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            server_writer.close()
            client_writer.close()

    async def _forward_requests(
        self, client: asyncio.StreamReader, server: asyncio.StreamWriter
    ) -> None:
        with suppress(*CLOSED):
            while True:
                head = await client.readuntil(END_OF_HEAD)
                body = await read_body(client, headers_of(head))
                server.write(reframed(head, downgraded(body, revision=self.revision)))
                await server.drain()


@contextmanager
def downgrading_proxy(upstream: int, *, revision: str) -> Iterator[DowngradingProxy]:
    """A proxy in front of the port `upstream`, serving from a thread of its own."""
    with served(DowngradingProxy(upstream, revision)) as proxy:
        yield proxy


def headers_of(head: bytes) -> dict[bytes, bytes]:
    """The headers of a request's head, names in lower case."""
    lines = head.removesuffix(END_OF_HEAD).split(b"\r\n")[1:]
    pairs = (line.split(b":", 1) for line in lines)
    return {name.strip().lower(): value.strip() for name, value in pairs}


async def read_body(client: asyncio.StreamReader, headers: dict[bytes, bytes]) -> bytes:
    """The body that follows a head, however it is framed."""
    if b"chunked" in headers.get(b"transfer-encoding", b""):
        return b"".join([chunk async for chunk in chunks(client)])
    return await client.readexactly(int(headers.get(b"content-length", b"0")))


async def chunks(client: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """The chunks of a chunked body; trailers are dropped."""
    while size := int((await client.readuntil(b"\r\n")).split(b";")[0], 16):
        yield await client.readexactly(size)
        await client.readexactly(2)
    while await client.readuntil(b"\r\n") != b"\r\n":
        pass


def downgraded(body: bytes, *, revision: str) -> bytes:
    """The body, with the older proposal if it is an `initialize` request."""
    try:
        message = json.loads(body)
    except ValueError:
        return body
    if not isinstance(message, dict) or message.get("method") != "initialize":
        return body
    params = message.get("params")
    if not isinstance(params, dict) or "protocolVersion" not in params:
        return body
    return json.dumps(message | {"params": params | {"protocolVersion": revision}}).encode()


def reframed(head: bytes, body: bytes) -> bytes:
    """The request again, framed by the body's length; other header lines stay as they came."""
    first, *lines = head.removesuffix(END_OF_HEAD).split(b"\r\n")
    kept = [line for line in lines if line.split(b":", 1)[0].strip().lower() not in FRAMING]
    if len(kept) < len(lines):
        kept.append(b"Content-Length: %d" % len(body))
    return b"\r\n".join([first, *kept]) + END_OF_HEAD + body


async def forward_replies(server: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
    """Pass on what the server sends, as it comes, until one side closes."""
    with suppress(*CLOSED):
        while data := await server.read(65536):
            client.write(data)
            await client.drain()
