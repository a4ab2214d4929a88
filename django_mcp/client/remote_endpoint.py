"""The server's one URL: who asks there, and responses whose size and kind are checked."""

from __future__ import annotations

import json
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager
from email.utils import parsedate_to_datetime
from typing import Final, NoReturn, cast

import httpx

from ..protocol import sse
from ..protocol.messages import Batch, Invalid, Message, parse
from ..protocol.values import exceeds
from .auth import (
    Auth,
    BoundedAuth,
    asked_scope,
    httpx_auth,
    is_compressed,
    place_of,
    without_secrets,
)
from .bounds import Limits
from .errors import (
    AuthenticationFailed,
    ConnectionFailed,
    MessageTooLarge,
    NotProcessed,
    OutcomeUnknown,
    RemoteError,
    ServerBusy,
    UnexpectedAnswer,
)

JSON: Final = "application/json"
KEEPALIVE_SECONDS: Final = 4.0
"""How long an idle connection is kept for the next request.

Most servers close one after five seconds. To send on it in that very moment would leave open
whether the request was read.
"""
IDLE_CONNECTIONS: Final = 20
NOT_SENT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)
"""Failures before anything of a request was sent."""

_HEADER_VALUE: Final = re.compile(r"[\x20-\x7e\t]*")


class RemoteAddress:
    """Where a server is, and who asks. Its text has no secrets."""

    def __init__(self, url: str, auth: Auth | None, headers: Mapping[str, str]) -> None:
        parsed = httpx.URL(url)
        if parsed.scheme not in ("http", "https") or not parsed.host:
            raise ValueError("The URL of an MCP server begins with http:// or https:// and a host.")
        for name, value in headers.items():
            if not _HEADER_VALUE.fullmatch(value):
                raise ValueError(f"The value of the header {name} has a character that none may.")
        # httpx logs URLs; credentials in one are sent as a header instead.
        self.url = parsed.copy_with(username=None, password=None, fragment=None)
        self.auth = httpx_auth(auth, parsed)
        self.headers = headers

    def __str__(self) -> str:
        return str(without_secrets(self.url))


class RemoteResponse:
    """The server's response to one HTTP request, read as it comes."""

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

    @property
    def location(self) -> str | None:
        """Where the server sends the request; without secrets, and without a query."""
        following = self._response.next_request
        return str(without_secrets(following.url)) if following else None

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
        """Return what the body is; raises :class:`MessageTooLarge`."""
        return self.parse(await self.body())

    def parse(self, data: bytes) -> Message | Batch | Invalid:
        """Return what a body is, or the data of an event; raises :class:`MessageTooLarge`."""
        self._check_values(data)
        return parse(data)

    async def events(self) -> AsyncGenerator[sse.Event]:
        """Yield the events of a stream as they come; raises :class:`MessageTooLarge`."""
        reader = sse.EventReader(self._limits.message_bytes)
        async with self._chunks() as chunks:
            async for chunk in chunks:
                for event in _events_in(chunk, reader):
                    yield event

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
        if is_compressed(self._response):
            raise UnexpectedAnswer("The answer is compressed, which was not asked for", self.status)
        if self._response.is_stream_consumed:
            # A login has looked at the body of a refusal.
            return aclosing(_once(self._response.content))
        return aclosing(cast("AsyncGenerator[bytes]", self._response.aiter_raw()))


async def _once(content: bytes) -> AsyncGenerator[bytes]:
    yield content


def _events_in(chunk: bytes, reader: sse.EventReader) -> Iterator[sse.Event]:
    try:
        yield from reader.feed(chunk)
    except sse.EventTooLarge as error:
        raise MessageTooLarge(str(error)) from None


class RemoteEndpoint:
    """An MCP endpoint of a remote server, and the connections to it."""

    def __init__(
        self, address: RemoteAddress, limits: Limits, transport: httpx.AsyncBaseTransport | None
    ) -> None:
        self._url = address.url
        self._limits = limits
        self._http = httpx.AsyncClient(
            auth=address.auth and BoundedAuth(address.auth, limits),
            headers={**address.headers, "Accept-Encoding": "identity"},
            transport=transport,
            # A redirected request would take its content, and on the same host its credentials, to
            # an address that nobody has named.
            follow_redirects=False,
            timeout=httpx.Timeout(limits.connect_timeout, read=limits.idle_timeout),
            # No maximum of open ones: the answer to a question must not wait for the call that
            # asks it.
            limits=httpx.Limits(
                max_keepalive_connections=IDLE_CONNECTIONS, keepalive_expiry=KEEPALIVE_SECONDS
            ),
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    @asynccontextmanager
    async def open(
        self, method: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> AsyncIterator[RemoteResponse]:
        """Send a request, and give its response as long as the block lasts.

        ``method`` is HTTP's. Raises :class:`ConnectionFailed` if nothing was sent, and
        :class:`OutcomeUnknown` if the connection broke, also while the block reads the response.
        Raises :class:`NotProcessed` if the login needed a request that failed.
        """
        accept = sse.MEDIA_TYPE if method == "GET" else f"{JSON}, {sse.MEDIA_TYPE}"
        content = {} if body is None else {"Content-Type": JSON}
        given = {"Accept": accept, **content, **headers}
        # Of the id of an event, HTML says that it is sent as UTF-8; all else is ASCII.
        raw = [(name.encode(), value.encode()) for name, value in given.items()]
        try:
            async with self._http.stream(method, self._url, content=body, headers=raw) as response:
                yield RemoteResponse(response, self._limits)
        except httpx.TooManyRedirects as e:
            # That is what httpx says of more requests than it makes for one.
            raise NotProcessed("The login takes more requests than the client makes") from e
        except httpx.TransportError as e:
            self._raise_failure(e)

    def _raise_failure(self, error: httpx.TransportError) -> NoReturn:
        failed = _url_of(error)
        if failed is not None and place_of(failed) != place_of(self._url):
            # The server has refused the call, or not seen it yet: a login sends nothing after it.
            raise NotProcessed(f"The login failed at {failed.host}: {_text(error)}") from error
        if isinstance(error, httpx.LocalProtocolError):
            # What httpx says shows the value, which may be a token.
            raise NotProcessed("A header has a character that none may have") from None
        if isinstance(error, NOT_SENT):
            raise ConnectionFailed(f"The server cannot be reached: {_text(error)}") from error
        raise OutcomeUnknown(f"The connection broke: {_text(error)}") from error


def _url_of(error: httpx.TransportError) -> httpx.URL | None:
    try:
        return error.request.url
    except RuntimeError:
        return None


async def check_status(response: RemoteResponse) -> None:
    """Raise the :class:`ClientError` that a response means which is no success."""
    if 200 <= response.status < 300:
        return
    error = await response.error()
    reason = f": {error.message}" if error else ""
    if response.status in (401, 403):
        scope = asked_scope(response.header("www-authenticate") or "")
        wish = f"; it asks for the scopes {scope}" if scope else ""
        text = f"The server said {response.status}{reason}{wish}"
        raise AuthenticationFailed(text, response.status, scope)
    retry_after = _retry_after(response.header("retry-after"))
    if response.status in (429, 503) and retry_after is not None:
        raise ServerBusy(f"The server said {response.status}{reason}", retry_after=retry_after)
    if error is not None:
        raise error
    if response.status >= 500:
        raise OutcomeUnknown(f"The server, or a proxy before it, said {response.status}")
    if 300 <= response.status < 400:
        where = f" and sends to {response.location}" if response.location else ""
        raise UnexpectedAnswer(
            f"The server said {response.status}{where}; redirects are not followed, since the"
            " request and its credentials were meant for this URL. If you trust the other, give"
            " the client that.",
            response.status,
        )
    media_type = response.media_type or "nothing"
    raise UnexpectedAnswer(f"The server said {response.status}, with {media_type}", response.status)


def remote_error(error: object) -> RemoteError:
    """Return the exception for a JSON-RPC error; raises ``TypeError`` if it is none."""
    if not isinstance(error, Mapping):
        # An error of OAuth's, for example, is a word.
        raise TypeError("not a JSON-RPC error")
    code, message = error.get("code"), error.get("message")
    if not isinstance(code, int) or not isinstance(message, str):
        raise TypeError("not a JSON-RPC error")
    return RemoteError(code, message, error.get("data"))


def _text(error: Exception) -> str:
    return str(error) or type(error).__name__


def _retry_after(value: str | None) -> float | None:
    """Return the seconds of RFC 9110, section 10.2.3: a number, or a date."""
    if value is None:
        return None
    if value.strip().isdecimal():
        return float(value)
    try:
        when = parsedate_to_datetime(value)
        return max(0.0, when.timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None
