"""Sends requests within bounds, and says what came back or why nothing did.

Nothing is followed, decoded or repeated: a doctor has to see what a client would meet. Each request
has a connection of its own, so that a balancer may take it to any worker.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urljoin

import httpx

from ..protocol import sse
from .findings import shown

BODY_BYTES: Final = 512 * 1024
"""As much of each answer is read."""
REQUESTS: Final = 300


def is_loopback(host: str) -> bool:
    """Return whether a host of a URL is this machine itself."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


class NoAnswer(Exception):
    """No answer came; the text says why."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    method: str
    url: str
    status: int
    headers: httpx.Headers
    body: bytes
    is_whole: bool
    """Whether the body was read to its end."""

    @property
    def media_type(self) -> str:
        """The content type without its parameters."""
        return self.header("content-type").split(";")[0].strip().lower()

    @property
    def kind(self) -> str:
        """The content type, as a sentence names it."""
        return shown(self.media_type) or "no content type"

    @property
    def is_compressed(self) -> bool:
        """Whether the body is, which was not asked for."""
        return self.header("content-encoding").lower() not in ("", "identity")

    @property
    def location(self) -> str:
        """Where a redirect leads; empty where there is none."""
        target = self.header("location")
        return urljoin(self.url, target) if 300 <= self.status < 400 and target else ""

    def header(self, name: str) -> str:
        """Return the value of a header, or nothing."""
        value: str = self.headers.get(name, "")
        return value

    def json(self) -> Any:
        """Return what the body says, or ``None`` where that is no JSON."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None

    def object(self) -> dict[str, Any] | None:
        """Return the object that the body says, if it is one."""
        found = self.json()
        return found if isinstance(found, dict) else None

    def message(self, request_id: int) -> dict[str, Any] | None:
        """Return the JSON-RPC response to a request, as JSON or among the events of a stream."""
        if self.media_type != sse.MEDIA_TYPE:
            found = self.object()
            return found if found is not None and found.get("jsonrpc") == "2.0" else None
        try:
            texts = [event.data for event in sse.read_events(self.body)]
        except sse.EventTooLarge:
            return None
        return next((found for text in texts if (found := response(text, request_id))), None)


def response(text: bytes, request_id: int) -> dict[str, Any] | None:
    """Return the JSON-RPC response to a request, if the data of an event is that."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    is_it = isinstance(found, dict) and found.get("id") == request_id and "method" not in found
    return found if is_it else None


def error_text(answer: Answer) -> str:
    """Return what an answer gives as its reason, as a sentence goes on with it; or nothing."""
    found = answer.object() or {}
    error = found.get("error")
    text = error.get("message") if isinstance(error, dict) else None
    text = text or found.get("error_description") or found.get("detail") or ""
    said = shown(text).rstrip(".").replace('"', "'")
    return f': "{said}"' if said else ""


class Asker:
    """Sends requests, each bounded in seconds and bytes, and all of them in number."""

    def __init__(self, url: str, *, token: str | None, timeout: float) -> None:
        self.url = url
        self.seconds = timeout
        self._token = token
        self._left = REQUESTS
        self._tls = httpx.create_ssl_context()

    @property
    def tls(self) -> ssl.SSLContext:
        """How certificates are checked."""
        return self._tls

    async def call(
        self,
        method: str = "POST",
        *,
        headers: Mapping[str, str] | None = None,
        body: object = None,
        with_token: bool = True,
    ) -> Answer:
        """Send a request to the endpoint, with the token if there is one. See :meth:`ask`."""
        return await self.ask(
            method, self.url, headers=self._own(headers, with_token=with_token), body=body
        )

    async def ask(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: object = None,
    ) -> Answer:
        """Send a request, without the token; raises :class:`NoAnswer`."""
        async with self._sent(method, url, headers, body) as response:
            content, is_whole = await self._read(response, _id_of(body))
        return Answer(method, url, response.status_code, response.headers, bytes(content), is_whole)

    @asynccontextmanager
    async def stream(
        self, method: str, *, headers: Mapping[str, str], body: object = None
    ) -> AsyncIterator[httpx.Response]:
        """Send a request to the endpoint, and give its answer as it comes.

        Whoever reads it bounds what is read. Raises :class:`NoAnswer`.
        """
        own = self._own(headers, with_token=True)
        async with self._sent(method, self.url, own, body) as response:
            yield response

    def _own(self, headers: Mapping[str, str] | None, *, with_token: bool) -> dict[str, str]:
        given = {"Accept": f"application/json, {sse.MEDIA_TYPE}", **(headers or {})}
        if with_token and self._token:
            given["Authorization"] = f"Bearer {self._token}"
        return given

    @asynccontextmanager
    async def _sent(
        self, method: str, url: str, headers: Mapping[str, str] | None, body: object
    ) -> AsyncIterator[httpx.Response]:
        if not self._left:
            raise NoAnswer(f"{REQUESTS} requests were sent, and no more are")
        self._left -= 1
        content = None if body is None else json.dumps(body).encode()
        given = {
            "Accept-Encoding": "identity",
            "User-Agent": "django-mcp-doctor",
            **(headers or {}),
        }
        if content is not None:
            given["Content-Type"] = "application/json"
        try:
            async with (
                self._client(url) as http,
                http.stream(method, url, headers=given, content=content) as response,
            ):
                yield response
        except httpx.InvalidURL as error:
            raise NoAnswer(f"{shown(url)} is no URL") from error
        except httpx.HTTPError as error:
            raise NoAnswer(_reason(error, self.seconds)) from error

    def _client(self, url: str) -> httpx.AsyncClient:
        is_here = is_loopback(httpx.URL(url).host)
        return httpx.AsyncClient(
            verify=self._tls,
            timeout=self.seconds,
            follow_redirects=False,
            # What stands in the environment about proxies is not for this machine.
            trust_env=not is_here,
            limits=httpx.Limits(max_keepalive_connections=0),
        )

    async def _read(
        self, response: httpx.Response, request_id: int | None
    ) -> tuple[bytearray, bool]:
        """Read a body to its end, its bound, or the response that a stream of events holds."""
        content, found = bytearray(), _ResponseFinder(response, request_id)
        try:
            async with asyncio.timeout(self.seconds):
                async for chunk in response.aiter_raw():
                    content += chunk
                    if len(content) > BODY_BYTES:
                        return content, False
                    if found.is_in(chunk):
                        return content, True
        except TimeoutError:
            return content, False
        return content, True


class _ResponseFinder:
    """Says when a stream of events has had the response, for it may stay open after that."""

    def __init__(self, response: httpx.Response, request_id: int | None) -> None:
        is_stream = sse.MEDIA_TYPE in response.headers.get("content-type", "")
        self._request_id = request_id if is_stream else None
        self._reader = sse.EventReader(BODY_BYTES)

    def is_in(self, chunk: bytes) -> bool:
        """Return whether the response is complete with this chunk, or can no longer be read."""
        if self._request_id is None:
            return False
        try:
            events = list(self._reader.feed(chunk))
        except sse.EventTooLarge:
            return True
        return any(response(event.data, self._request_id) for event in events)


def _id_of(body: object) -> int | None:
    found = body.get("id") if isinstance(body, dict) else None
    return found if isinstance(found, int) else None


def _reason(error: httpx.HTTPError, seconds: float) -> str:
    if isinstance(error, httpx.TimeoutException):
        return f"no answer came within {seconds:g} seconds"
    if isinstance(error, httpx.RemoteProtocolError):
        return "the connection was closed without an answer, or what came is not HTTP"
    return f"{shown(error)}" or type(error).__name__
