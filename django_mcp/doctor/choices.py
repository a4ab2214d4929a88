"""Says which way known clients would take, by the facts in ``known_clients``."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from .findings import Finding, Level, note
from .known_clients import CLIENTS, READ, KnownClient
from .known_issuers import known_issuer
from .visit import AuthorizationServer, Visit

NAME: Final = "client"
STOPPERS: Final = frozenset(
    {
        "no-challenge",
        "other-scheme",
        "document-missing",
        "document-url",
        "document-host",
        "document-scheme",
        "resource",
        "resource-loopback",
        "resource-other",
        "no-servers",
        "bearer-methods",
        "issuer-url",
        "issuer-differs",
        "no-metadata",
        "endpoint",
        "no-code",
        "pkce",
        "bare-scopes",
    }
)
"""Findings for which no client comes to a token."""


async def check_clients(visit: Visit) -> AsyncIterator[Finding]:
    """Say of each client how it would connect, or why it would fail."""
    for client in CLIENTS:
        yield choice(visit, client)
    yield note("clients-read", f"What is known of these clients was read on {READ}.")


def choice(visit: Visit, client: KnownClient) -> Finding:
    """Return how a client would connect, as far as it can be told from here."""
    finding = _way(visit, client)
    problem = _unreachable(visit, client)
    if problem:
        text = f"{client.name} cannot connect: {problem}."
        if finding.level is Level.GOOD:
            text += f" From elsewhere: {finding.message}"
        return Finding(Level.NOTE, NAME, text, finding.cure)
    return finding


def _way(visit: Visit, client: KnownClient) -> Finding:
    if not visit.asks_for_login:
        return Finding(Level.GOOD, NAME, f"{client.name} connects without a login.")
    if not visit.servers:
        return _by_token(client, "no login by OAuth is offered")
    stopped = next((each for each in visit.broken if each.name in STOPPERS), None)
    if stopped is not None:
        return _by_token(client, f"its login fails by what is broken above ({stopped.name})")
    way = _registration(visit.servers[0], client)
    if not way:
        return _by_hand(client)
    text = f"{client.name} logs in, {way}."
    if client.remark:
        text = f"{text} {client.remark}"
    return Finding(Level.GOOD, NAME, text)


def _unreachable(visit: Visit, client: KnownClient) -> str:
    if not client.connects_from:
        return ""
    if visit.is_local:
        return f"it connects from {client.connects_from}'s servers, which do not reach this address"
    if visit.url.scheme != "https":
        return f"it connects from {client.connects_from}'s servers, by HTTPS alone"
    return ""


def _registration(server: AuthorizationServer, client: KnownClient) -> str:
    """Return how a client comes to a client id by itself, or nothing."""
    is_enough = server.takes_public_clients or not client.document_needs_none
    known = known_issuer(server)
    if client.has_document and server.takes_documents and is_enough:
        condition = _if("" if known is None else known.if_document)
        return f"with the URL of its document as client id (CIMD){condition}"
    if client.registers and server.url("registration_endpoint"):
        why = ""
        if client.has_document and server.takes_documents:
            why = ', since "none" is not among the methods of the token endpoint'
        condition = _if("" if known is None else known.if_registering)
        return f"after registering itself{why}{condition}"
    return ""


def _if(condition: str) -> str:
    return f", if {condition}" if condition else ""


def _by_hand(client: KnownClient) -> Finding:
    why = "it gets no client id by itself"
    if client.takes_client_id:
        text = f"{client.name} logs in where a person gives it a client id {client.takes_client_id}"
        return Finding(Level.NOTE, NAME, f"{text}, since {why}.")
    return _by_token(client, why)


def _by_token(client: KnownClient, why: str) -> Finding:
    if client.takes_token:
        text = f"{client.name} connects where a person gives it a token {client.takes_token}"
        return Finding(Level.NOTE, NAME, f"{text}, since {why}.")
    return Finding(Level.WARNING, NAME, f"{client.name} cannot connect: {why}.", CURE)


CURE: Final = "Offer a login by OAuth, with client_id_metadata_document_supported or registration."
