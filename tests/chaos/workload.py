"""One client process: ``python -m tests.chaos.workload URL LEDGER SEED ACTORS DOOR``.

Each of its actors opens a session, makes a number of moves, several at a time, and begins again,
until standard input is closed; then each ends what it has begun. What the moves are follows from
the seed; when they meet which fault does not.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

from . import library
from .batches import Batching
from .clients import Legacy
from .ledger import Ledger, nonce
from .library import Library
from .modern import Modern
from .servers import has_streams

Client = Legacy | Modern | Library
SHARES: dict[type[Client], float] = {Legacy: 0.4, Batching: 0.1, Modern: 0.22, Library: 0.28}
MOVES = (15, 40)
"""How many moves are made with one session."""
AT_ONCE = (1, 1, 2, 4)
REST = 0.25
"""Seconds between two rounds of moves, on average."""


class Actor:
    """Whoever makes the moves of one client."""

    def __init__(self, client: Client, chance: random.Random, streams: bool) -> None:
        self.client = client
        self.chance = chance
        self.streams = streams
        """Whether answers come as streams that can be resumed, and questions can be asked."""
        self.thing = nonce()

    async def live(self, going: Callable[[], bool]) -> None:
        """Make the moves of one session."""
        async with AsyncExitStack() as stack:
            if self.streams:
                await stack.enter_async_context(self.client.listening(f"thing://{self.thing}"))
            for _ in range(self.chance.randint(*MOVES)):
                if not going():
                    break
                moves = self.chance.choices(*self._moves(), k=self.chance.choice(AT_ONCE))
                await asyncio.gather(*(move() for move in moves))
                await asyncio.sleep(self.chance.uniform(0, 2 * REST))
            if self.streams:
                await self.touch()
        await self.client.finish()

    def _moves(self) -> tuple[list[Callable[[], Awaitable[Any]]], list[int]]:
        more = self.client.moves if self.streams else self.client.moves_in_one_piece
        weights = {"quick": 50, "slow": 10, "speak": 10, "other": 10, **more}
        return [getattr(self, name) for name in weights], list(weights.values())

    def _either(self, tool: str) -> str:
        return self.chance.choice([tool, f"a{tool}"])

    def _call(self, tool: str, options: dict[str, Any] | None = None, **arguments: Any) -> Any:
        name = self._either(tool)
        return self.client.call(name, key=nonce(), arguments=arguments, **(options or {}))

    async def quick(self) -> None:
        """Call what ends at once."""
        await self._call("quick").run()

    async def slow(self) -> None:
        """Call what takes its time, which makes it a stream, without a word."""
        await self._call("slow", seconds=self.chance.uniform(0.3, 2.5)).run()

    async def speak(self) -> None:
        """Call what says something now and then."""
        words = self.chance.randint(2, 12)
        seconds = self.chance.uniform(0.02, 0.3)
        await self._call("speak", {"words": words}, words=words, seconds=seconds).run()

    async def ask(self) -> None:
        """Call what asks; the client answers, at whatever worker."""
        arguments = {"questions": self.chance.choice([1, 1, 2])}
        await self.client.ask(self._either("ask"), nonce(), arguments)

    async def hurry(self) -> None:
        """Wait for less time than a call takes, or about as much."""
        options = {"bound": self.chance.uniform(0.2, 1.5)}
        await self._call("slow", options, seconds=self.chance.uniform(0.5, 1.5)).run()

    async def repeat(self) -> None:
        """Call what may be repeated."""
        await self._call("quick", {"safe": True}).run()

    async def come_back(self) -> None:
        """Break the connection of a call, and come back for the rest."""
        words, after = self.chance.randint(4, 10), self.chance.randint(1, 5)
        options = {"words": words, "leaves_after": after}
        await self._call("speak", options, words=words, seconds=0.1).run()

    async def read_slowly(self) -> None:
        """Call what says more than the buffers on the way hold, and do not read for a while."""
        options = {"words": 60, "reads_after": self.chance.uniform(1, 4)}
        await self._call("speak", options, words=60, seconds=0.005, size=8000).run()

    async def together(self) -> None:
        """Call several tools in one body, and perhaps come back for the rest."""
        assert isinstance(self.client, Batching)
        several = [self._part() for _ in range(self.chance.randint(1, 4))]
        after = self.chance.choice([None, None, self.chance.randint(1, 6)])
        await self.client.batch(several, leaves_after=after).run()

    def _part(self) -> tuple[str, dict[str, Any]]:
        arguments: dict[str, dict[str, Any]] = {
            "quick": {},
            "slow": {"seconds": self.chance.uniform(0.1, 1.5)},
            "speak": {"words": self.chance.randint(1, 8), "seconds": self.chance.uniform(0, 0.2)},
        }
        tool = self.chance.choice(["quick", "quick", "slow", "speak"])
        return self._either(tool), arguments[tool]

    async def other(self) -> None:
        """Ask for something else than a call."""
        method = self.chance.choice(["tools/list", "resources/templates/list"])
        await self.client.exchange(method, {}, what=method).run()

    async def call_off(self) -> None:
        """Begin a call and cancel it."""
        call = self._call("speak", words=20, seconds=0.15)
        making = asyncio.create_task(call.run())
        await asyncio.sleep(self.chance.uniform(0.1, 1.5))
        self.client.ledger.note("cancel", x=call.key)
        await self.client.call_off(call, making)
        with suppress(asyncio.CancelledError):
            await making

    async def touch(self) -> None:
        """Change a thing, and hear that it has changed."""
        if not self.client.listener.certain:
            return
        mark = self.client.listener.mark()
        call = self.client.call("touch", key=nonce(), arguments={"key": self.thing})
        answer = await call.run() or {}
        if answer.get("result", {}).get("isError") or "result" not in answer:
            return
        if not await self.client.listener.heard_since(mark):
            self.client.ledger.note("unheard", x=call.key, s=self.client.key)


async def act(
    url: str, ledger: Ledger, chance: random.Random, streams: bool, going: Callable[[], bool]
) -> None:
    """Open one session after the other."""
    while going():
        # Whoever cannot connect tries again as the same kind: only some kinds need a server for it.
        kind = chance.choices(list(SHARES), list(SHARES.values()))[0]
        while going():
            client: Client = kind(url, ledger, chance)
            if await client.open():
                await Actor(client, chance, streams).live(going)
                break
            await asyncio.sleep(0.5)


async def main(url: str, path: str, seed: str, actors: str, door: str) -> None:
    """Act until standard input ends."""
    ledger, loop = Ledger(Path(path)), asyncio.get_running_loop()
    over = loop.run_in_executor(None, sys.stdin.read)
    chances = [random.Random(f"{seed}/{number}") for number in range(int(actors))]
    await asyncio.gather(
        *(
            act(url, ledger, chance, has_streams(door), lambda: not over.done())
            for chance in chances
        )
    )


if __name__ == "__main__":
    for name in filter(None, os.environ.get("PLANT", "").split(",")):
        getattr(library, name)()
    asyncio.run(main(*sys.argv[1:]))
