"""The server's one URL: sends bodies there, and gives answers whose size and kind are checked."""

from __future__ import annotations

import json
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager
from email.utils import parsedate_to_datetime
from typing import Any, Final, TypeVar, cast

import httpx

from ..protocol import sse
from ..protocol.messages import Batch, Invalid, Message, parse
from ..protocol.values import exceeds
from .errors import (
    AuthenticationFailed,
    ConnectionFailed,
    MessageTooLarge,
    OutcomeUnknown,
    RemoteError,
    ServerBusy,
    UnexpectedAnswer,
)
from .limits import Limits

T = TypeVar("T")

JSON: Final = "application/json"
# Most servers close a connection that has been idle for five seconds. To send on it in that very
# moment would leave open whether the request was read.
KEEPALIVE_SECONDS: Final = 4.0
_HEADER_VALUE = re.compile(r"[\x20-\x7e\t]*")


class Answer:
    """The server's answer to one HTTP request, not yet read."""

    def __init__(self, response: httpx.Response, limits: Limits) -> None:
        self._response = response
        self._limits = limits

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self._response.status_code

    @property
    def media_type(self) -> str:
        """The content type without its parameters."""
        return str(self.header("content-type") or "").split(";")[0].strip().lower()

    def header(self, name: str) -> str | None:
        """Return the value of a header, if it was sent."""
        value: str | None = self._response.headers.get(name)
        return value

    async def body(self) -> bytes:
        """Return the whole body; raises :class:`MessageTooLarge`."""
        parts, size, most = [], 0, self._limits.message_bytes
        async with self._chunks() as chunks:
            async for chunk in chunks:
                size += len(chunk)
                if size > most:
                    raise MessageTooLarge(f"The answer has more than {most} bytes")
                parts.append(chunk)
        return b"".join(parts)

    async def message(self) -> Message | Batch | Invalid:
        """Return what the body is."""
        return self.parsed(await self.body())

    def parsed(self, data: bytes) -> Message | Batch | Invalid:
        """Return what a body is, or the data of an event; raises :class:`MessageTooLarge`."""
        self._check_values(data)
        return parse(data)

    async def events(self, take: Callable[[sse.Event], Awaitable[T | None]]) -> T | None:
        """Hand over the events of a stream as they come, until ``take`` has what it wants."""
        reader = sse.EventReader(self._limits.message_bytes)
        async with self._chunks() as chunks:
            async for chunk in chunks:
                for event in _completed(reader, chunk):
                    if (found := await take(event)) is not None:
                        return found
        return None

    async def error(self) -> RemoteError | None:
        """Return the JSON-RPC error that the body is, if it is one."""
        if self.media_type != JSON:
            return None
        try:
            body = await self.body()
            self._check_values(body)
            return remote_error(json.loads(body)["error"])
        except (ValueError, KeyError, TypeError, RecursionError, MessageTooLarge, OutcomeUnknown):
            return None

    def _check_values(self, data: bytes) -> None:
        most = self._limits.message_values
        if exceeds(data, most):
            raise MessageTooLarge(f"A message has more than {most} values")

    def _chunks(self) -> aclosing[AsyncGenerator[bytes]]:
        # A compressed body could unfold to any size. None was asked for.
        if self.header("content-encoding") not in (None, "identity"):
            raise UnexpectedAnswer("The answer is compressed, which was not asked for", self.status)
        return aclosing(cast("AsyncGenerator[bytes]", self._response.aiter_raw()))


class Address:
    """Where a server is, and who asks. Its text has no secrets."""

    def __init__(self, url: str, auth: httpx.Auth | None, headers: Mapping[str, str]) -> None:
        parsed = httpx.URL(url)
        if parsed.scheme not in ("http", "https") or not parsed.host:
            raise ValueError("The URL of an MCP server begins with http:// or https:// and a host.")
        for name, value in headers.items():
            if not _HEADER_VALUE.fullmatch(value):
                raise ValueError(f"The value of the header {name} has a character that none may.")
        # httpx logs URLs; credentials in one are sent as a header instead.
        self.url = parsed.copy_with(username=None, password=None, fragment=None)
        self.auth = auth
        self.headers = headers

    def __str__(self) -> str:
        return str(self.url.copy_with(query=None))


class Endpoint:
    """An MCP endpoint, and the connections to it."""

    def __init__(
        self, address: Address, limits: Limits, transport: httpx.AsyncBaseTransport | None
    ) -> None:
        self._url = address.url
        self._limits = limits
        self._http = httpx.AsyncClient(
            auth=address.auth,
            headers={**address.headers, "Accept-Encoding": "identity"},
            transport=transport,
            # A redirected request would take its content, and on the same host its credentials, to
            # an address that nobody has named.
            follow_redirects=False,
            timeout=httpx.Timeout(limits.connect_timeout, read=limits.idle_timeout),
            # Without a maximum: the answer to a question must not wait for the call that asks it.
            limits=httpx.Limits(max_keepalive_connections=20, keepalive_expiry=KEEPALIVE_SECONDS),
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    @asynccontextmanager
    async def open(
        self, verb: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> AsyncIterator[Answer]:
        """Send a request, and give its answer as long as the block lasts.

        Raises :class:`ConnectionFailed` if nothing was sent, :class:`OutcomeUnknown` if the
        connection broke, also while the block reads the answer.
        """
        accept = sse.MEDIA_TYPE if verb == "GET" else f"{JSON}, {sse.MEDIA_TYPE}"
        content = {} if body is None else {"Content-Type": JSON}
        given = {"Accept": accept, **content, **headers}
        # Of the id of an event, HTML says that it is sent as UTF-8; all else is ASCII.
        raw = [(name.encode(), value.encode()) for name, value in given.items()]
        try:
            async with self._http.stream(verb, self._url, content=body, headers=raw) as response:
                yield Answer(response, self._limits)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError) as e:
            raise ConnectionFailed(f"The server cannot be reached: {_text(e)}") from e
        except httpx.TransportError as e:
            raise OutcomeUnknown(f"The connection broke: {_text(e)}") from e


async def check(answer: Answer) -> None:
    """Raise what an answer says that is no success."""
    if 200 <= answer.status < 300:
        return
    error = await answer.error()
    said = f": {error.message}" if error else ""
    if answer.status in (401, 403):
        raise AuthenticationFailed(f"The server said {answer.status}{said}", answer.status)
    pause = _retry_after(answer.header("retry-after"))
    if answer.status in (429, 503) and pause is not None:
        raise ServerBusy(f"The server said {answer.status}{said}", retry_after=pause)
    if error is not None:
        raise error
    if answer.status >= 500:
        raise OutcomeUnknown(f"The server, or a proxy before it, said {answer.status}")
    if 300 <= answer.status < 400:
        raise UnexpectedAnswer(
            f"The server said {answer.status}; redirects are not followed, since the request and"
            " its credentials were meant for this URL. Give the client the right one.",
            answer.status,
        )
    what = answer.media_type or "nothing"
    raise UnexpectedAnswer(f"The server said {answer.status}, with {what}", answer.status)


def _completed(reader: sse.EventReader, chunk: bytes) -> Iterator[sse.Event]:
    try:
        yield from reader.feed(chunk)
    except sse.EventTooLarge as error:
        raise MessageTooLarge(str(error)) from None


def _text(error: Exception) -> str:
    return str(error) or type(error).__name__


def remote_error(error: Mapping[str, Any]) -> RemoteError:
    """Return the exception for a JSON-RPC error; raises ``TypeError`` if it is none."""
    code, message = error.get("code"), error.get("message")
    if not isinstance(code, int) or not isinstance(message, str):
        raise TypeError("not a JSON-RPC error")
    return RemoteError(code, message, error.get("data"))


def _retry_after(value: str | None) -> float | None:
    """Read RFC 9110, section 10.2.3: seconds, or a date."""
    if value is None:
        return None
    if value.strip().isdecimal():
        return float(value)
    try:
        when = parsedate_to_datetime(value)
        return max(0.0, when.timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None
