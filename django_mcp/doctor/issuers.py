"""Checks of who issues tokens, by the documents of the authorization servers.

2026-07-28, basic/authorization/authorization-server-discovery; RFC 8414; OpenID Connect Discovery.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final
from urllib.parse import urlsplit

from ..protocol.scopes import OF_OPENID as OF_LOGINS
from .asking import Answer, NoAnswer, is_loopback
from .documents import is_document
from .findings import Finding, broken, good, in_words, note, shown, warning
from .known_issuers import as_known, known_issuer
from .visit import AuthorizationServer, Visit

CODE: Final = "authorization_code"
TOLD_APART: Final = (
    "code_challenge_methods_supported",
    "registration_endpoint",
    "client_id_metadata_document_supported",
)
"""What a client goes by, of whichever document it reads."""
OF_OPENID: Final = frozenset({*OF_LOGINS, "offline_access"})
ENDPOINTS: Final = ("authorization_endpoint", "token_endpoint")


def metadata_urls(issuer: str) -> list[str]:
    """Return where clients look for the metadata of an issuer, in this order."""
    parts = urlsplit(issuer)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    urls = [
        f"{origin}/.well-known/{name}{path}"
        for name in ("oauth-authorization-server", "openid-configuration")
    ]
    return [*urls, f"{origin}{path}/.well-known/openid-configuration"] if path else urls


async def check_metadata(visit: Visit) -> AsyncIterator[Finding]:
    """Check that each authorization server says of itself what it is, and no other."""
    for server in visit.servers:
        if not visit.may_fetch(server.issuer):
            yield broken(
                "issuer-url",
                f"The issuer {shown(server.issuer)} is no URL that clients go to from here.",
                "Name an https:// URL. One of this machine is of no use to clients elsewhere.",
            )
            continue
        async for finding in _of_issuer(visit, server):
            yield finding


async def _of_issuer(visit: Visit, server: AuthorizationServer) -> AsyncIterator[Finding]:
    tried: list[str] = []
    found: list[tuple[str, dict[str, Any]]] = []
    for url in metadata_urls(server.issuer):
        answer = await _fetched(visit, url)
        if isinstance(answer, Answer) and is_document(answer):
            found.append((url, answer.object() or {}))
        else:
            why = answer if isinstance(answer, NoAnswer) else f"{answer.status}, {answer.kind}"
            tried.append(f"{shown(url)} ({why})")
    if not found:
        yield await _of_missing(visit, server, tried)
        return
    own = [(url, each) for url, each in found if each.get("issuer") == server.issuer]
    for url, each in found:
        if each.get("issuer") != server.issuer:
            grave = warning if own and url != found[0][0] else broken
            one = AuthorizationServer(issuer=server.issuer, metadata=each)
            yield as_known(one, _of_another(server, url, each, grave))
    if own:
        server.metadata = own[0][1]
        yield good("issuer", f"{shown(server.issuer)} has its metadata at {shown(own[0][0])}.")
        for finding in _of_differences(own):
            yield finding


def _of_differences(own: list[tuple[str, dict[str, Any]]]) -> list[Finding]:
    (first, best), *others = own
    for url, each in others:
        differ = [key for key in TOLD_APART if each.get(key) != best.get(key)]
        if differ:
            return [
                note(
                    "issuer-documents",
                    f"Its metadata at {shown(url)} says something else as {in_words(differ)} than "
                    f"at {shown(first)}. Clients go by the one that they read.",
                    "Let both say the same.",
                )
            ]
    return []


async def _of_missing(visit: Visit, server: AuthorizationServer, tried: list[str]) -> Finding:
    message = f"No metadata of {shown(server.issuer)} can be read: {in_words(tried)}."
    cure = "Serve it at one of these URLs."
    path = urlsplit(server.issuer).path.rstrip("/")
    if path:
        below = f"{server.issuer.rstrip('/')}/.well-known/oauth-authorization-server"
        answer = await _fetched(visit, below)
        if isinstance(answer, Answer) and is_document(answer):
            message += f" It is at {shown(below)}, where clients do not look."
        cure += (
            " That of an issuer with a path is at the root of its host, with the path behind it."
        )
    return broken("no-metadata", message, cure)


def _of_another(
    server: AuthorizationServer, url: str, metadata: dict[str, Any], grave: Any
) -> Finding:
    said = metadata.get("issuer")
    message = (
        f"The metadata at {shown(url)} is of the issuer {shown(said)}, and the resource names "
        f"{shown(server.issuer)}. Clients must not use it."
    )
    cure = "Let both be the same, letter by letter (RFC 8414, section 3.3)."
    if isinstance(said, str) and said.rstrip("/") == server.issuer.rstrip("/"):
        cure += " They differ in the slash at the end alone."
    elif isinstance(said, str) and said.partition("://")[2] == server.issuer.partition("://")[2]:
        cure += " They differ in the scheme alone: the server does not know that it is reached by "
        cure += "HTTPS."
    finding: Finding = grave("issuer-differs", message, cure)
    return finding


async def _fetched(visit: Visit, url: str) -> Answer | NoAnswer:
    try:
        return await visit.asker.ask("GET", url, headers={"Accept": "application/json"})
    except NoAnswer as error:
        return error


async def check_endpoints(visit: Visit) -> AsyncIterator[Finding]:
    """Check that it says where people agree, and where tokens are."""
    for server in _known(visit):
        for key in ENDPOINTS:
            url = server.url(key)
            if not url:
                cure = f'Add "{key}" to the metadata.'
                yield broken("endpoint", f"The metadata has no {key}.", cure)
            elif urlsplit(url).scheme != "https" and not is_loopback(urlsplit(url).hostname or ""):
                yield broken(
                    "endpoint-scheme",
                    f"The {key} is not HTTPS: {shown(url)}.",
                    "Name it with https://; behind a proxy, see that the server knows the scheme.",
                )
        for finding in _of_grants(server):
            yield finding


def _of_grants(server: AuthorizationServer) -> list[Finding]:
    types = server.names("response_types_supported")
    grants = server.names("grant_types_supported")
    if "code" not in (types or ["code"]) or "authorization_code" not in (grants or [CODE]):
        return [
            broken(
                "no-code",
                "The authorization server issues no codes, by which MCP clients log in.",
                "Turn the authorization code flow on, and let the metadata have code among "
                "response_types_supported, and authorization_code among grant_types_supported.",
            )
        ]
    if grants is not None and "refresh_token" not in grants:
        return [
            warning(
                "no-refresh",
                "The authorization server renews no tokens. People log in again whenever one "
                "expires.",
                "Issue refresh tokens, and let grant_types_supported have refresh_token.",
            )
        ]
    return []


async def check_pkce(visit: Visit) -> AsyncIterator[Finding]:
    """Check that it does PKCE with S256, without which clients must not go on.

    2026-07-28, basic/authorization/security-considerations, "Authorization Code Protection".
    """
    for server in _known(visit):
        methods = server.names("code_challenge_methods_supported")
        if methods is not None and "S256" in methods:
            yield good("pkce", "It takes PKCE with S256.")
            continue
        said = "says nothing of PKCE" if methods is None else "does not take S256 of PKCE"
        finding = broken(
            "pkce",
            f"The authorization server {said}. Clients must not go on.",
            'Turn PKCE on, and let "code_challenge_methods_supported" be ["S256"].',
        )
        yield as_known(server, finding) if methods is None else finding


async def check_response_issuer(visit: Visit) -> AsyncIterator[Finding]:
    """Check whether its answers name it (RFC 9207), as 2026-07-28 asks."""
    for server in _known(visit):
        if server.metadata.get("authorization_response_iss_parameter_supported") is not True:
            finding = note(
                "no-iss",
                "Its answers do not name it (iss). A later revision of MCP is to demand that.",
                "Send iss with each answer, and say so in the metadata (RFC 9207).",
            )
            yield as_known(server, finding)


async def check_scopes_known(visit: Visit) -> AsyncIterator[Finding]:
    """Check that the authorization server has the scopes for which clients are told to ask."""
    asked = _asked(visit)
    for server in _known(visit):
        listed = server.names("scopes_supported")
        unknown = [each for each in asked if each not in (listed or asked)]
        if not unknown:
            continue
        names = shown(" ".join(unknown))
        if OF_OPENID.issuperset(listed or ()):
            # RFC 8414, section 2: it need not list all.
            finding = note(
                "unknown-scopes",
                f"Clients are told to ask for {names}. The authorization server lists none but "
                "those of OpenID Connect.",
                "See that it has them.",
            )
        else:
            finding = broken(
                "unknown-scopes",
                f"Clients are told to ask for {names}, which the authorization server does not "
                "list. It is likely to refuse them.",
                "Let it have these scopes, or ask for others.",
            )
        yield as_known(server, finding)


async def check_known(visit: Visit) -> AsyncIterator[Finding]:
    """Say of authorization servers that are known what is not seen from outside."""
    asked = [each for each in _asked(visit) if each not in OF_OPENID]
    for server in visit.servers:
        known = known_issuer(server)
        if known is None:
            continue
        if server.metadata:
            when = known.audience.replace("RESOURCE", shown(visit.document.get("resource")))
            yield note(
                "known-issuer",
                f"This is {known.name}. Its tokens are for this endpoint only where {when}.",
            )
        if known.needs_whole_scopes and not all("://" in each for each in asked):
            yield broken(
                "bare-scopes",
                f"Clients are told to ask for {shown(' '.join(asked))}. {known.name} takes that "
                "for scopes of Microsoft Graph.",
                "Let clients ask by whole names, as in "
                'DJANGO_MCP["SCOPE_FORMAT"] = "{resource}/{scope}".',
            )
        elif known.needs_whole_scopes and not asked:
            yield broken(
                "bare-scopes",
                f"Clients are told of no scope. Without one {known.name} issues no token for this "
                "endpoint.",
                "Name one that every request needs, in BASE_SCOPES.",
            )


def _asked(visit: Visit) -> list[str]:
    """Return the scopes for which clients are told to ask."""
    found = visit.document.get("scopes_supported")
    asked = list(found) if isinstance(found, list) else []
    asked += (visit.asked_scope or "").split()
    return list(dict.fromkeys(map(str, asked)))


def _known(visit: Visit) -> list[AuthorizationServer]:
    return [server for server in visit.servers if server.metadata]
