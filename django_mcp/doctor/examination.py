"""Looks at a server: all checks in their order, bounded in time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

import httpx

from . import (
    browsers,
    choices,
    connection,
    documents,
    endpoint,
    issuers,
    registration,
    resource,
    sessions,
    streams,
    tools,
)
from .asking import Asker, is_loopback
from .findings import Finding, Level, broken
from .visit import Check, Options, Visit

SECTIONS: Final[tuple[tuple[str, tuple[Check, ...]], ...]] = (
    ("Connection", (connection.check_scheme, connection.check_addresses)),
    ("Certificate", (connection.check_certificate,)),
    (
        "Endpoint",
        (
            endpoint.check_post,
            endpoint.check_bad_token,
            endpoint.check_origin,
            endpoint.check_get,
            browsers.check_pages,
        ),
    ),
    ("Documents", (documents.check_documents, documents.check_head)),
    (
        "Login",
        (
            resource.check_challenge,
            resource.check_document,
            resource.check_resource,
            resource.check_other_document,
            resource.check_servers,
            resource.check_scopes,
            issuers.check_metadata,
            issuers.check_endpoints,
            issuers.check_pkce,
            issuers.check_response_issuer,
            issuers.check_scopes_known,
            issuers.check_known,
            registration.check_registration,
            registration.check_public_clients,
            registration.check_client_document,
            browsers.check_document_pages,
        ),
    ),
    ("Protocol", (sessions.check_revisions, sessions.check_session)),
    ("Streams", (streams.check_stream,)),
    ("Sessions", (sessions.check_end_of_session,)),
    ("Tools", (tools.check_tools,)),
    ("Clients", (choices.check_clients,)),
)


@dataclass(slots=True)
class Section:
    """Findings about one thing."""

    title: str
    findings: list[Finding] = field(default_factory=list)


@dataclass(slots=True)
class Report:
    """All that was found out about a server."""

    url: str
    sections: list[Section] = field(default_factory=list)

    @property
    def findings(self) -> list[Finding]:
        """Those of all sections."""
        return [finding for section in self.sections for finding in section.findings]

    def count(self, level: Level) -> int:
        """Return how many findings are so grave."""
        return sum(finding.level is level for finding in self.findings)


async def examine(url: str, options: Options | None = None) -> Report:
    """Look at the server at ``url``, and return what was found out.

    Raises ``ValueError``, with the cure, for a URL that cannot be looked at.
    """
    options = options or Options()
    parsed = _parsed(url, options)
    address = str(parsed)
    asker = Asker(address, token=options.token, timeout=options.timeout)
    visit, report = Visit(url=parsed, asker=asker, options=options), Report(address)
    try:
        async with asyncio.timeout(options.max_seconds):
            for title, checks in SECTIONS:
                await _examine(visit, checks, report, title)
                if visit.is_over:
                    break
    except TimeoutError:
        report.sections.append(Section("Time", [_out_of_time(options.max_seconds)]))
    report.sections = [section for section in report.sections if section.findings]
    return report


async def _examine(visit: Visit, checks: Iterable[Check], report: Report, title: str) -> None:
    section = Section(title)
    report.sections.append(section)
    for check in checks:
        async for finding in check(visit):
            section.findings.append(finding)
            if finding.level is Level.BROKEN:
                visit.broken.append(finding)
        if visit.is_over:
            return


def _out_of_time(seconds: float) -> Finding:
    return broken(
        "time",
        f"After {seconds:g} seconds no more was looked at.",
        "See why the server is so slow, or give more time with --max-seconds.",
    )


def _parsed(url: str, options: Options) -> httpx.URL:
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise ValueError(f"This is no URL: {error}.") from error
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise ValueError("Give a URL that begins with https:// or http:// and has a host.")
    if parsed.userinfo:
        raise ValueError("The URL has credentials, which end in logs. Give a token in a file.")
    if options.token and parsed.scheme == "http" and not is_loopback(parsed.host):
        raise ValueError("The token would be readable on the way: it is sent by https:// alone.")
    return parsed.copy_with(fragment=None)
