"""Checks of how the endpoint says who issues tokens for it (RFC 9728)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

import httpx

from .asking import Answer, NoAnswer, is_loopback
from .challenges import challenges
from .documents import is_document
from .findings import Finding, broken, good, note, shown, warning
from .visit import AuthorizationServer, Visit

WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"
SERVERS_LOOKED_AT: Final = 3
MANY_SCOPES: Final = 10


async def check_challenge(visit: Visit) -> AsyncIterator[Finding]:
    """Check that a 401 says how to log in (RFC 9110, section 15.5.2; RFC 6750, section 3)."""
    if not visit.asks_for_login or visit.opening is None:
        return
    value = visit.opening.header("www-authenticate")
    found = challenges(value)
    bearer = next((parameters for scheme, parameters in found if scheme == "bearer"), None)
    if not value:
        yield broken(
            "no-challenge",
            "The 401 has no WWW-Authenticate. Clients do not find out how to log in.",
            "Send it; see whether a proxy takes it away.",
        )
    elif bearer is None:
        schemes = ", ".join(shown(scheme) for scheme, _ in found) or shown(value)
        yield broken(
            "other-scheme",
            f"The 401 asks for {schemes}. MCP clients log in with Bearer tokens.",
            'Send WWW-Authenticate: Bearer resource_metadata="…".',
        )
    else:
        visit.challenge = bearer
        visit.asked_scope = bearer.get("scope")
        if "resource_metadata" in bearer:
            yield good("challenge", f"The 401 names {shown(bearer['resource_metadata'])}.")
        if "error" in bearer:
            yield warning(
                "challenge-error",
                f"The 401 says error={shown(bearer['error'])} to who has sent no token.",
                "Send no error where there was no token (RFC 6750, section 3.1).",
            )


async def check_document(visit: Visit) -> AsyncIterator[Finding]:
    """Find the document as clients do: by the challenge, else with the path, else at the root.

    2026-07-28, basic/authorization/authorization-server-discovery.
    """
    if not visit.asks_for_login:
        return
    named = visit.challenge.get("resource_metadata", "")
    if named:
        async for finding in _by_challenge(visit, named):
            yield finding
        return
    for url in dict.fromkeys((visit.origin + WELL_KNOWN + visit.path, visit.origin + WELL_KNOWN)):
        answer = await _fetched(visit, url)
        if isinstance(answer, Answer) and is_document(answer):
            visit.document = answer.object() or {}
            yield note(
                "unnamed-document",
                f"The 401 does not name the document of the resource; it is at {shown(url)}, where "
                "most clients look.",
                "Add resource_metadata to WWW-Authenticate.",
            )
            return
    yield note(
        "no-oauth",
        "The endpoint takes tokens, and says of nobody that he issues them. Clients cannot log in "
        "by OAuth: whoever has a token configures it in the client.",
        "For logins, serve a document of the protected resource (RFC 9728) and name it in the 401.",
    )


async def _by_challenge(visit: Visit, named: str) -> AsyncIterator[Finding]:
    for finding in _of_place(visit, named):
        yield finding
    answer = await _fetched(visit, named)
    if isinstance(answer, NoAnswer):
        reason = str(answer)
    elif is_document(answer):
        visit.document = answer.object() or {}
        return
    else:
        reason = f"it answers {answer.status} with {answer.kind}"
    yield broken(
        "document-missing",
        f"The document that the 401 names cannot be read: {reason}.",
        'Serve it there; in Django, put path("", include("django_mcp.well_known")) at the front of '
        "the URLconf's root, and see that the proxy passes /.well-known/ on.",
    )


def _of_place(visit: Visit, named: str) -> list[Finding]:
    url = _parsed(named)
    if url is None or not url.host:
        text = f"The 401 names {shown(named)}, which is no whole URL."
        return [broken("document-url", text, "Name the document with scheme and host.")]
    if (url.scheme, url.host, url.port) == (visit.url.scheme, visit.url.host, visit.url.port):
        return []
    if url.host == visit.url.host and (url.scheme, visit.url.scheme) == ("http", "https"):
        return [
            broken(
                "document-scheme",
                "The 401 names a document at http://, though the endpoint is at https://. The "
                "server does not know that it is reached by HTTPS.",
                "Let the proxy say so (X-Forwarded-Proto, SECURE_PROXY_SSL_HEADER), or set "
                'DJANGO_MCP["BASE_URL"].',
            )
        ]
    if is_loopback(url.host) and visit.is_on_loopback and url.port == visit.url.port:
        return []  # of which the resource tells
    return [
        broken(
            "document-host",
            f"The 401 names a document at {shown(url.netloc.decode())}, another host than the "
            "endpoint's. Clients refuse that.",
            'Let the proxy pass the Host on that people use, or set DJANGO_MCP["BASE_URL"].',
        )
    ]


async def _fetched(visit: Visit, url: str) -> Answer | NoAnswer:
    if not visit.may_fetch(url):
        return NoAnswer(f"{shown(url)} is not looked at from here")
    try:
        return await visit.asker.ask("GET", url, headers={"Accept": "application/json"})
    except NoAnswer as error:
        return error


async def check_resource(visit: Visit) -> AsyncIterator[Finding]:
    """Check that the document is about the URL that people use (RFC 9728, section 3.3)."""
    if not visit.document:
        return
    said = visit.document.get("resource")
    own = canonical(visit.url)
    url = _parsed(said) if isinstance(said, str) else None
    if url is None or not url.host:
        yield broken(
            "resource", "The document names no resource.", f'Let it say "resource": "{own}".'
        )
    elif said == own:
        yield good("resource", "The document is about this very URL.")
    elif canonical(url) == own:
        yield note("resource", f"The document is about {shown(said)}, the same URL as {own}.")
    elif is_loopback(url.host) and visit.is_on_loopback and _place(url) == _place(visit.url):
        yield broken(
            "resource-loopback",
            f"The document is about {shown(said)}, and you connect to {own}. Though both are this "
            "machine, clients refuse it.",
            f'Connect to {shown(said)}, or list both names in DJANGO_MCP["BASE_URL"].',
        )
    elif own.startswith(f"{canonical(url)}/"):
        yield warning(
            "resource-parent",
            f"The document is about {shown(said)}, of which this URL is a part. Some clients "
            "refuse that.",
            f'Serve a document of its own that says "resource": "{own}".',
        )
    else:
        yield broken(
            "resource-other",
            f"The document is about {shown(said)}, and you connect to {own}. Clients refuse it.",
            f"Connect to {shown(said)}; or, if people are to use this URL, let proxies pass on "
            'Host and scheme, or set DJANGO_MCP["BASE_URL"].',
        )


def canonical(url: httpx.URL) -> str:
    """Return a URL as a resource is named: without a slash at its end, or a default port.

    2026-07-28, basic/authorization, "Canonical Server URI".
    """
    return str(url.copy_with(fragment=None)).rstrip("/")


def _place(url: httpx.URL) -> tuple[int | None, str]:
    return url.port, url.path.rstrip("/")


def _parsed(url: str) -> httpx.URL | None:
    try:
        return httpx.URL(url)
    except httpx.InvalidURL:
        return None


async def check_other_document(visit: Visit) -> AsyncIterator[Finding]:
    """Check that clients which do not read the challenge find the same document."""
    if not visit.document or "resource_metadata" not in visit.challenge:
        return
    url = visit.origin + WELL_KNOWN + visit.path
    answer = await _fetched(visit, url)
    if not isinstance(answer, Answer) or not is_document(answer):
        yield note(
            "document-elsewhere",
            f"There is no document at {shown(url)}, where clients look that do not read the 401.",
            "Serve it there as well.",
        )
        return
    other = answer.object() or {}
    differ = [
        key
        for key in ("resource", "authorization_servers")
        if other.get(key) != visit.document.get(key)
    ]
    if differ:
        yield broken(
            "documents-differ",
            f"The document at {shown(url)} says something else as {' and '.join(differ)} than that "
            "which the 401 names.",
            "Serve one document.",
        )


async def check_servers(visit: Visit) -> AsyncIterator[Finding]:
    """Check that the document names who issues tokens, and how they are sent."""
    if not visit.document:
        return
    found: Any = visit.document.get("authorization_servers")
    issuers = [each for each in found if isinstance(each, str)] if isinstance(found, list) else []
    if not issuers:
        yield broken(
            "no-servers",
            "The document names no authorization server.",
            'Let it have "authorization_servers", with at least one issuer.',
        )
    visit.servers = [AuthorizationServer(issuer=issuer) for issuer in issuers[:SERVERS_LOOKED_AT]]
    if len(issuers) > 1:
        yield note(
            "several-servers",
            f"The document names {len(issuers)} authorization servers. Most clients take the "
            "first.",
        )
    methods = visit.document.get("bearer_methods_supported")
    if isinstance(methods, list) and "header" not in methods:
        yield broken(
            "bearer-methods",
            "The document says that tokens are not taken in the Authorization header, in which "
            "MCP clients send them.",
            'Let "bearer_methods_supported" be ["header"].',
        )


async def check_scopes(visit: Visit) -> AsyncIterator[Finding]:
    """Check which scopes clients ask for first: those of the challenge, else of the document.

    2026-07-28, basic/authorization, "Scope Selection Strategy" and "Refresh Tokens".
    """
    if not visit.document:
        return
    found = visit.document.get("scopes_supported")
    listed = [each for each in found if isinstance(each, str)] if isinstance(found, list) else None
    asked = listed if visit.asked_scope is None else visit.asked_scope.split()
    if asked is None:
        yield note(
            "no-scopes",
            "Neither the 401 nor the document says which scopes to ask for. Some clients ask for "
            "all that the authorization server has.",
            "Name those that a client needs at first, as scope of the 401 and scopes_supported.",
        )
        return
    if "offline_access" in {*asked, *(listed or [])}:
        yield warning(
            "offline-access",
            "offline_access is among the scopes. It is for the authorization server's metadata.",
            "Take it out of the 401 and of scopes_supported.",
        )
    if len(asked) > MANY_SCOPES:
        yield warning(
            "many-scopes",
            f"Clients are told to ask for {len(asked)} scopes at the first login. People are shown "
            "all of them.",
            "Name those that every request needs, and ask for others when they are needed.",
        )
    elif asked:
        yield good("scopes", f"Clients ask for {shown(' '.join(asked))} at the first login.")
