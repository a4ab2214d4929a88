"""The client with a legacy session, on bare sockets."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import uuid
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, ClassVar

from . import wire
from .following import BOUND, FIRST_PAUSE, LONGEST_PAUSE, Exchange, Heard, ignore
from .ledger import Ledger, nonce
from .listener import Listener, running

NEWEST_LEGACY, OLDER_LEGACY = "2025-11-25", "2025-06-18"
MEDIA = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
SESSION_ID = "Mcp-Session-Id"
ENDED_SHARE = 0.6
"""How many sessions are ended by their clients."""


class Legacy:
    """One session, spread over all workers."""

    moves: ClassVar = {"read_slowly": 2, "call_off": 5, "touch": 3, "ask": 8, "come_back": 5}
    """What it does beside what all do, and how often; where answers are streams."""
    moves_in_one_piece: ClassVar[dict[str, int]] = {}
    """The same where they are not."""

    def __init__(self, url: str, ledger: Ledger, chance: random.Random) -> None:
        self.url = url
        self.ledger = ledger
        self.key = uuid.uuid4().hex[:12]
        self.revision = NEWEST_LEGACY if chance.random() < 0.75 else OLDER_LEGACY
        self.headers = dict(MEDIA)
        self.listener = Listener()
        self._chance = chance
        self._ended: deque[Exchange] = deque(maxlen=15)
        # Numbers, strings, or one and the same for all requests of the session.
        self._ids: Any = chance.choice([itertools.count(1), None, itertools.repeat(1)])

    def exchange(
        self, method: str, params: Any, key: str | None = None, **options: Any
    ) -> Exchange:
        """Return a request of this session, to be run."""
        key = key or nonce()
        request_id = key if self._ids is None else next(self._ids)
        message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
        return Exchange(
            ledger=self.ledger,
            url=self.url,
            headers=dict(self.headers),
            body=message,
            session=self.key if SESSION_ID in self.headers else None,
            key=key,
            **options,
        )

    def call(
        self, tool: str, *, key: str, arguments: Any, hear: Heard = ignore, **options: Any
    ) -> Exchange:
        """Return the call of a tool, which gets the key for its nonce."""
        params = {
            "name": tool,
            "arguments": {"nonce": key, **arguments},
            "_meta": {"progressToken": key},
        }

        async def heard(message: Any) -> None:
            if message.get("method") == "elicitation/create":
                await self._answer(message)
            await hear(message)

        call = self.exchange("tools/call", params, key, what=tool, hear=heard, **options)
        self._ended.append(call)
        return call

    async def open(self) -> bool:
        """Open the session and say that the client is ready; false if nobody could be reached."""
        params = {
            "protocolVersion": self.revision,
            "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "chaos", "version": "1"},
        }
        opening = self.exchange("initialize", params, what="initialize")
        result = await opening.run()
        if result is None or "result" not in result:
            return False
        self.headers[SESSION_ID] = opening.response_headers[SESSION_ID.lower()]
        self.headers["Mcp-Protocol-Version"] = self.revision
        self.ledger.note("opened", s=self.key)
        return await self.tell({"jsonrpc": "2.0", "method": "notifications/initialized"})

    async def tell(self, message: Any) -> bool:
        """Send a notification or an answer until it is taken."""
        return await self._insist("POST", message, (202,)) == 202

    async def ask(self, tool: str, key: str, arguments: Any) -> None:
        """Call what asks. The answers go wherever the balancer sends them, while the call runs."""
        await self.call(tool, key=key, arguments=arguments).run()

    async def call_off(self, call: Exchange, making: asyncio.Task[Any]) -> None:
        """Cancel a call; its end is told all the same."""
        params = {"requestId": call.body["id"], "reason": "chaos"}
        await self.tell({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})

    async def finish(self) -> None:
        """Make sure of the end of what has ended; then end the session, perhaps while calls run."""
        for each in self._ended:
            # There is no more of it, or somebody has ended it twice.
            await each.look_again()
        if self._chance.random() > ENDED_SHARE:
            return
        calls = [
            self.call("slow", key=nonce(), arguments={"seconds": 2}),
            self.call("aspeak", key=nonce(), arguments={"words": 8, "seconds": 0.2}),
        ]
        making = [asyncio.create_task(call.run()) for call in calls]
        await asyncio.sleep(self._chance.uniform(0, 1))
        await self.end()
        await asyncio.gather(*making)
        await self.exchange("tools/list", {}, what="after the end").run()

    async def end(self) -> None:
        """End the session."""
        self.ledger.note("ending", s=self.key)
        await self._insist("DELETE", None, (204, 404))

    async def _answer(self, question: Any) -> None:
        (name,) = question["params"]["requestedSchema"]["properties"]
        content = {name: question["params"]["message"]}
        result = {"action": "accept", "content": content}
        await self.tell({"jsonrpc": "2.0", "id": question["id"], "result": result})

    async def _insist(self, method: str, message: Any, good: tuple[int, ...]) -> int | None:
        """Send something that is no request, again as long as it is not known to have arrived."""
        body = b"" if message is None else json.dumps(message).encode()
        status, pause = None, FIRST_PAUSE
        with suppress(TimeoutError):
            async with asyncio.timeout(BOUND):
                while status not in (*good, 400, 404):
                    with suppress(wire.Broken):
                        async with wire.exchange(self.url, method, self.headers, body) as response:
                            status = response.status
                    if status not in good:
                        await asyncio.sleep(pause)
                        pause = min(2 * pause, LONGEST_PAUSE)
        if status not in good:
            self.ledger.note("untaken", s=self.key, status=status, message=message)
        return status

    @asynccontextmanager
    async def listening(self, uri: str) -> AsyncIterator[None]:
        """Hear of a thing for as long as the block lasts."""
        self.ledger.note("wants", s=self.key, uri=uri)
        subscribing = self.exchange("resources/subscribe", {"uri": uri}, what="subscribe")
        answer = await subscribing.run() or {}
        if "result" not in answer:
            yield
            return
        async with running(self._listen()):
            yield

    async def _listen(self) -> None:
        """Show the session's own stream for ever; come back whenever it ends."""
        place, pause = None, FIRST_PAUSE
        for attempt in itertools.count(1):
            facts = {"x": f"{self.key}/own", "a": attempt, "s": self.key}
            headers = {**self.headers, "X-Exchange": f"{self.key}-own/{attempt}"}
            if place is not None:
                headers["Last-Event-ID"] = place
            with suppress(wire.Broken):
                async with wire.exchange(self.url, "GET", headers) as response:
                    self.ledger.note("listens", **facts, status=response.status, place=place)
                    if response.status == 200:
                        pause = FIRST_PAUSE
                    async for event, message in response.messages():
                        if response.status != 200:
                            break  # an error is no message of the stream
                        place, self.listener.certain = event or place, True
                        if message is not None:
                            self.ledger.note("own", **facts, event=event, message=message)
                            await self.listener.hear(message)
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
