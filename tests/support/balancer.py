"""A load balancer that does not stick: each request goes to the next worker, on any connection.

Answers pass as they come. A connection that ends on one side ends on the other. A `Cut` breaks the
client's connection in the middle of a stream, where the network would.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from .proxy import CLOSED, END_OF_HEAD, HOST, Front, chunks, headers_of, read_body, reframed, served


@dataclass(frozen=True)
class Cut:
    """Breaks the connection of the first request that fits, when so many events have passed."""

    after: int
    method: str = "POST"
    having: bytes = b""
    """What the body of the request contains."""

    def fits(self, method: str, body: bytes) -> bool:
        """Whether this is the request to cut."""
        return method == self.method and self.having in body


@dataclass
class Passed:
    """One request that has passed, and what became of it."""

    method: str
    body: bytes
    last_event_id: str | None
    worker: int
    status: int | None = None
    is_stream: bool = False
    was_cut: bool = False

    @property
    def message(self) -> Any:
        """The body, read as JSON; `None` if there was none."""
        return json.loads(self.body) if self.body else None

    @property
    def asks(self) -> str:
        """The method and name that a JSON-RPC request asks for; empty for anything else."""
        message = self.message
        if not isinstance(message, dict) or "method" not in message:
            return ""
        params = message.get("params") or {}
        return f"{message['method']} {params.get('name', '')}".strip()

    @property
    def answers(self) -> bool:
        """Whether it is the answer to a question of the server's."""
        message = self.message
        return isinstance(message, dict) and "method" not in message


def resuming(passed: list[Passed]) -> list[Passed]:
    """Return the requests that come back to a stream because it goes on.

    After a call is called off, its stream ends without a response. The TypeScript SDK looks then
    whether anything follows, unless it is closed within a second, and is told that nothing does.
    """
    is_called_off, resumed = False, []
    for request in passed:
        is_called_off = is_called_off or request.asks == "notifications/cancelled"
        if request.last_event_id and not (is_called_off and request.status == 204):
            resumed.append(request)
    return resumed


class BrokenOff(ConnectionError):
    """A cut was due."""


@dataclass
class Balancer(Front):
    """Forwards HTTP/1.1 to the workers that listen on `ports` of this host."""

    ports: Sequence[int]
    cuts: list[Cut] = field(default_factory=list)
    passed: list[Passed] = field(default_factory=list, init=False)
    """All requests, in the order of their arrival."""

    def __post_init__(self) -> None:
        self._turns = itertools.cycle(range(len(self.ports)))
        self._sent_by: dict[str, int] = {}

    @property
    def url(self) -> str:
        """The address of the endpoint that all workers serve."""
        return f"http://{HOST}:{self.port}/mcp"

    async def _connected(
        self, client: asyncio.StreamReader, client_writer: asyncio.StreamWriter
    ) -> None:
        first: bytes | None = b""
        try:
            with suppress(*CLOSED):
                while first is not None:
                    head = first + await client.readuntil(END_OF_HEAD)
                    body = await read_body(client, headers_of(head))
                    first = await self._forward(head, body, client, client_writer)
        finally:
            client_writer.close()

    async def _forward(
        self, head: bytes, body: bytes, client: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bytes | None:
        """Have one request answered; return how the next begins, `None` if there is none."""
        passed, cut = self._note(head, body)
        upstream, upstream_writer = await self._reach(passed)
        upstream_writer.write(reframed(head, body))
        reply = asyncio.create_task(self._reply(passed, cut, upstream, writer))
        # It is the end of the connection, or the beginning of the next request.
        more = asyncio.create_task(client.read(1))
        try:
            await asyncio.wait([reply, more], return_when=asyncio.FIRST_COMPLETED)
            if not reply.done() and not more.result():
                return None
            await reply
            return await more or None
        finally:
            reply.cancel()
            more.cancel()
            upstream_writer.close()

    async def _reach(self, passed: Passed) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(HOST, self.ports[passed.worker])

    def _note(self, head: bytes, body: bytes) -> tuple[Passed, Cut | None]:
        method = head.split(b" ", 1)[0].decode()
        last_event_id = headers_of(head).get(b"last-event-id", b"").decode() or None
        passed = Passed(method, body, last_event_id, self._worker(last_event_id))
        self.passed.append(passed)
        cut = next((cut for cut in self.cuts if cut.fits(method, body)), None)
        if cut is not None:
            self.cuts.remove(cut)
        return passed, cut

    def _worker(self, last_event_id: str | None) -> int:
        if last_event_id in self._sent_by:
            # Whoever comes back to a stream finds another worker than the one that sent it.
            return (self._sent_by[last_event_id] + 1) % len(self.ports)
        return next(self._turns)

    async def _reply(
        self,
        passed: Passed,
        cut: Cut | None,
        upstream: asyncio.StreamReader,
        client: asyncio.StreamWriter,
    ) -> None:
        head = await upstream.readuntil(END_OF_HEAD)
        headers = headers_of(head)
        passed.status = int(head.split(b" ", 2)[1])
        passed.is_stream = b"event-stream" in headers.get(b"content-type", b"")
        client.write(head)
        if b"chunked" not in headers.get(b"transfer-encoding", b""):
            client.write(await upstream.readexactly(int(headers.get(b"content-length", b"0"))))
            await client.drain()
            return
        pieces = chunks(upstream)
        if passed.is_stream:
            pieces = self._events(passed, cut, pieces)
        async for piece in pieces:
            client.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await client.drain()
        client.write(b"0\r\n\r\n")
        await client.drain()

    async def _events(
        self, passed: Passed, cut: Cut | None, pieces: AsyncIterator[bytes]
    ) -> AsyncIterator[bytes]:
        count = 0
        async for event in blocks(pieces):
            fields = dict(line.partition(b": ")[::2] for line in event.splitlines())
            if b"id" in fields:
                self._sent_by[fields[b"id"].decode()] = passed.worker
            yield event
            count += b"data" in fields
            if cut is not None and count == cut.after:
                passed.was_cut = True
                raise BrokenOff


async def blocks(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The events and comments of a stream, one by one, each with the blank line that ends it."""
    rest = b""
    async for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n\n")
        for block in whole:
            yield block + b"\n\n"
    if rest:
        yield rest


@contextmanager
def balancing(ports: Sequence[int], cuts: Sequence[Cut] = ()) -> Iterator[Balancer]:
    """A balancer in front of workers on these ports, serving from a thread of its own."""
    with served(Balancer(ports, list(cuts))) as balancer:
        yield balancer
