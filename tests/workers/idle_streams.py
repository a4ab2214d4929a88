"""Streams on which nothing comes, many of them at one worker, and what that worker needs for them.

For the tests, and for the benchmark, which has no Django of its own.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.support.client import Client, Server, StatelessClient, served
from tests.support.servers import RunningServer
from tests.support.streams import StreamedAnswer

AT_ONCE = 20
"""Most streams that are opened at the same time."""
SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"


@dataclass(frozen=True, slots=True)
class IdleStream:
    """A stream that is open, and what tells its messages from those of others."""

    answer: StreamedAnswer
    session: str = ""
    """Of a session's own stream: the digest of the session's id."""
    number: int = -1
    """Of a stream of 2026-07-28: the id of its request, and what it listens to."""

    async def hear(self) -> Any:
        """Return the next message."""
        return await self.answer.message()


class IdleStreams:
    """Streams of both kinds at one worker; those of sessions and those without take turns."""

    def __init__(self, urls: Sequence[str], http: httpx.AsyncClient, stack: AsyncExitStack) -> None:
        self._urls = urls
        self._http = http
        self._stack = stack
        self._places = asyncio.Semaphore(AT_ONCE)
        self.streams: list[IdleStream] = []

    async def grow(self, number: int, kinds: str = "own listen") -> None:
        """Open streams until there are so many."""
        chosen = kinds.split()
        numbers = range(len(self.streams), number)
        self.streams += await asyncio.gather(
            *(self._open(chosen[number % len(chosen)], number) for number in numbers)
        )

    async def _open(self, kind: str, number: int) -> IdleStream:
        async with self._places:
            return await (self._open_own() if kind == "own" else self._open_listening(number))

    async def _open_own(self) -> IdleStream:
        client = await Client(*served(self._urls, self._http)).open()
        answer = await self._stack.enter_async_context(client.listen())
        assert answer.status == 200
        # It opens the stream: from then on it is served.
        assert (await answer.event()).id
        digest = hashlib.sha256(client.session_id.encode()).hexdigest()
        return IdleStream(answer, session=digest)

    async def _open_listening(self, number: int) -> IdleStream:
        wish = {"toolsListChanged": True, "resourceSubscriptions": [f"thing://{number}"]}
        client = StatelessClient(Server(self._urls[0], self._http))
        answer = await self._stack.enter_async_context(
            client.post("subscriptions/listen", id=number, notifications=wish)
        )
        assert answer.status == 200
        opened = await answer.message()
        assert opened["method"] == "notifications/subscriptions/acknowledged"
        return IdleStream(answer, number=number)


@dataclass(frozen=True, slots=True)
class Needs:
    """What a process holds at a moment."""

    threads: int
    files: int
    """Of a database that is a file: how often it is open."""
    memory: int
    """In bytes, as far as it is resident."""
    seconds: float
    """Processor time so far."""

    @classmethod
    def of(cls, server: RunningServer) -> Needs:
        """Look at a server process."""
        process = Path("/proc") / str(server.process.pid)
        lines = (line.partition(":") for line in (process / "status").read_text().splitlines())
        status = {name: value.split() for name, _, value in lines}
        ticks = (process / "stat").read_text().rpartition(")")[2].split()
        return cls(
            threads=int(status["Threads"][0]),
            files=sum(map(_is_database, _targets(process / "fd"))),
            memory=int(status["VmRSS"][0]) * 1024,
            seconds=(int(ticks[11]) + int(ticks[12])) / os.sysconf("SC_CLK_TCK"),
        )


def _is_database(target: str) -> bool:
    # Beside it lie its write-ahead log and what the processes share of that.
    return ".sqlite3." in target and not target.endswith(("-wal", "-shm"))


def _targets(directory: Path) -> list[str]:
    targets = []
    for each in directory.iterdir():
        try:
            targets.append(str(each.readlink()))
        except OSError:
            continue  # closed in this very moment
    return targets
