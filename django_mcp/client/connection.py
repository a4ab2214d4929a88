"""Opens and closes a client, and sends what its methods ask, each within its time."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib.metadata import version as installed_version
from types import TracebackType
from typing import Any, Final, Self

import httpx
from mcp_types import Implementation, PaginatedResult, ServerCapabilities

from ..protocol.versions import BY_NAME
from .auth import Auth, httpx_auth
from .changes import Changes
from .endpoint import Address, Endpoint
from .errors import ClientClosed
from .exchange import Exchange, Progress
from .handlers import Handlers, OnElicit, OnElicitURL, OnLog, OnSample, Roots
from .limits import Limits
from .negotiation import Connector, Era
from .paging import Pages
from .tools import KnownTools
from .waiting import Deadline

log = logging.getLogger("django_mcp.client")

DISTRIBUTION: Final = "django-mcp-endpoints"


class Connection:
    """A server, as long as the client is open: what its methods stand on."""

    def __init__(
        self,
        url: str,
        *,
        auth: Auth | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = 60.0,
        limits: Limits | None = None,
        revision: str | None = None,
        name: str = "django_mcp",
        version: str = "",
        on_elicit: OnElicit | None = None,
        on_elicit_url: OnElicitURL | None = None,
        on_sample: OnSample | None = None,
        sampling_tools: bool = False,
        roots: Roots | None = None,
        on_log: OnLog | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        if revision is not None and revision not in BY_NAME:
            raise ValueError(f"{revision!r} is none of the revisions {', '.join(BY_NAME)}.")
        self._address = Address(url, httpx_auth(auth, url), dict(headers or {}))
        self._timeout = timeout
        self._limits = limits or Limits()
        self._revision = revision
        self._info = {"name": name, "version": version or installed_version(DISTRIBUTION)}
        self._handlers = Handlers(
            on_elicit=on_elicit,
            on_elicit_url=on_elicit_url,
            on_sample=on_sample,
            sampling_tools=sampling_tools,
            roots=roots,
            on_log=on_log,
        )
        self._transport = transport
        self._tools = KnownTools()
        self._deadlines: set[Deadline] = set()
        self._listeners: set[Changes] = set()
        self._endpoint: Endpoint | None = None
        self._era: Era | None = None

    def __repr__(self) -> str:
        state = "open" if self._era else "closed"
        return f"<{type(self).__name__} of {self._address}, {state}>"

    # Opening and closing

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def open(self) -> None:
        """Connect, and find out what the server speaks."""
        if self._endpoint is not None:
            raise RuntimeError("The client is open already.")
        self._endpoint = Endpoint(self._address, self._limits, self._transport)
        connector = Connector(
            self._endpoint, self._handlers, self._limits, self._info, self._timeout
        )
        try:
            self._era = await connector.connect(self._revision)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """End the session and close all connections.

        Calls that still run end with an error; iterators of changes end as they do at their end.
        """
        era, self._era = self._era, None
        endpoint, self._endpoint = self._endpoint, None
        for deadline in self._deadlines:
            deadline.end(ClientClosed("The client was closed while the call ran"))
        for changes in self._listeners:
            changes.finish()
        self._listeners.clear()
        try:
            if era is not None:
                await era.close()
        finally:
            if endpoint is not None:
                await endpoint.close()

    @property
    def _opened(self) -> Era:
        if self._era is None:
            raise ClientClosed("The client is not open; use it as a context manager")
        return self._era

    # The server

    @property
    def revision(self) -> str:
        """The revision of the protocol that both sides speak."""
        return self._opened.server.revision.name

    @property
    def server_info(self) -> Implementation | None:
        """The name and version of the server, where it gives them."""
        return self._opened.server.info

    @property
    def server_capabilities(self) -> ServerCapabilities:
        """What the server can do."""
        return self._opened.server.capabilities

    @property
    def instructions(self) -> str | None:
        """What the server wants a model to know."""
        return self._opened.server.instructions

    async def _list(
        self, method: str, model: type[PaginatedResult], attribute: str, timeout: float | None
    ) -> list[Any]:
        async with self._within(method, timeout) as deadline:
            return await self._list_within(deadline, method, model, attribute)

    async def _list_within(
        self, deadline: Deadline, method: str, model: type[PaginatedResult], attribute: str
    ) -> list[Any]:
        pages = Pages(method, model, attribute, self._limits)
        while pages.has_more:
            exchange = Exchange(method, pages.params, deadline, safe=True)
            pages.add(await self._opened.request(exchange))
        return pages.items

    async def _request(
        self,
        method: str,
        params: dict[str, Any],
        *,
        timeout: float | None,
        on_progress: Progress | None = None,
        progress_extends: bool = False,
    ) -> dict[str, Any]:
        async with self._within(method, timeout, extends=progress_extends) as deadline:
            exchange = Exchange(method, params, deadline, safe=True, on_progress=on_progress)
            return await self._opened.request(exchange)

    @asynccontextmanager
    async def _within(
        self, method: str, timeout: float | None, *, extends: bool = False
    ) -> AsyncIterator[Deadline]:
        seconds = self._timeout if timeout is None else timeout
        maximum = self._limits.max_timeout
        async with Deadline(method, seconds, maximum, extends=extends) as deadline:
            self._deadlines.add(deadline)
            try:
                yield deadline
            finally:
                self._deadlines.discard(deadline)
