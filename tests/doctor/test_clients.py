"""Which way known clients would take, by what an authorization server offers."""

from __future__ import annotations

import datetime as dt
from typing import Any

import httpx
import pytest

from django_mcp.doctor.asking import Answer, Asker
from django_mcp.doctor.choices import choice
from django_mcp.doctor.findings import Level
from django_mcp.doctor.known_clients import CLIENTS, READ
from django_mcp.doctor.visit import AuthorizationServer, Options, Visit

URL = "https://shop.example.com/mcp"
CIMD = {"client_id_metadata_document_supported": True}
NONE = {"token_endpoint_auth_methods_supported": ["none"]}
DCR = {"registration_endpoint": "https://shop.example.com/register"}
BY_NAME = {client.name: client for client in CLIENTS}
CLAUDE = "Claude (web, Desktop, mobile)"
BY_DOCUMENT = "logs in, with the URL of its document as client id (CIMD)."
BY_REGISTRATION = "logs in, after registering itself"


def visit_to(url: str = URL, *, status: int = 401, **metadata: Any) -> Visit:
    visit = Visit(url=httpx.URL(url), asker=Asker(url, token=None, timeout=1), options=Options())
    visit.opening = Answer("POST", url, status, httpx.Headers(), b"", is_whole=True)
    if metadata:
        visit.servers = [AuthorizationServer(issuer="https://shop.example.com", metadata=metadata)]
    return visit


@pytest.mark.parametrize(
    ("name", "metadata", "says"),
    [
        (CLAUDE, CIMD | NONE | DCR, BY_DOCUMENT),
        (CLAUDE, CIMD | DCR, f'{BY_REGISTRATION}, since "none" is not among'),
        (CLAUDE, {"issuer": "x"}, "gives it a client id in the advanced settings"),
        ("Claude Code", CIMD | DCR, BY_DOCUMENT),
        ("Claude Code", DCR, BY_REGISTRATION),
        ("ChatGPT", CIMD | DCR, BY_DOCUMENT),
        ("ChatGPT", {"issuer": "x"}, "gives it a client id in the settings of the app"),
        ("VS Code", CIMD | NONE, BY_DOCUMENT),
        ("Codex", CIMD | NONE, BY_DOCUMENT),
        ("Codex", CIMD | DCR, BY_REGISTRATION),
        ("Codex", CIMD, "gives it a token as bearer_token_env_var"),
        ("Gemini CLI", CIMD | NONE | DCR, BY_REGISTRATION),
        ("Gemini CLI", CIMD | NONE, 'gives it a client id as "oauth" in settings.json'),
        ("Inspector", CIMD | NONE | DCR, BY_REGISTRATION),
        ("Inspector", CIMD | NONE, "gives it a client id in its settings of OAuth"),
    ],
)
def test_how_a_client_logs_in(name: str, metadata: dict[str, Any], says: str):
    message = choice(visit_to(**metadata), BY_NAME[name]).message
    assert message.startswith(f"{name} ")
    assert says in message


def test_without_a_login_all_connect():
    for client in CLIENTS:
        finding = choice(visit_to(status=200), client)
        assert finding.level is Level.GOOD
        assert finding.message == f"{client.name} connects without a login."


def test_without_oauth_those_connect_that_take_a_token():
    findings = {client.name: choice(visit_to(), client) for client in CLIENTS}
    cannot = {name for name, each in findings.items() if each.level is Level.WARNING}
    assert cannot == {CLAUDE, "ChatGPT"}
    assert "with --header" in findings["Claude Code"].message


@pytest.mark.parametrize("name", [CLAUDE, "ChatGPT"])
def test_hosted_clients_do_not_reach_what_is_local(name: str):
    visit = visit_to("http://localhost:8000/mcp", **CIMD, **NONE)
    visit.is_local = True
    finding = choice(visit, BY_NAME[name])
    assert "servers, which do not reach this address. From elsewhere: " in finding.message
    assert BY_DOCUMENT in finding.message

    plain = choice(visit_to("http://shop.example.com/mcp", **CIMD, **NONE), BY_NAME[name])
    assert "by HTTPS alone" in plain.message


def test_facts_have_a_day_and_a_source():
    assert dt.date.fromisoformat(READ) >= dt.date(2026, 11, 1)
    assert len(BY_NAME) == len(CLIENTS)
    for client in CLIENTS:
        assert client.seen
        assert client.registers or client.has_document or client.takes_token
