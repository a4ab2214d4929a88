"""Clients whose id is the URL of a document about them, as django-oauth-toolkit takes them.

DOT would fetch a document for whoever names its URL, at the token endpoint as well, and keep an
application for it. Here only somebody who is logged in, and looks at the page that asks him, has
one fetched, and not too many.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final

from oauth2_provider.cimd import CIMDError
from oauth2_provider.settings import oauth2_settings

from ....partitions import here
from ....protocol.errors import Unavailable
from ....rates import Rate
from ....store.access.rate_counters import spend
from ..client_documents import ClientDocument, DocumentRefused, fetch_client_document
from .redirects import objection_to

FETCHES: Final = Rate.parse("10/m")
"""By each user: whoever has an account could have others asked without end, and make a row each
time."""


@dataclass(slots=True, eq=False)
class _Visit:
    """Of somebody to the page; what was counted already is not counted again."""

    user: str
    counted: set[str] = field(default_factory=set)

    def may_fetch(self, client_id: str) -> bool:
        if client_id not in self.counted:
            self.counted.add(client_id)
            key = f"client documents\n{here()}\n{self.user}"
            try:
                if spend(hashlib.sha256(key.encode()).hexdigest(), FETCHES):
                    return False
            except Unavailable:
                return False
        return True


_visit: Final[ContextVar[_Visit | None]] = ContextVar("mcp_visit_to_consent_page", default=None)


@contextmanager
def fetching(user: Any) -> Iterator[None]:
    """Let documents be fetched within the block, for somebody who is logged in."""
    token = _visit.set(_Visit(str(user.pk)))
    try:
        yield
    finally:
        _visit.reset(token)


class OnConsentPage:
    """One of ``OAUTH2_PROVIDER["CIMD_REGISTRATION_PERMISSION_CLASSES"]``."""

    def has_permission(self, request: Any, client_id: str) -> bool:
        """Return whether somebody is about to be asked who is logged in, and has not had many."""
        visit = _visit.get()
        return visit is not None and visit.may_fetch(client_id)


class Fetcher:
    """``OAUTH2_PROVIDER["CIMD_METADATA_FETCHER"]``."""

    def fetch(self, client_id: str) -> tuple[dict[str, Any], int]:
        """Return what a document says, in words that DOT takes, and for how many seconds."""
        try:
            document = fetch_client_document(client_id)
        except DocumentRefused as refused:
            raise CIMDError(str(refused)) from refused
        return _as_dot_takes_it(document), oauth2_settings.CIMD_METADATA_MAX_AGE_SECONDS


def _as_dot_takes_it(document: ClientDocument) -> dict[str, Any]:
    metadata = document.metadata
    method = metadata.get("token_endpoint_auth_method", "none")
    # OpenID Connect Relying Party Metadata Choices: what a client would take as well. ChatGPT's
    # asks for signatures, which DOT does not know, and offers to do without.
    offered = metadata.get("token_endpoint_auth_methods_supported")
    if method != "none" and not (isinstance(offered, list) and "none" in offered):
        raise CIMDError(f"{document.client_id} cannot do without authentication at /token")
    grants = metadata.get("grant_types", ["authorization_code"])
    if not isinstance(grants, list) or "authorization_code" not in grants:
        raise CIMDError(f"{document.client_id} does not use authorization codes")
    uris = [each for each in document.redirect_uris if not objection_to(each)]
    if not uris:
        raise CIMDError(f"{document.client_id} has no redirect_uri that is allowed here")
    return {
        "client_id": document.client_id,
        "client_name": document.name,
        "redirect_uris": uris,
        "grant_types": ["authorization_code"],
        "token_endpoint_auth_method": "none",
    }
