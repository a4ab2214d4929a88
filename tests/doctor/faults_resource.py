"""Faults of how an endpoint says who issues tokens for it."""

from __future__ import annotations

from collections.abc import Iterator

from .plants import BROKEN, NOTE, WARNING, Fault, both, challenge, document, without


def _resource() -> Iterator[Fault]:
    yield Fault(
        "no-challenge",
        True,
        without("WWW_Authenticate"),
        BROKEN,
        "no-challenge",
        "The 401 has no WWW-Authenticate",
    )
    yield Fault(
        "basic",
        True,
        challenge('Basic realm="site"'),
        BROKEN,
        "other-scheme",
        "The 401 asks for basic",
    )
    yield Fault(
        "error-at-once",
        True,
        challenge(
            'Bearer resource_metadata="ORIGIN/.well-known/oauth-protected-resource/mcp", '
            'error="invalid_token"'
        ),
        WARNING,
        "challenge-error",
        "error=invalid_token to who has sent",
    )
    yield Fault(
        "unnamed",
        True,
        challenge('Bearer realm="site"'),
        NOTE,
        "unnamed-document",
        "The 401 does not name the document of the resource; it is at",
    )
    yield Fault(
        "no-oauth",
        True,
        both(challenge("Bearer"), lambda site: site.documents.clear()),
        NOTE,
        "no-oauth",
        "Clients cannot log in by OAuth",
    )
    yield Fault(
        "missing",
        True,
        challenge('Bearer resource_metadata="ORIGIN/nowhere"'),
        BROKEN,
        "document-missing",
        "cannot be read: it answers 404 with application/json",
    )
    yield Fault(
        "relative",
        True,
        challenge('Bearer resource_metadata="/nowhere"'),
        BROKEN,
        "document-url",
        "The 401 names /nowhere, which is no whole URL",
    )
    yield Fault(
        "other-host",
        True,
        challenge('Bearer resource_metadata="https://shop.invalid/x"'),
        BROKEN,
        "document-host",
        "at shop.invalid, another host than the endpoint's",
    )
    yield Fault(
        "no-resource",
        True,
        document(resource=None),
        BROKEN,
        "resource",
        "The document names no resource",
    )
    yield Fault(
        "other-resource",
        True,
        document(resource="https://shop.example.com/mcp"),
        BROKEN,
        "resource-other",
        "is about https://shop.example.com/mcp, and you connect to",
    )
    yield Fault(
        "parent",
        True,
        document(resource="ORIGIN"),
        WARNING,
        "resource-parent",
        "of which this URL is a part",
    )
    yield Fault(
        "no-servers",
        True,
        document(authorization_servers=[]),
        BROKEN,
        "no-servers",
        "names no authorization server",
    )
    yield Fault(
        "two-servers",
        True,
        document(authorization_servers=["ORIGIN", "ORIGIN/other"]),
        NOTE,
        "several-servers",
        "names 2 authorization servers",
    )
    yield Fault(
        "in-the-url",
        True,
        document(bearer_methods_supported=["query"]),
        BROKEN,
        "bearer-methods",
        "tokens are not taken in the Authorization header",
    )
    yield Fault(
        "two-documents",
        True,
        both(
            challenge('Bearer resource_metadata="ORIGIN/other.json"'),
            lambda site: site.documents.update(
                {"/other.json": {**site.document, "authorization_servers": [f"{site.origin}/else"]}}
            ),
        ),
        BROKEN,
        "documents-differ",
        "says something else as authorization_servers",
    )
    yield Fault(
        "elsewhere",
        True,
        both(
            challenge('Bearer resource_metadata="ORIGIN/other.json"'),
            lambda site: site.documents.update(
                {"/other.json": site.documents.pop("/.well-known/oauth-protected-resource/mcp")}
            ),
        ),
        NOTE,
        "document-elsewhere",
        "where clients look that do not read the 401",
    )
    yield Fault(
        "offline",
        True,
        document(scopes_supported=["read", "offline_access"]),
        WARNING,
        "offline-access",
        "offline_access is among the scopes",
    )
    yield Fault(
        "all-scopes",
        True,
        challenge(
            'Bearer resource_metadata="ORIGIN/.well-known/oauth-protected-resource/mcp", scope="'
            + " ".join(f"s{number}" for number in range(11))
            + '"'
        ),
        WARNING,
        "many-scopes",
        "to ask for 11 scopes at the first login",
    )
    yield Fault(
        "no-scopes",
        True,
        both(
            document(scopes_supported=None),
            challenge('Bearer resource_metadata="ORIGIN/.well-known/oauth-protected-resource/mcp"'),
        ),
        NOTE,
        "no-scopes",
        "which scopes to ask for",
    )


FAULTS = [*_resource()]
