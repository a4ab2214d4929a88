"""An endpoint as OAuth sees it: the resource that tokens are for, and who issues them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..protocol.scopes import AS_IT_IS, as_asked


@dataclass(frozen=True, slots=True)
class ProtectedResource:
    """An endpoint whose tokens authorization servers issue (RFC 9728)."""

    url: str
    """Its canonical URL, under which the request came: what a token must have been issued for
    (RFC 8707, section 2)."""
    urls: frozenset[str]
    """All URLs that are this endpoint's: what a token may name instead."""
    metadata_url: str
    """Where clients read :attr:`metadata`."""
    authorization_servers: tuple[str, ...]
    """The identifiers of those who issue tokens for it."""
    scopes: tuple[str, ...] = ()
    """What a client asks for first: what every token for it needs, or all there is."""
    other_issuers: tuple[str, ...] = ()
    """What tokens of those have as ``iss`` as well."""
    other_names: frozenset[str] = frozenset()
    """What tokens may name instead of its URLs: what the authorization server calls it."""
    scope_format: str = AS_IT_IS
    """How a client asks for a scope, where that is another name than tokens have."""

    @property
    def token_issuers(self) -> tuple[str, ...]:
        """What tokens for it may have as ``iss``."""
        return (*self.authorization_servers, *self.other_issuers)

    def as_asked(self, scopes: Iterable[str]) -> list[str]:
        """Return scopes as a client is to ask for them."""
        if self.scope_format == AS_IT_IS:
            return list(scopes)
        return as_asked(scopes, self.scope_format, self.url)

    @property
    def metadata(self) -> dict[str, Any]:
        """What clients are told before they log in (RFC 9728, section 2)."""
        # Without, a client names none.
        scopes = {"scopes_supported": self.as_asked(self.scopes)} if self.scopes else {}
        return {
            "resource": self.url,
            "authorization_servers": list(self.authorization_servers),
            **scopes,
            # RFC 6750 has two other ways; MCP forbids the one in the URL, and bodies are JSON.
            "bearer_methods_supported": ["header"],
        }

    @property
    def challenge(self) -> dict[str, str]:
        """The parameters of a challenge that says where to log in (RFC 9728, section 5.1)."""
        scope = {"scope": " ".join(self.as_asked(self.scopes))} if self.scopes else {}
        return {"resource_metadata": self.metadata_url, **scope}

    @property
    def advice(self) -> str:
        """What somebody without a token is to do."""
        issuers = " or ".join(self.authorization_servers)
        return (
            f"Log in first: let your client do so by OAuth, at {issuers}, or send a token from "
            f'there for {self.url}: "Authorization: Bearer TOKEN".'
        )
