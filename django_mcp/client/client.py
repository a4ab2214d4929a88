"""The async client: what whoever calls a server sees of all the rest."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any, Final

from mcp_types import (
    CallToolResult,
    CompleteResult,
    Completion,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    LoggingLevel,
    Prompt,
    PromptReference,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    ResourceTemplateReference,
    Tool,
)

from ..protocol import headers as names
from ..protocol.errors import ErrorCode
from .changes import Changes, Wanted
from .connection import Connection
from .errors import ClientError, RemoteError
from .exchange import Exchange, Progress
from .handlers import dumped
from .server import read
from .waiting import Deadline

log = logging.getLogger("django_mcp.client")

DISTRIBUTION: Final = "django-mcp-endpoints"


class Client(Connection):
    """A client of one MCP server, of whichever revision.

    Use it as an async context manager; its methods may be called by many tasks at once. All of
    them raise subclasses of :class:`~django_mcp.client.ClientError`. Time-outs are in seconds.
    """

    # Tools

    async def list_tools(self, *, timeout: float | None = None) -> list[Tool]:
        """Return all tools, but those whose mirrored arguments break the rules."""
        async with self._within("tools/list", timeout) as deadline:
            return await self._learn_tools(deadline)

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        on_progress: Progress | None = None,
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
            safe = known.repeatable if idempotent is None else idempotent
            mirrored = names.mirror_parameters(known.mirrored, params["arguments"])
            exchange = Exchange(method, params, deadline, safe, mirrored, on_progress)
            return read(CallToolResult, await self._opened.request(exchange))

        async with self._within(method, timeout, extends=progress_extends) as deadline:
            try:
                return await call(deadline)
            except RemoteError as error:
                if error.code != ErrorCode.HEADER_MISMATCH:
                    raise
            # 2026-07-28, basic/transports/streamable-http, "Client Behavior": the tool mirrors what
            # this client does not know of, or knows no longer.
            await self._learn_tools(deadline)
            return await call(deadline)

    async def _learn_tools(self, deadline: Deadline) -> list[Tool]:
        found = await self._list_within(deadline, "tools/list", ListToolsResult, "tools")
        return self._tools.learn(found, mirrors=self._opened.server.revision.modern)

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
        on_progress: Progress | None = None,
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
        return read(ReadResourceResult, result)

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
        on_progress: Progress | None = None,
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
        return read(GetPromptResult, result)

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
            "ref": dumped(reference),
            "argument": {"name": argument, "value": value},
        }
        if context and self._opened.server.revision.completion_context:
            params["context"] = {"arguments": dict(context)}
        result = await self._request("completion/complete", params, timeout=timeout)
        return read(CompleteResult, result).completion

    # The rest

    async def ping(self, *, timeout: float | None = None) -> None:
        """See that the server answers."""
        async with self._within("ping", timeout) as deadline:
            await self._opened.ping(Exchange("ping", {}, deadline, safe=True))

    async def set_log_level(self, level: LoggingLevel, *, timeout: float | None = None) -> None:
        """Ask for log messages of this level and above; they go to ``on_log``."""
        method = "logging/setLevel"
        async with self._within(method, timeout) as deadline:
            exchange = Exchange(method, {"level": level}, deadline, safe=True)
            await self._opened.set_log_level(exchange, level)

    def listen(
        self,
        *,
        tools: bool = False,
        prompts: bool = False,
        resources: bool = False,
        uris: Iterable[str] = (),
    ) -> Changes:
        """Listen for changes of lists, and of the resources ``uris``.

        An async context manager; within it, an async iterator of :class:`Change`.
        """
        wanted = Wanted(tools, prompts, resources, tuple(dict.fromkeys(uris)))
        return Changes(wanted, self._begin, self._end)

    async def _begin(self, changes: Changes) -> None:
        async with self._within("listen", None) as deadline:
            self._listeners.add(changes)
            try:
                await self._opened.listen(changes, deadline)
            except BaseException:
                self._listeners.discard(changes)
                raise

    async def _end(self, changes: Changes) -> None:
        self._listeners.discard(changes)
        if self._era is None:
            return
        try:
            async with self._within("listen", self._limits.close_timeout) as deadline:
                await self._era.unlisten(changes, deadline)
        except ClientError as error:
            log.info("The end of a subscription did not reach the server: %s", error)


def _meta(meta: Mapping[str, Any] | None) -> dict[str, Any]:
    return {"_meta": dict(meta)} if meta else {}
