"""Checks of how a client comes to a client id. None is registered here.

2026-07-28, basic/authorization/client-registration.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import httpx

from .asking import NoAnswer
from .findings import Finding, broken, good, note, shown, warning
from .known_issuers import as_known
from .visit import AuthorizationServer, Visit


async def check_registration(visit: Visit) -> AsyncIterator[Finding]:
    """Check that clients which nobody has registered by hand can log in."""
    for server in visit.servers:
        for finding in _ways(server) if server.metadata else ():
            yield as_known(server, finding)
    if visit.servers:
        yield note(
            "nothing-registered",
            "No client was registered here, and nobody was logged in: that these work is seen with "
            "a client alone.",
        )


def _ways(server: AuthorizationServer) -> Iterator[Finding]:
    ways = []
    if server.takes_documents:
        ways.append("by the URL of a document of its own (CIMD)")
    if server.url("registration_endpoint"):
        ways.append("by registering itself (RFC 7591)")
    if not ways:
        yield warning(
            "no-registration",
            "A client cannot come to a client id by itself. Whoever connects one has to register "
            "it by hand, and many clients have no place for that.",
            "Offer client_id_metadata_document_supported, registration_endpoint, or both.",
        )
        return
    yield good("registration", f"A client comes to a client id {' or '.join(ways)}.")
    if not server.takes_documents:
        yield note(
            "no-cimd",
            "It takes no client ids that are documents, which MCP prefers to registration.",
            "Offer client_id_metadata_document_supported.",
        )
    elif not server.url("registration_endpoint"):
        yield warning(
            "no-dcr",
            "It takes documents alone. The Inspector and Gemini CLI have none.",
            "Offer registration_endpoint as well.",
        )


async def check_public_clients(visit: Visit) -> AsyncIterator[Finding]:
    """Check that clients without a secret are welcome, as all that people install are."""
    for server in visit.servers:
        # Who registers is told how to show who it is.
        if server.takes_documents and not server.takes_public_clients:
            finding = warning(
                "no-none",
                '"none" is not among the token endpoint\'s methods. Clients with a document have '
                "no secret; Claude on the web and Codex then register themselves instead.",
                'Let "token_endpoint_auth_methods_supported" have none.',
            )
            yield as_known(server, finding)


async def check_client_document(visit: Visit) -> AsyncIterator[Finding]:
    """Check whether a client's document can be fetched from here, where that is to be done."""
    url = visit.options.client_document
    fetching = [each for each in visit.servers if each.takes_documents and _is_beside(visit, each)]
    if not (url and fetching):
        return
    try:
        answer = await visit.asker.ask("GET", url, headers={"Accept": "application/json"})
        found, said = answer.object() or {}, f"it answers {answer.status} with {answer.kind}"
    except NoAnswer as error:
        found, said = {}, str(error)
    if found.get("client_id") == url:
        yield good("client-document", f"The document of a client can be fetched here: {url}.")
        return
    yield broken(
        "client-document",
        f"The document of a client cannot be fetched here: {url}: {shown(said)}. If the "
        "authorization server is on this host, clients that bring one fail, and Claude Code and "
        "Codex do not register themselves instead.",
        "Let the host reach the internet, by a proxy perhaps, or do not offer "
        "client_id_metadata_document_supported.",
    )


def _is_beside(visit: Visit, server: AuthorizationServer) -> bool:
    """Return whether an authorization server is at the endpoint's own host."""
    return httpx.URL(server.issuer).host == visit.url.host
