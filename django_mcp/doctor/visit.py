"""What is known so far of the server that is looked at, and what it may be asked."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import httpx

from ..protocol import headers as names
from ..protocol.versions import NEWEST, NEWEST_LEGACY, Revision
from .asking import Answer, Asker, is_loopback
from .findings import Finding
from .known_clients import CLIENT_DOCUMENT, INSPECTOR_ORIGIN

ID: Final = 1
"""Of each request: none is under way beside another on one connection."""
INFO: Final = {"name": "django-mcp-doctor", "version": "1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a visit may do, and for how long. Seconds."""

    token: str | None = field(default=None, repr=False)
    """Sent to the endpoint alone, and never shown."""
    origin: str = INSPECTOR_ORIGIN
    """Of a page that is to use the server."""
    timeout: float = 10.0
    """For each request."""
    watch: float = 5.0
    """How long a stream is watched that says nothing, or stays open."""
    max_seconds: float = 180.0
    """For all of it."""
    client_document: str = CLIENT_DOCUMENT
    """A client's document, which this host tries to fetch; empty for none."""


@dataclass(slots=True, kw_only=True)
class AuthorizationServer:
    """Who issues tokens, as far as its documents say."""

    issuer: str
    metadata: dict[str, Any] = field(default_factory=dict)
    """Empty where none can be used."""

    def names(self, key: str) -> list[str] | None:
        """Return a list of names of the metadata; ``None`` where it has none."""
        found = self.metadata.get(key)
        return (
            [each for each in found if isinstance(each, str)] if isinstance(found, list) else None
        )

    def url(self, key: str) -> str:
        """Return a URL of the metadata, or nothing."""
        found = self.metadata.get(key)
        return found if isinstance(found, str) else ""

    @property
    def takes_documents(self) -> bool:
        """Whether a client id may be the URL of a document (CIMD)."""
        return self.metadata.get("client_id_metadata_document_supported") is True

    @property
    def takes_public_clients(self) -> bool:
        """Whether it says that clients need no secret.

        Without a list they need one: client_secret_basic (RFC 8414, section 2).
        """
        return "none" in (self.names("token_endpoint_auth_methods_supported") or [])


@dataclass(slots=True, kw_only=True)
class Visit:
    """A server that is being looked at."""

    url: httpx.URL
    asker: Asker
    options: Options
    is_over: bool = False
    """Whether nothing more can be learned."""
    is_local: bool = False
    """Whether it can be reached from this machine or its network alone."""
    opening: Answer | None = None
    """What a request without a token was answered."""
    document: dict[str, Any] = field(default_factory=dict)
    """That of the protected resource (RFC 9728)."""
    asked_scope: str | None = None
    """What the challenge asks for."""
    challenge: dict[str, str] = field(default_factory=dict)
    """The parameters of the Bearer challenge."""
    servers: list[AuthorizationServer] = field(default_factory=list)
    revisions: list[Revision] = field(default_factory=list)
    """Those that were agreed on."""
    session: str | None = None
    """A session that is open."""
    broken: list[Finding] = field(default_factory=list)
    """What was found to be broken so far."""

    @property
    def address(self) -> str:
        """The URL as text."""
        return str(self.url)

    @property
    def origin(self) -> str:
        """The beginning of the URL: scheme, host and port."""
        return str(self.url.copy_with(raw_path=b"/")).removesuffix("/")

    @property
    def path(self) -> str:
        """The path of the URL, without a slash at its end."""
        return self.url.path.rstrip("/")

    @property
    def is_on_loopback(self) -> bool:
        """Whether the URL names this machine."""
        return is_loopback(self.url.host)

    @property
    def asks_for_login(self) -> bool:
        """Whether it answers nobody without a token."""
        return self.opening is not None and self.opening.status == 401

    @property
    def can_speak(self) -> bool:
        """Whether requests have a chance to be answered."""
        return bool(self.options.token) or not self.asks_for_login

    def may_fetch(self, url: str) -> bool:
        """Return whether a URL that a server has named is looked at.

        That is HTTPS, or as near as the endpoint itself: what a stranger's server says leads to
        nothing else on this machine.
        """
        try:
            parsed = httpx.URL(url)
        except (httpx.InvalidURL, TypeError):
            return False
        if is_loopback(parsed.host):
            return self.is_on_loopback and parsed.scheme in ("http", "https")
        if parsed.scheme == "http":
            return parsed.host == self.url.host
        return parsed.scheme == "https" and bool(parsed.host)


Check = Callable[[Visit], AsyncIterator[Finding]]


def initialize(revision: Revision = NEWEST_LEGACY) -> dict[str, Any]:
    """Return the request that opens a session (2025-11-25, basic/lifecycle)."""
    params = {"protocolVersion": revision.name, "capabilities": {}, "clientInfo": INFO}
    return {"jsonrpc": "2.0", "id": ID, "method": "initialize", "params": params}


def modern(method: str, params: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, Any]]:
    """Return headers and body of a request of 2026-07-28 (basic/index, "_meta")."""
    prefix = "io.modelcontextprotocol/"
    meta = {
        f"{prefix}protocolVersion": NEWEST.name,
        f"{prefix}clientInfo": INFO,
        f"{prefix}clientCapabilities": {},
    }
    body = {"jsonrpc": "2.0", "id": ID, "method": method, "params": {**params, "_meta": meta}}
    return {names.PROTOCOL_VERSION: NEWEST.name, names.METHOD: method}, body


def in_session(visit: Visit, revision: Revision = NEWEST_LEGACY) -> dict[str, str]:
    """Return the headers of a request in the session that is open, if one is."""
    version = {names.PROTOCOL_VERSION: revision.name}
    return version if visit.session is None else {**version, names.SESSION_ID: visit.session}
