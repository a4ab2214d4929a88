"""The client of the modern revision, on bare sockets."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, ClassVar

from .clients import MEDIA
from .following import Exchange
from .ledger import Ledger, nonce
from .listener import Listener, running

MODERN = "2026-07-28"


class Modern:
    """A client of the revision without sessions."""

    key = None
    moves: ClassVar = {"read_slowly": 2, "call_off": 5, "touch": 3, "ask": 10}
    moves_in_one_piece: ClassVar = {"ask": 10}

    def __init__(self, url: str, ledger: Ledger, chance: random.Random) -> None:
        self.url = url
        self.ledger = ledger
        self.listener = Listener()

    async def open(self) -> bool:
        """Do nothing: each request stands alone."""
        return True

    def exchange(
        self, method: str, params: Any, key: str | None = None, **options: Any
    ) -> Exchange:
        """Return a request, to be run."""
        key = key or nonce()
        mirrored = {**MEDIA, "Mcp-Protocol-Version": MODERN, "Mcp-Method": method}
        if "name" in params:
            mirrored["Mcp-Name"] = params["name"]
        meta = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
            "io.modelcontextprotocol/logLevel": "info",
            "progressToken": key,
        }
        message = {
            "jsonrpc": "2.0",
            "id": key,
            "method": method,
            "params": {**params, "_meta": meta},
        }
        return Exchange(
            ledger=self.ledger,
            url=self.url,
            headers=mirrored,
            body=message,
            session=None,
            resumable=False,
            key=key,
            **options,
        )

    def call(self, tool: str, *, key: str, arguments: Any, **options: Any) -> Exchange:
        """Return the call of a tool, which gets the key for its nonce."""
        params = {"name": tool, "arguments": {"nonce": key, **arguments}}
        return self.exchange("tools/call", params, key, what=tool, **options)

    async def ask(self, tool: str, key: str, arguments: Any) -> None:
        """Call what asks: it ends with a question, and is called again with the answer.

        2026-07-28, basic/patterns/mrtr. Each round is a request of its own, at another worker.
        """
        answers: dict[str, Any] = {}
        while True:
            params = {"name": tool, "arguments": {"nonce": key, **arguments}, **answers}
            own = key if not answers else nonce()
            round_ = self.exchange("tools/call", params, own, what=tool, nonce=key)
            result = (await round_.run() or {}).get("result", {})
            if result.get("resultType") != "input_required":
                return
            given = {name: _answer(each) for name, each in result["inputRequests"].items()}
            answers = {"inputResponses": given, "requestState": result["requestState"]}

    async def call_off(self, call: Exchange, making: asyncio.Task[Any]) -> None:
        """Cancel a call: the connection that goes is the cancellation."""
        making.cancel()

    async def finish(self) -> None:
        """Do nothing: there is no session to end."""

    @asynccontextmanager
    async def listening(self, uri: str) -> AsyncIterator[None]:
        """Hear of a thing for as long as the block lasts."""
        self.ledger.note("wants", s=None, uri=uri)
        async with running(self._listen(uri)):
            yield

    async def _listen(self, uri: str) -> None:
        async def hear(message: Any) -> None:
            if message.get("method") == "notifications/subscriptions/acknowledged":
                # A worker that has no streams agrees to nothing.
                self.listener.certain = bool(message["params"]["notifications"])
            await self.listener.hear(message)

        method = "subscriptions/listen"
        params = {"notifications": {"resourceSubscriptions": [uri]}}
        while True:
            # Nothing is kept for whoever is not there: from one connection to the next, a change
            # that is made may not be heard of.
            await self.exchange(method, params, what=method, hear=hear, bound=None).run()
            self.listener.lose()
            await asyncio.sleep(0.2)


def _answer(question: Any) -> dict[str, Any]:
    (name,) = question["params"]["requestedSchema"]["properties"]
    return {"action": "accept", "content": {name: question["params"]["message"]}}
