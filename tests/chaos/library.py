"""The client of the package, ``django_mcp.client``, as an actor; its promises are what is checked.

What reaches its caller goes into the ledger, as if it had come on one connection: a result, an
error, words, progress. Beside that is noted what passes on the wire, below the client, so that the
checker can tell whether a call that ended without an answer had to.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, ClassVar

import httpx

from django_mcp.client import (
    CallTimedOut,
    Client,
    ClientClosed,
    ClientError,
    Limits,
    NotProcessed,
    OutcomeUnknown,
    RemoteError,
    legacy,
    modern,
)

from .clients import NEWEST_LEGACY, OLDER_LEGACY
from .following import BOUND, LONGEST_PAUSE
from .ledger import Ledger, nonce
from .listener import Listener, running
from .recording import Recording

GRACE = 10.0
"""Seconds after its bound in which a call ends though the machine is busy."""
PATIENT = Limits(backoff=0.1, max_backoff=LONGEST_PAUSE, reconnects=10_000)
"""Comes back to a stream for as long as a call has time, since the server promises the answer."""


class Call:
    """One call of the client, from what its caller and the wire see of it."""

    def __init__(
        self, owner: Library, make: Callable[[Call], Awaitable[Any]], key: str, **facts: Any
    ) -> None:
        self.key = key
        self.bound: float = facts.get("bound", BOUND)
        self.attempts = 0
        self.place: str | None = None
        """The id of the last event that has come."""
        self.is_over = False
        self.task: asyncio.Task[Any] | None = None
        self._owner = owner
        self._make = make
        self._facts = facts
        self._ledger = owner.ledger

    async def run(self) -> Any:
        """Make the call; return how it ended as a terminal message, `None` without one."""
        facts = {"words": None, "resumable": self._owner.key is not None, **self._facts}
        self._ledger.note("sent", x=self.key, id=self.key, s=self._owner.key, by="library", **facts)
        self.task = asyncio.current_task()
        self._owner.calls[self.key] = self
        try:
            async with asyncio.timeout(self.bound + GRACE):
                return await self._ended()
        except TimeoutError:
            self._ledger.note("gave_up", x=self.key)
        except asyncio.CancelledError:
            self._ledger.note("leaves", x=self.key)
            raise
        finally:
            self.is_over, self.task = True, None

    async def _ended(self) -> Any:
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": self.key}
        try:
            message["result"] = await self._make(self)
        except RemoteError as error:
            message["error"] = {"code": error.code, "message": error.message}
        except ClientError as error:
            self._note(error)
            return None
        self.hear(message)
        return message

    def _note(self, error: ClientError) -> None:
        """Note an end without an answer."""
        why = f"{type(error).__name__}: {error}"
        match error:
            case CallTimedOut():
                # Who has waited for the whole bound has been told nothing.
                self._ledger.note("gave_up" if self.bound >= BOUND else "leaves", x=self.key)
            case ClientClosed():
                self._ledger.note("leaves", x=self.key)
            case NotProcessed():
                self._ledger.note("turned_away", x=self.key, why=why)
            case OutcomeUnknown():
                self._ledger.note("unknown", x=self.key, why=why)
            case _:
                self._ledger.note("baffled", x=self.key, why=why)

    def hear(self, message: Any) -> None:
        """Note what has reached the caller."""
        if self.is_over:
            self._owner.stray(message)
        else:
            self._ledger.note("message", x=self.key, a=1, event=None, message=message)

    async def report(self, progress: float, total: float | None, message: str | None) -> None:
        """Take progress."""
        params = {"progressToken": self.key, "progress": progress}
        self.hear({"method": "notifications/progress", "params": params})


class Library:
    """A client that many calls use at once."""

    # More of what takes time than others have: what it does when an answer is lost is the question.
    moves_in_one_piece: ClassVar = {
        "slow": 25,
        "speak": 20,
        "call_off": 3,
        "hurry": 3,
        "repeat": 10,
    }
    moves: ClassVar = {**moves_in_one_piece, "touch": 3, "ask": 8}

    def __init__(self, url: str, ledger: Ledger, chance: random.Random) -> None:
        self.ledger = ledger
        self.listener = Listener()
        self.calls: dict[str, Call] = {}
        revision = chance.choice([None, None, NEWEST_LEGACY, OLDER_LEGACY])
        self.key = nonce() if revision else None
        self._chance = chance
        self._opening: Call | None = None
        self._client = Client(
            url,
            timeout=BOUND,
            limits=PATIENT,
            revision=revision,
            on_elicit=self._answer,
            on_log=self._hear,
            transport=Recording(ledger, self.key, self._call_on_the_wire),
        )

    def _call_on_the_wire(self, request: httpx.Request) -> Call | None:
        """Return the call that a request belongs to: its caller's own task makes it."""
        task = asyncio.current_task()
        if self._opening is not None and request.method == "POST":
            return self._opening  # a session is opened by a task of its own
        return next((each for each in self.calls.values() if each.task is task), None)

    def stray(self, message: Any) -> None:
        """Note that something came which nobody waits for."""
        self.ledger.note("stray", x=self.key or "modern", message=message)

    # What an actor does with it

    async def open(self) -> bool:
        """Connect."""

        async def connect(call: Call) -> dict[str, Any]:
            await self._client.open()
            if self.key is None:
                await self._client.set_log_level("info")
            return {}

        self._opening = Call(self, connect, nonce(), what="open")
        answer = await self._opening.run() or {}
        self._opening = None
        if "result" not in answer:
            return False
        if self.key:
            self.ledger.note("opened", s=self.key)
        return True

    def call(
        self,
        tool: str,
        *,
        key: str,
        arguments: Any,
        words: int | None = None,
        bound: float = BOUND,
        safe: bool = False,
    ) -> Call:
        """Return the call of a tool, which gets the key for its nonce."""

        async def call_tool(call: Call) -> Any:
            result = await self._client.call_tool(
                tool,
                {"nonce": key, **arguments},
                timeout=bound,
                on_progress=call.report,
                idempotent=safe,
            )
            return result.model_dump(mode="json", by_alias=True, exclude_none=True)

        return Call(self, call_tool, key, what=tool, words=words, bound=bound, safe=safe)

    def exchange(self, method: str, params: Any, *, what: str) -> Call:
        """Return a request that is no call."""
        lists = {
            "tools/list": self._client.list_tools,
            "resources/templates/list": self._client.list_resource_templates,
        }

        async def ask(call: Call) -> dict[str, Any]:
            await lists[method]()
            return {}

        return Call(self, ask, nonce(), what=what)

    async def ask(self, tool: str, key: str, arguments: Any) -> None:
        """Call what asks; the function that answers is the same for both eras."""
        await self.call(tool, key=key, arguments=arguments).run()

    async def call_off(self, call: Call, making: asyncio.Task[Any]) -> None:
        """Cancel a call, as its caller does: by cancelling the task that waits."""
        making.cancel()

    @asynccontextmanager
    async def listening(self, uri: str) -> AsyncIterator[None]:
        """Hear of a thing for as long as the block lasts, if the server can tell."""
        self.ledger.note("wants", s=self.key, uri=uri)
        async with running(self._listen(uri)):
            yield

    async def _listen(self, uri: str) -> None:
        with suppress(ClientError):
            async with self._client.listen(uris=[uri]) as changes:
                self.listener.certain = True
                async for change in changes:
                    news = {"method": "notifications/resources/updated", "params": {"uri": uri}}
                    if change.uri == uri:
                        await self.listener.hear(news)
                    else:
                        self.stray({**news, "params": {"uri": change.uri}})
        self.listener.lose()

    async def finish(self) -> None:
        """Close the client, perhaps while calls run: they end, too."""
        making: list[asyncio.Task[Any]] = []
        if self._chance.random() < 0.5:
            for seconds in (2, 3):
                key = nonce()
                call = self.call("slow", key=key, arguments={"seconds": seconds})
                making.append(asyncio.create_task(call.run()))
            await asyncio.sleep(self._chance.uniform(0, 1))
        if self.key:
            self.ledger.note("ending", s=self.key)

        async def close(call: Call) -> dict[str, Any]:
            await self._client.close()
            return {}

        await Call(self, close, nonce(), what="close").run()
        await asyncio.gather(*making)

    # What it is told

    async def _answer(self, form: Any) -> dict[str, Any]:
        nonce = form.message.split()[0]
        if nonce not in self.calls:
            self.stray({"method": "elicitation/create", "params": {"message": form.message}})
        (name,) = form.requested_schema["properties"]
        return {name: form.message}

    async def _hear(self, said: Any) -> None:
        message = {"method": "notifications/message", "params": {"data": said.data}}
        call = self.calls.get(said.data["nonce"])
        if call is None:
            self.stray(message)
        else:
            call.hear(message)


def repeats() -> None:
    """Plant a fault: repeat every call whose answer is lost, safe or not."""
    until_answered = modern.until_answered

    async def repeating(send: Any, exchange: Any, limits: Limits) -> Any:
        exchange.safe = True
        return await until_answered(send, exchange, limits)

    modern.until_answered = legacy.until_answered = repeating
