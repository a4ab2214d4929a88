"""A client that has whole answers, whichever way they come."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .answers import HTTPAnswer
from .entrances import Entrance
from .messages import (
    HEADERS,
    INITIALIZED,
    LEGACY,
    MODERN,
    encoded,
    hyphened,
    mirrored,
    modern_request,
    opening,
    request,
    without_omitted,
)


@dataclass(frozen=True)
class Caller:
    """A client at one entrance and one path, with the headers that it sends each time."""

    entrance: Entrance
    path: str = "/mcp"
    headers: Mapping[str, Any] = field(default_factory=lambda: HEADERS)
    revision: str = MODERN
    session: str | None = None

    def post(self, message: Any, **headers: Any) -> HTTPAnswer:
        """POST a message as it stands. Names of ``headers`` have underscores for hyphens."""
        return self.send("POST", encoded(message), **headers)

    def call(self, method: str, request_id: Any = 1, **params: Any) -> HTTPAnswer:
        """Send a request as the caller's revision has it."""
        if self.session is not None:
            return self.post(request(method, request_id, **params))
        message = modern_request(method, request_id, **params)
        return self.post(message, **mirrored(message))

    def tool(self, name: str, **arguments: Any) -> HTTPAnswer:
        """Call a tool."""
        return self.call("tools/call", name=name, arguments=arguments)

    def send(self, method: str, body: bytes = b"", **headers: Any) -> HTTPAnswer:
        """Make a request of any HTTP method."""
        given = without_omitted({**self.headers, **hyphened(headers)})
        return self.entrance.send(method, self.path, list(given.items()), body)

    def with_headers(self, **headers: Any) -> Caller:
        """Return a caller that sends these headers as well."""
        return replace(self, headers={**self.headers, **hyphened(headers)})

    def initialize(self, revision: str, request_id: Any = 1, **params: Any) -> HTTPAnswer:
        """Send ``initialize``."""
        return self.post(request("initialize", request_id, **opening(revision, **params)))

    def opened(self, revision: str = LEGACY[-1], **params: Any) -> Caller:
        """Return a caller in a new session of ``revision``, which is ready."""
        answer = self.initialize(revision, **params)
        session = answer.header("Mcp-Session-Id")
        assert session, answer
        assert answer.result["protocolVersion"] == revision
        member = self.in_session(session, revision)
        assert member.post(INITIALIZED).status == 202
        return member

    def in_session(self, session: str, revision: str = LEGACY[-1]) -> Caller:
        """Return a caller in a session that somebody has opened."""
        member = self.with_headers(Mcp_Session_Id=session, Mcp_Protocol_Version=revision)
        return replace(member, revision=revision, session=session)

    def in_revision(self, revision: str) -> Caller:
        """Return a caller that speaks ``revision``, in a session if it needs one."""
        return self if revision == MODERN else self.opened(revision)
