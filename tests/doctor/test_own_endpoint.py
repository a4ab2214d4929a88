"""Our own endpoint is well, at every way into it, open or guarded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest

from django_mcp.doctor.examination import Report
from django_mcp.doctor.findings import Level
from django_mcp.doctor.visit import Options
from tests.contrib.oauth.issuer import Issuer, serving
from tests.support.servers import RunningServer, running_servers

from .conftest import examined

HERE = Path(__file__).resolve().parent
DOORS = ["mount", "asgi-view", "wsgi", "wsgi-streams"]
STREAMING = ["mount", "asgi-view", "wsgi-streams"]

pytestmark = [pytest.mark.processes, pytest.mark.xdist_group("doctor")]


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    with serving() as found:
        found.publish(
            authorization_endpoint=f"{found.url}/authorize",
            token_endpoint=f"{found.url}/token",
            registration_endpoint=f"{found.url}/register",
            code_challenge_methods_supported=["S256"],
            token_endpoint_auth_methods_supported=["none"],
            authorization_response_iss_parameter_supported=True,
            client_id_metadata_document_supported=True,
        )
        yield found


@pytest.fixture(scope="module")
def server_of(issuer: Issuer) -> Iterator[Callable[[str, bool], RunningServer]]:
    """Give the server of a door, open or guarded; each starts when it is first asked for."""
    with ExitStack() as stack:

        @cache
        def start(door: str, guarded: bool) -> RunningServer:
            variables = {"ISSUER": issuer.url if guarded else ""}
            serving = running_servers(
                [door], settings="doctored.settings", path=HERE, variables=variables
            )
            return stack.enter_context(serving)[0][0]

        yield start


def look_at(server: RunningServer, token: str | None = None) -> Report:
    options = Options(token=token, watch=1.0, client_document="")
    return examined(server.url, options)


def wrong(report: Report) -> list[tuple[str, str]]:
    return [
        (each.name, each.message)
        for each in report.findings
        if each.level in (Level.WARNING, Level.BROKEN)
    ]


def named(report: Report, name: str) -> list[str]:
    return [each.message for each in report.findings if each.name == name]


@pytest.mark.parametrize("door", DOORS)
def test_an_open_endpoint_is_well(door: str, server_of: Callable[[str, bool], RunningServer]):
    report = look_at(server_of(door, False))

    assert wrong(report) == []
    assert named(report, "open")
    assert "2025-03-26, 2025-06-18, 2025-11-25 and 2026-07-28" in named(report, "revisions")[0]
    assert "found again 8 times" in named(report, "session")[0]
    assert "Tools that are listed: 1," in named(report, "tools")[0]
    assert bool(named(report, "stream")) == (door in STREAMING)


@pytest.mark.parametrize("door", DOORS)
def test_a_guarded_endpoint_is_well(
    door: str, server_of: Callable[[str, bool], RunningServer], issuer: Issuer
):
    server = server_of(door, True)
    token = issuer.sign(issuer.claims(server.url, scope="read"))
    report = look_at(server, token)

    assert wrong(report) == []
    assert named(report, "login")
    assert named(report, "resource") == ["The document is about this very URL."]
    assert named(report, "scopes") == ["Clients ask for read at the first login."]
    assert "Tools that are listed: 1," in named(report, "tools")[0]
    assert "Claude Code logs in, with the URL of its document as client id (CIMD)." in named(
        report, "client"
    )


def test_without_a_token_it_says_what_was_not_looked_at(
    server_of: Callable[[str, bool], RunningServer],
):
    report = look_at(server_of("mount", True))

    assert wrong(report) == []
    assert "asks for a token" in named(report, "not-looked-at")[0]
    assert not named(report, "tools")


def test_a_token_for_another_endpoint_is_refused_with_the_servers_own_words(
    server_of: Callable[[str, bool], RunningServer], issuer: Issuer
):
    token = issuer.sign(issuer.claims("https://elsewhere.example/mcp", scope="read"))
    (refused,) = named(look_at(server_of("mount", True), token), "token-refused")

    assert refused.startswith("The token is refused (401)")
