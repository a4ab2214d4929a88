"""Finds out which era a server speaks.

2026-07-28, basic/transports/streamable-http, "Backward Compatibility": a modern request first. What
is not the answer of a modern server, neither its result nor one of its errors, is that of a legacy
one. An outage or a refusal says nothing about the era.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from mcp_types import DiscoverResult, UnsupportedProtocolVersionErrorData

from ..protocol.errors import ErrorCode
from ..protocol.versions import BY_NAME, LEGACY, MODERN, NEWEST, NEWEST_LEGACY, Revision
from .bounds import Deadline, Limits
from .catalog import ServerDescription, server_info, validated
from .change_iterator import Changes
from .errors import MessageTooLarge, RemoteError, UnexpectedAnswer, UnsupportedServer
from .handlers import Handlers
from .legacy import LegacyEra
from .modern import ModernEra
from .outgoing_request import OutgoingRequest
from .remote_endpoint import RemoteEndpoint

_MODERN_ERRORS = {ErrorCode.HEADER_MISMATCH, ErrorCode.MISSING_CLIENT_CAPABILITY}


class RemoteServer(Protocol):
    """A server that was connected to, in whichever era: one of the two ways to speak with it."""

    @property
    def description(self) -> ServerDescription:
        """What the server has said of itself."""

    async def request(self, request: OutgoingRequest) -> dict[str, Any]:
        """Send a request and return its result."""

    async def ping(self, request: OutgoingRequest) -> None:
        """See that the server answers."""

    async def set_log_level(self, request: OutgoingRequest, level: str) -> None:
        """Ask for log messages from ``level`` on."""

    async def listen(self, changes: Changes, deadline: Deadline) -> None:
        """Begin to listen for changes."""

    async def stop_listening(self, changes: Changes, deadline: Deadline) -> None:
        """End that, at the server too."""

    async def close(self) -> None:
        """Leave nothing behind, here or at the server."""


class _NotModern(Exception):
    """The server does not speak the modern era."""


@dataclass(frozen=True, slots=True)
class Negotiation:
    """Finds out the era of a server, and connects in it."""

    endpoint: RemoteEndpoint
    handlers: Handlers
    limits: Limits
    info: Mapping[str, Any]
    timeout: float
    """Seconds for each request of the negotiation."""

    async def connect(self, revision: str | None) -> RemoteServer:
        """Negotiate, or speak the one revision that was asked for.

        Raises :class:`UnsupportedServer` if there is no revision in common.
        """
        if revision is None:
            try:
                return await self._probe(NEWEST, again=True)
            except _NotModern:
                return await self._initialize(NEWEST_LEGACY)
        wanted = BY_NAME[revision]
        return self._modern(wanted) if wanted.modern else await self._initialize(wanted)

    def _modern(self, revision: Revision) -> ModernEra:
        return ModernEra(
            self.endpoint, self.handlers, self.limits, revision=revision, info=self.info
        )

    async def _initialize(self, revision: Revision) -> LegacyEra:
        era = LegacyEra(
            self.endpoint,
            self.handlers,
            self.limits,
            revision=revision,
            info=self.info,
            timeout=self.timeout,
        )
        try:
            await era.session()
        except BaseException:
            await era.close()
            raise
        return era

    async def _probe(self, revision: Revision, *, again: bool) -> ModernEra:
        era = self._modern(revision)
        method = "server/discover"
        async with Deadline(method, self.timeout, self.limits.max_timeout) as deadline:
            request = OutgoingRequest(method, {}, deadline, is_repeatable=True)
            try:
                result = await era.request(request)
                found = validated(DiscoverResult, result)
            except MessageTooLarge:
                raise
            except UnexpectedAnswer as error:
                if error.status is not None and 300 <= error.status < 400:
                    raise
                raise _NotModern from error
            except RemoteError as error:
                retry = _other_revision(error)
                if not again:
                    raise
                return await self._probe(retry, again=False)
        if not any(each.name in found.supported_versions for each in MODERN):
            raise _NotModern
        era.description = ServerDescription(
            revision, found.capabilities, server_info(result), found.instructions
        )
        return era


def _other_revision(error: RemoteError) -> Revision:
    """Return the modern revision that a server asks for; raises what its error means otherwise."""
    if error.code in _MODERN_ERRORS:
        raise error
    if error.code != ErrorCode.UNSUPPORTED_PROTOCOL_VERSION:
        raise _NotModern from error
    supported = validated(UnsupportedProtocolVersionErrorData, error.data).supported
    mutual = [each for each in MODERN if each.name in supported]
    if mutual:
        return mutual[-1]
    if any(each.name in supported for each in LEGACY):
        raise _NotModern from error
    raise UnsupportedServer(
        f"The server speaks {', '.join(map(str, supported))[:200]} and no revision of this client's"
    ) from error
