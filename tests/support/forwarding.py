"""Load balancers that know of their workers what sockets tell: which take connections, and which
of those have been closed.

Nothing is sent twice, and no worker is asked how it is. Some balance connections: what stands
between clients and workers is then as good as not there. One balances requests, as proxies do, on
connections to the workers that it keeps. Each runs in a process of its own, so that nothing but
the workers makes it late: ``python -m tests.support.forwarding KIND PORT...``.
"""

from __future__ import annotations

import asyncio
import select
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from .proxy import CLOSED, END_OF_HEAD, HOST, Front, chunks, headers_of, read_body, reframed

BLOCK = 65536
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass
class Forwarder(Front):
    """Forwards connections to the workers that listen on `ports` of this host."""

    ports: Sequence[int]
    _turn: int = field(default=0, init=False)

    async def _connected(
        self, client: asyncio.StreamReader, client_writer: asyncio.StreamWriter
    ) -> None:
        writers = [client_writer]
        try:
            with suppress(*CLOSED):
                worker, worker_writer = await self._reach()
                writers.append(worker_writer)
                ways = [_pass_on(client, worker_writer), _pass_on(worker, client_writer)]
                tasks = [asyncio.ensure_future(way) for way in ways]
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in tasks:
                    task.cancel()
        finally:
            for writer in writers:
                writer.close()

    async def _reach(self) -> Streams:
        self._turn += 1
        # Twice, for one may have stopped to listen when the other has just begun.
        for number in range(2 * len(self.ports)):
            with suppress(ConnectionRefusedError):
                port = self.ports[(self._turn + number) % len(self.ports)]
                return await asyncio.open_connection(HOST, port)
        raise ConnectionRefusedError


class InOrder(Forwarder):
    """Tries the first worker first, each time."""

    async def _reach(self) -> Streams:
        self._turn = -1
        return await super()._reach()


@dataclass
class RequestForwarder(Forwarder):
    """Forwards requests, on connections that are kept until the worker closes them."""

    _idle: list[Streams] = field(default_factory=list, init=False)

    async def _connected(
        self, client: asyncio.StreamReader, client_writer: asyncio.StreamWriter
    ) -> None:
        try:
            with suppress(*CLOSED):
                while True:
                    head = await client.readuntil(END_OF_HEAD)
                    body = await read_body(client, headers_of(head))
                    await self._forward(reframed(head, body), client_writer)
        finally:
            client_writer.close()

    async def _forward(self, request: bytes, client: asyncio.StreamWriter) -> None:
        worker, worker_writer = await self._reach()
        is_kept = False
        try:
            worker_writer.write(request)
            is_kept = await _answer(worker, client)
        finally:
            if is_kept:
                self._idle.append((worker, worker_writer))
            else:
                worker_writer.close()

    async def _reach(self) -> Streams:
        while self._idle:
            worker, worker_writer = self._idle.pop(0)
            if not _has_news(worker_writer):
                return worker, worker_writer
            worker_writer.close()
        return await super()._reach()


async def _answer(worker: asyncio.StreamReader, client: asyncio.StreamWriter) -> bool:
    """Pass a response on; return whether the worker keeps the connection."""
    head = await worker.readuntil(END_OF_HEAD)
    headers = headers_of(head)
    lines = head.removesuffix(END_OF_HEAD).split(b"\r\n")
    kept = [line for line in lines if not line.lower().startswith(b"connection:")]
    client.write(b"\r\n".join(kept) + END_OF_HEAD)
    if b"chunked" in headers.get(b"transfer-encoding", b""):
        async for piece in chunks(worker):
            client.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await client.drain()
        client.write(b"0\r\n\r\n")
    else:
        client.write(await worker.readexactly(int(headers.get(b"content-length", b"0"))))
    await client.drain()
    return headers.get(b"connection", b"").lower() != b"close"


def _has_news(writer: asyncio.StreamWriter) -> bool:
    """Whether a connection on which nothing is due has been closed."""
    poll = select.poll()
    poll.register(writer.get_extra_info("socket").fileno(), select.POLLIN)
    return bool(poll.poll(0))


async def _pass_on(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with suppress(*CLOSED):
        while data := await source.read(BLOCK):
            target.write(data)
            await target.drain()


KINDS = {"connections": Forwarder, "in-order": InOrder, "requests": RequestForwarder}


@contextmanager
def forwarding(ports: Sequence[int], kind: str = "connections") -> Iterator[str]:
    """Forward to the workers on these ports; give the address of the endpoint that they serve."""
    command = [sys.executable, "-m", "tests.support.forwarding", kind, *map(str, ports)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://{HOST}:{int(process.stdout.readline())}/mcp"
        finally:
            process.kill()


async def _main(kind: str, *ports: str) -> None:
    front = KINDS[kind](list(map(int, ports)))
    running = asyncio.create_task(front.run())
    await asyncio.to_thread(front.wait_until_listening)
    print(front.port, flush=True)
    await running


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))
