"""One exchange as its client follows it: the request, and the ways back to its stream."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from . import wire
from .ledger import Ledger

BOUND = 60.0
"""Seconds after which whoever has been told nothing gives up. Longer than everything that may hold
an answer up: the longest call, a process that stands still, two leases, an outage, a start.
"""
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 1.0
"""Seconds before a client comes back; it doubles them each time."""

LOOK_SECONDS = 2.0

Heard = Callable[[Any], Awaitable[None]]


async def ignore(message: Any) -> None:
    """Do nothing about a message."""


@dataclass(kw_only=True)
class Exchange:
    """A request from its client's side; ``hear`` takes what comes before its end."""

    ledger: Ledger
    url: str
    headers: dict[str, str]
    body: Any
    session: str | None
    key: str
    resumable: bool = True
    """Whether its client comes back to a stream that breaks."""
    what: str = ""
    words: int | None = None
    nonce: str | None = None
    """What its tool leaves behind and echoes, where that is not the key."""
    hear: Heard = ignore
    leaves_after: int | None = None
    """After how many events it breaks the connection itself, once."""
    reads_after: float = 0.0
    """How many seconds it does not read what comes."""
    bound: float | None = BOUND
    place: str | None = None
    """The id of the last event that has come."""
    terminal: Any = None
    status: int | None = None
    response_headers: dict[str, str] = field(default_factory=dict)
    attempt: int = 0
    """Which of its connections it has now, counted from 1."""
    end_has_place: bool = False
    """Whether its end came with an event id."""

    async def run(self) -> Any:
        """Follow the exchange to its end; return its terminal message, `None` without one."""
        self.note_sent()
        try:
            async with asyncio.timeout(self.bound):
                await self._follow()
        except TimeoutError:
            self.ledger.note("gave_up", x=self.key)
        return self.terminal

    def note_sent(self) -> None:
        """Note that it goes out."""
        self.ledger.note(
            "sent",
            x=self.key,
            s=self.session,
            what=self.what,
            id=self.body["id"],
            words=self.words,
            nonce=self.nonce or self.key,
            resumable=self.resumable,
        )

    async def look_again(self) -> None:
        """Ask once more for what comes after the end.

        Not if the end came without an event id: then what comes after the last id is that end.
        """
        if self.end_has_place and self.resumable:
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._connect("GET", b"")

    async def _follow(self) -> None:
        await self._connect("POST", json.dumps(self.body).encode())
        pause = FIRST_PAUSE
        if self.status is None:
            await asyncio.sleep(LONGEST_PAUSE)  # as one does whom nobody answers
        while self.terminal is None and self.place is not None and self.resumable:
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
            before = self.place
            await self._connect("GET", b"")
            if self.place != before:
                pause = FIRST_PAUSE
            if self.status not in (None, 200, 503):
                return  # it is told that there is nothing to come back to

    async def _connect(self, method: str, body: bytes) -> None:
        self.attempt += 1
        facts = {"x": self.key, "a": self.attempt}
        headers = {**self.headers, "X-Exchange": f"{self.key}/{self.attempt}"}
        if method == "GET":
            assert self.place is not None
            headers["Last-Event-ID"] = self.place
        self.ledger.note("try", **facts, place=self.place)
        self.status, how = None, "left"
        try:
            async with wire.exchange(self.url, method, headers, body) as response:
                self.status, self.response_headers = response.status, response.headers
                self.ledger.note("head", **facts, s=self.session, status=response.status)
                how = await self._read(response)
        except wire.Refused:
            how = "refused"
        except wire.Broken:
            how = "broken"
        finally:
            self.ledger.note("end", **facts, how=how, place=self.place)

    async def take(self, response: wire.Response, event: str | None, message: Any) -> None:
        """Take a message that has come."""
        facts = {"x": self.key, "a": self.attempt}
        self.ledger.note("message", **facts, event=event, message=_without_padding(message))
        if not _is_terminal(message):
            await self.hear(message)
        elif response.status == 200 or self.attempt == 1:
            self.terminal, self.end_has_place = message, event is not None

    async def _read(self, response: wire.Response) -> str:
        if self.reads_after:
            await asyncio.sleep(self.reads_after)
            self.reads_after = 0
        count = 0
        async for event, message in response.messages():
            self.place = event or self.place
            if message is not None:
                await self.take(response, event, message)
            count += 1
            if self.leaves_after is not None and count >= self.leaves_after:
                self.leaves_after = None
                return "left"
        return "complete"


def _is_terminal(message: Any) -> bool:
    return "method" not in message


def _without_padding(message: Any) -> Any:
    data = message.get("params", {}).get("data") if message.get("method") else None
    if isinstance(data, dict) and data.get("pad"):
        return {**message, "params": {**message["params"], "data": {**data, "pad": ""}}}
    return message
