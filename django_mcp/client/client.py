"""The async client: opens a connection in the era that the server speaks, and calls it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from importlib.metadata import version as installed_version
from types import TracebackType
from typing import Any, Final, Self

import httpx
from mcp_types import (
    CallToolResult,
    CompleteResult,
    Completion,
    GetPromptResult,
    Implementation,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    LoggingLevel,
    PaginatedResult,
    Prompt,
    PromptReference,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    ResourceTemplateReference,
    ServerCapabilities,
    Tool,
)

from ..protocol import headers as names
from ..protocol.errors import ErrorCode
from ..protocol.versions import BY_NAME
from .auth import Auth
from .bounds import DEADLINE, Deadline, Limits
from .catalog import KnownTools, PagedList, validated
from .change_iterator import ChangeFilter, Changes
from .errors import ClientClosed, ClientError, RemoteError
from .handlers import Handlers, OnElicit, OnElicitURL, OnLog, OnSample, Roots, to_wire
from .negotiation import Negotiation, RemoteServer
from .outgoing_request import OnProgress, OutgoingRequest
from .remote_endpoint import RemoteAddress, RemoteEndpoint

log = logging.getLogger("django_mcp.client")

DISTRIBUTION: Final = "django-mcp-endpoints"
UNWINDING_SECONDS: Final = 1.0
"""How long calls, which closing the client has ended, may take to leave their connections."""


class Client:
    """A client of one MCP server, of whichever revision.

    ::

        async with Client("https://orders.example/mcp", auth=settings.ORDERS_TOKEN) as orders:
            result = await orders.call_tool("find_orders", {"status": "open"})
            result.structured_content

    Its methods may be called by many tasks at once. Each raises a subclass of :class:`ClientError`
    where it has no result: :class:`RemoteError` where the server answered with an error,
    :class:`CallTimedOut` when the time is over, :class:`NotProcessed` where nothing has run,
    :class:`OutcomeUnknown` where that cannot be told. An exception of the function that gives the
    token is raised as it is.

    ``timeout`` is in seconds, everywhere: what the server may take for a call, all pages of a list
    together. That of the client is for calls that name none of their own. ``ValueError`` is raised
    for a URL, a header, a token or a revision that cannot be used.
    """

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
        self._address = RemoteAddress(url, auth, dict(headers or {}))
        self._timeout = timeout
        self._limits = limits or Limits()
        self._wanted_revision = revision
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
        self._endpoint: RemoteEndpoint | None = None
        self._server: RemoteServer | None = None

    def __repr__(self) -> str:
        state = "open" if self._server else "closed"
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
        """Connect, and find out what the server speaks.

        Raises :class:`UnsupportedServer` if client and server have no revision in common.
        """
        if self._endpoint is not None:
            raise RuntimeError("The client is open already.")
        self._endpoint = RemoteEndpoint(self._address, self._limits, self._transport)
        negotiation = Negotiation(
            self._endpoint, self._handlers, self._limits, self._info, self._timeout
        )
        try:
            self._server = await negotiation.connect(self._wanted_revision)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """End the session and close all connections.

        Calls that still run end with :class:`ClientClosed`; iterators of changes end as they do at
        their end.
        """
        server, self._server = self._server, None
        endpoint, self._endpoint = self._endpoint, None
        for deadline in self._deadlines:
            deadline.end(ClientClosed("The client was closed while the call ran"))
        for changes in self._listeners:
            changes.finish()
        self._listeners.clear()
        try:
            if server is not None:
                await server.close()
        finally:
            if endpoint is not None:
                await self._until_calls_have_ended()
                await endpoint.close()

    async def _until_calls_have_ended(self) -> None:
        """Wait for other calls, for a moment: httpx forgets a connection that is still being made
        when it is closed.
        """
        end = time.monotonic() + UNWINDING_SECONDS
        while self._deadlines - {DEADLINE.get()} and time.monotonic() < end:
            await asyncio.sleep(0.001)

    @property
    def _open_server(self) -> RemoteServer:
        if self._server is None:
            raise ClientClosed("The client is not open; use it as a context manager")
        return self._server

    # The server

    @property
    def revision(self) -> str:
        """The revision of the protocol that both sides speak."""
        return self._open_server.description.revision.name

    @property
    def server_info(self) -> Implementation | None:
        """The name and version of the server, where it gives them."""
        return self._open_server.description.info

    @property
    def server_capabilities(self) -> ServerCapabilities:
        """What the server can do."""
        return self._open_server.description.capabilities

    @property
    def instructions(self) -> str | None:
        """What the server wants a model to know."""
        return self._open_server.description.instructions

    # Tools

    async def list_tools(self, *, timeout: float | None = None) -> list[Tool]:
        """Return all tools, but those whose mirrored arguments break the rules."""
        async with self._call("tools/list", timeout) as deadline:
            return await self._update_tools(deadline)

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        progress_extends: bool = False,
        idempotent: bool | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> CallToolResult:
        """Call a tool. A result with ``is_error`` is returned, not raised.

        ``idempotent`` says whether it may be called again if its answer is lost; by default that
        is so where the tool's annotations, when it was last listed, say ``idempotentHint`` or
        ``readOnlyHint``. With ``progress_extends``, each progress restarts the time-out.
        """
        params = {"name": name, "arguments": dict(arguments or {}), **_meta(meta)}
        method = "tools/call"

        async def call(deadline: Deadline) -> CallToolResult:
            known = self._tools[name]
            is_repeatable = known.repeatable if idempotent is None else idempotent
            mirrored = names.mirror_parameters(known.mirrored, params["arguments"])
            request = OutgoingRequest(
                method, params, deadline, is_repeatable, mirrored, on_progress
            )
            return validated(CallToolResult, await self._open_server.request(request))

        async with self._call(method, timeout, extends=progress_extends) as deadline:
            try:
                return await call(deadline)
            except RemoteError as error:
                if error.code != ErrorCode.HEADER_MISMATCH:
                    raise
            # 2026-07-28, basic/transports/streamable-http, "Client Behavior": the tool mirrors what
            # this client does not know of, or what it knows is out of date.
            await self._update_tools(deadline)
            return await call(deadline)

    async def _update_tools(self, deadline: Deadline) -> list[Tool]:
        tools = await self._pages(deadline, "tools/list", ListToolsResult, "tools")
        return self._tools.update(tools, mirrors=self._open_server.description.revision.modern)

    # Resources

    async def list_resources(self, *, timeout: float | None = None) -> list[Resource]:
        """Return all resources."""
        return await self._list("resources/list", ListResourcesResult, "resources", timeout)

    async def list_resource_templates(
        self, *, timeout: float | None = None
    ) -> list[ResourceTemplate]:
        """Return all templates of resources."""
        method, attribute = "resources/templates/list", "resource_templates"
        return await self._list(method, ListResourceTemplatesResult, attribute, timeout)

    async def read_resource(
        self,
        uri: str,
        *,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        progress_extends: bool = False,
        meta: Mapping[str, Any] | None = None,
    ) -> ReadResourceResult:
        """Read a resource."""
        result = await self._request(
            "resources/read",
            {"uri": uri, **_meta(meta)},
            timeout=timeout,
            on_progress=on_progress,
            progress_extends=progress_extends,
        )
        return validated(ReadResourceResult, result)

    # Prompts and completions

    async def list_prompts(self, *, timeout: float | None = None) -> list[Prompt]:
        """Return all prompts."""
        return await self._list("prompts/list", ListPromptsResult, "prompts", timeout)

    async def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        progress_extends: bool = False,
        meta: Mapping[str, Any] | None = None,
    ) -> GetPromptResult:
        """Return a prompt, filled in."""
        result = await self._request(
            "prompts/get",
            {"name": name, "arguments": dict(arguments or {}), **_meta(meta)},
            timeout=timeout,
            on_progress=on_progress,
            progress_extends=progress_extends,
        )
        return validated(GetPromptResult, result)

    async def complete(
        self,
        reference: PromptReference | ResourceTemplateReference,
        argument: str,
        value: str,
        *,
        context: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> Completion:
        """Return how a value may go on; ``context`` has the arguments that are known already."""
        params: dict[str, Any] = {
            "ref": to_wire(reference),
            "argument": {"name": argument, "value": value},
        }
        if context and self._open_server.description.revision.completion_context:
            params["context"] = {"arguments": dict(context)}
        result = await self._request("completion/complete", params, timeout=timeout)
        return validated(CompleteResult, result).completion

    # The rest

    async def ping(self, *, timeout: float | None = None) -> None:
        """See that the server answers."""
        async with self._call("ping", timeout) as deadline:
            await self._open_server.ping(OutgoingRequest("ping", {}, deadline, is_repeatable=True))

    async def set_log_level(self, level: LoggingLevel, *, timeout: float | None = None) -> None:
        """Ask for log messages of this level and above; they go to ``on_log``."""
        method = "logging/setLevel"
        async with self._call(method, timeout) as deadline:
            request = OutgoingRequest(method, {"level": level}, deadline, is_repeatable=True)
            await self._open_server.set_log_level(request, level)

    def listen(
        self,
        *,
        tools: bool = False,
        prompts: bool = False,
        resources: bool = False,
        uris: Iterable[str] = (),
    ) -> Changes:
        """Listen for changes of lists, and of the resources ``uris``.

        An async context manager; within it, an async iterator of :class:`Change`. Entering it
        raises :class:`UnsupportedServer` if the server notifies of none of these changes.
        """
        wanted = ChangeFilter(tools, prompts, resources, tuple(dict.fromkeys(uris)))
        return Changes(wanted, self._begin_listening, self._end_listening)

    async def _begin_listening(self, changes: Changes) -> None:
        async with self._call("listen", None) as deadline:
            self._listeners.add(changes)
            try:
                await self._open_server.listen(changes, deadline)
            except BaseException:
                self._listeners.discard(changes)
                raise

    async def _end_listening(self, changes: Changes) -> None:
        self._listeners.discard(changes)
        if self._server is None:
            return
        try:
            async with self._call("listen", self._limits.close_timeout) as deadline:
                await self._server.stop_listening(changes, deadline)
        except ClientError as error:
            log.info("The end of a subscription did not reach the server: %s", error)

    # Calls

    async def _list(
        self, method: str, model: type[PaginatedResult], attribute: str, timeout: float | None
    ) -> list[Any]:
        async with self._call(method, timeout) as deadline:
            return await self._pages(deadline, method, model, attribute)

    async def _pages(
        self, deadline: Deadline, method: str, model: type[PaginatedResult], attribute: str
    ) -> list[Any]:
        pages = PagedList(method, model, attribute, self._limits)
        while pages.has_more:
            request = OutgoingRequest(method, pages.params, deadline, is_repeatable=True)
            pages.add(await self._open_server.request(request))
        return pages.items

    async def _request(
        self,
        method: str,
        params: dict[str, Any],
        *,
        timeout: float | None,
        on_progress: OnProgress | None = None,
        progress_extends: bool = False,
    ) -> dict[str, Any]:
        async with self._call(method, timeout, extends=progress_extends) as deadline:
            request = OutgoingRequest(
                method, params, deadline, is_repeatable=True, on_progress=on_progress
            )
            return await self._open_server.request(request)

    @asynccontextmanager
    async def _call(
        self, method: str, timeout: float | None, *, extends: bool = False
    ) -> AsyncIterator[Deadline]:
        """Bound what the block does by the time of one call, and by the client's being open."""
        seconds = self._timeout if timeout is None else timeout
        maximum = self._limits.max_timeout
        async with Deadline(method, seconds, maximum, extends=extends) as deadline:
            self._deadlines.add(deadline)
            try:
                yield deadline
            finally:
                self._deadlines.discard(deadline)


def _meta(meta: Mapping[str, Any] | None) -> dict[str, Any]:
    return {"_meta": dict(meta)} if meta else {}
