"""The client of the revision that has batches: it sends several requests in one body."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from . import wire
from .clients import Legacy
from .following import Exchange
from .ledger import Ledger, nonce

BATCHING = "2025-03-26"


class Batching(Legacy):
    """One session of the oldest revision, which knows no questions to its user."""

    moves: ClassVar = {"together": 40, "read_slowly": 2, "call_off": 5, "touch": 3, "come_back": 5}
    moves_in_one_piece: ClassVar = {"together": 40}

    def __init__(self, url: str, ledger: Ledger, chance: random.Random) -> None:
        super().__init__(url, ledger, chance)
        self.revision = BATCHING
        # What is sent at once is told apart by its ids.
        self._ids = chance.choice([itertools.count(1), None])

    def batch(self, calls: Sequence[tuple[str, dict[str, Any]]], **options: Any) -> Batch:
        """Return the calls of several tools, to be run as one."""
        members = []
        for tool, arguments in calls:
            key = nonce()
            members.append(
                self.call(tool, key=key, arguments=arguments, words=arguments.get("words"))
            )
            # It is the batch that is asked for more, once it has ended.
            self._ended.pop()
        joint = Batch(
            ledger=self.ledger,
            url=self.url,
            headers=dict(self.headers),
            body=[each.body for each in members],
            session=self.key,
            key="+".join(each.key for each in members),
            members=members,
            **options,
        )
        self._ended.append(joint)
        return joint


@dataclass(kw_only=True)
class Batch(Exchange):
    """Several requests on one connection, each with an end of its own."""

    members: Sequence[Exchange]

    def note_sent(self) -> None:
        """Note each request for itself; of the connections they have notes in common."""
        for each in self.members:
            each.note_sent()

    async def take(self, response: wire.Response, event: str | None, message: Any) -> None:
        """Take what has come: all answers in an array, or one message after the other."""
        if isinstance(message, dict) and response.status != 200 and message.get("id") is None:
            # JSON-RPC 2.0, section 6: one error for all of them.
            message = [{**message, "id": each.body["id"]} for each in self.members]
        for each in message if isinstance(message, list) else [message]:
            await self._take_one(response, event, each)
        if all(each.terminal is not None for each in self.members):
            self.terminal, self.end_has_place = message, event is not None

    async def _take_one(self, response: wire.Response, event: str | None, message: Any) -> None:
        member = next((each for each in self.members if _is_for(each, message)), self.members[0])
        member.attempt = self.attempt
        await member.take(response, event, message)


def _is_for(member: Exchange, message: Any) -> bool:
    if "method" not in message:
        return bool(message.get("id") == member.body["id"])
    params = message.get("params", {})
    data = params.get("data")
    told = data.get("nonce") if isinstance(data, dict) else params.get("progressToken")
    return bool(told == member.key)
