"""What passes on the wire below our own client: a transport of httpx that notes it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, Protocol

import httpx

from .ledger import Ledger


class Sent(Protocol):
    """A call, and how far it is."""

    key: str
    attempts: int
    place: str | None
    """The id of the last event that has come."""


class Recording(httpx.AsyncBaseTransport):
    """Sends what the client sends, with a header that says which call it is for, and notes it."""

    def __init__(
        self, ledger: Ledger, session: str | None, call_of: Callable[[httpx.Request], Sent | None]
    ) -> None:
        self._ledger = ledger
        self._session = session
        self._call_of = call_of
        self._http = httpx.AsyncHTTPTransport(limits=httpx.Limits(keepalive_expiry=4))

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request."""
        call = self._call_of(request)
        if call is None:
            return await self._http.handle_async_request(request)
        if request.method == "POST":
            call.place = None
        call.attempts += 1
        facts = {"x": call.key, "a": call.attempts}
        request.headers["X-Exchange"] = f"{call.key}/{call.attempts}"
        self._ledger.note("try", **facts, place=call.place)
        try:
            response = await self._http.handle_async_request(request)
        except BaseException as error:
            how = "refused" if isinstance(error, httpx.TransportError) else "left"
            self._ledger.note("end", **facts, how=how, place=call.place)
            raise
        self._ledger.note("head", **facts, s=self._session, status=response.status_code)
        assert isinstance(response.stream, httpx.AsyncByteStream)
        response.stream = Recorded(response.stream, call, facts, self._ledger)
        return response

    async def aclose(self) -> None:
        """Close all connections."""
        await self._http.aclose()


class Recorded(httpx.AsyncByteStream):
    """A body that is read: keeps the id of its last event, and notes how it ended."""

    def __init__(
        self, stream: httpx.AsyncByteStream, call: Sent, facts: dict[str, Any], ledger: Ledger
    ) -> None:
        self._stream = stream
        self._call = call
        self._facts = facts
        self._ledger = ledger
        self._how = "left"
        self._is_noted = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        rest = b""
        try:
            async for chunk in self._stream:
                *whole, rest = (rest + chunk).split(b"\n\n")
                for block in whole:
                    for line in block.splitlines():
                        if line.startswith(b"id: "):
                            self._call.place = line[4:].decode()
                yield chunk
        except httpx.TransportError:
            self._how = "broken"
            raise
        self._how = "complete"

    async def aclose(self) -> None:
        """Close the body, read to its end or not."""
        if not self._is_noted:
            self._is_noted = True
            self._ledger.note("end", **self._facts, how=self._how, place=self._call.place)
        await self._stream.aclose()
