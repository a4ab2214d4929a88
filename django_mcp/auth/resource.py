"""An endpoint as OAuth sees it: the resource that tokens are for, and who issues them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


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
    """What every token for it needs: what a client asks for first."""

    @property
    def metadata(self) -> dict[str, Any]:
        """What clients are told before they log in (RFC 9728, section 2)."""
        # 2026-07-28, basic/authorization, "Scope Selection Strategy": those for the basics, and not
        # all that there are. Without, a client names none.
        scopes = {"scopes_supported": list(self.scopes)} if self.scopes else {}
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
        scope = {"scope": " ".join(self.scopes)} if self.scopes else {}
        return {"resource_metadata": self.metadata_url, **scope}

    @property
    def advice(self) -> str:
        """What somebody without a token is to do."""
        issuers = " or ".join(self.authorization_servers)
        return (
            f"Log in first: let your client do so by OAuth, at {issuers}, or send a token from "
            f'there for {self.url}: "Authorization: Bearer TOKEN".'
        )
