"""Keycloak, Auth0, Microsoft Entra ID and AuthKit, each as its documents say: what people are told.

Their metadata is planted at the places where they have it.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from django_mcp.doctor.examination import Report
from django_mcp.doctor.findings import Finding, Level, broken
from django_mcp.doctor.issuers import metadata_urls
from django_mcp.doctor.known_issuers import (
    AUTH0,
    AUTHKIT,
    ENTRA,
    ISSUERS,
    READ,
    as_known,
    known_issuer,
)
from django_mcp.doctor.visit import AuthorizationServer
from tests.contrib.oauth import documented_issuers as documented
from tests.contrib.oauth.documented_issuers import TENANT, Documented

from .conftest import look
from .site import ISSUER, RESOURCE, Site, served

BY_NAME = {
    "Keycloak": documented.KEYCLOAK,
    "Auth0": documented.AUTH0,
    "Microsoft Entra ID": documented.ENTRA,
    "AuthKit of WorkOS": documented.AUTHKIT,
}
slow = pytest.mark.slow
KNOWN = {each.name: each for each in ISSUERS}


def examined(issuer: Documented, *, scopes: str = "read", **changes: Any) -> Report:
    """Look at a site whose tokens are issued as documented, but for some members."""
    with served(Site(guarded=True)) as site:
        del site.documents[ISSUER]
        site.documents |= issuer.documents(site.origin)
        for found in site.documents.values():
            if "token_endpoint" in found:
                found.update(changes)
        asked = scopes.replace("RESOURCE", site.url)
        site.document["authorization_servers"] = [issuer.issuer(site.origin)]
        site.document["scopes_supported"] = asked.split()
        site.challenge = f'Bearer resource_metadata="{site.origin}{RESOURCE}/mcp", scope="{asked}"'
        return look(site)


def named(report: Report, name: str) -> Finding:
    (found,) = (each for each in report.findings if each.name == name)
    return found


def client(report: Report, name: str) -> str:
    (found,) = (each for each in report.findings if each.message.startswith(f"{name} "))
    return found.message


SCOPES = {
    "Keycloak": "orders:read",
    "Auth0": "orders:read",
    "Microsoft Entra ID": "RESOURCE/orders.read",
    "AuthKit of WorkOS": "openid",
}


@slow
@pytest.mark.parametrize("name", BY_NAME)
def test_each_is_recognised_and_what_is_not_seen_is_said(name: str):
    report = examined(BY_NAME[name], scopes=SCOPES[name])
    said = named(report, "known-issuer")
    assert said.level is Level.NOTE
    assert said.message.startswith(f"This is {name}. Its tokens are for this endpoint only where ")
    assert "http://127.0.0.1:" in said.message
    assert "RESOURCE" not in said.message
    assert named(report, "issuer").level is Level.GOOD


@slow
@pytest.mark.parametrize("name", BY_NAME)
def test_where_it_is_set_up_right_nothing_is_said_to_be_broken(name: str):
    report = examined(BY_NAME[name], scopes=SCOPES[name])
    assert [each.name for each in report.findings if each.level is Level.BROKEN] == []


@slow
def test_another_is_none_of_them():
    with served(Site(guarded=True)) as site:
        assert "known-issuer" not in {each.name for each in look(site).findings}


# Keycloak


@slow
def test_keycloak_says_that_clients_register_whether_they_may_or_not():
    report = examined(documented.KEYCLOAK, scopes="orders:read")
    assert named(report, "registration").level is Level.NOTE
    assert "by default they may not" in named(report, "registration").message
    assert "if the realm lets strangers register" in client(report, "Claude Code")
    assert "--features=cimd" in named(report, "no-cimd").cure
    assert "no-none" not in {each.name for each in report.findings}, "a client that registers asks"


@slow
def test_keycloak_with_documents_and_without_none():
    report = examined(documented.KEYCLOAK, client_id_metadata_document_supported=True)
    assert "26.7" in named(report, "no-none").cure
    assert "if a client policy of the realm lets that document in" in client(report, "Claude Code")


@slow
def test_keycloak_lists_its_scopes():
    report = examined(documented.KEYCLOAK, scopes="orders:raed")
    assert named(report, "unknown-scopes").level is Level.BROKEN


# Auth0


@slow
def test_auth0_takes_documents_that_somebody_has_imported():
    report = examined(
        documented.AUTH0,
        client_id_metadata_document_supported=True,
        token_endpoint_auth_methods_supported=["none"],
    )
    assert "only documents that an administrator has imported" in (
        named(report, "registration").message
    )
    assert "if an administrator has imported that document" in client(report, "Claude Code")
    assert "if the tenant's Dynamic Client Registration is on" in client(report, "Inspector")


@slow
def test_auth0_lists_no_scopes_of_an_api():
    found = named(examined(documented.AUTH0, scopes="orders:read"), "unknown-scopes")
    assert (found.level, found.cure) == (Level.NOTE, "See that the API has them.")


@slow
def test_auth0_needs_its_slash():
    with served(Site(guarded=True)) as site:
        del site.documents[ISSUER]
        site.documents |= documented.AUTH0.documents(site.origin)
        found = [each for each in look(site).findings if each.name == "issuer-differs"]
    assert found
    assert all("They differ in the slash at the end alone." in each.cure for each in found)


# Microsoft Entra ID


@slow
def test_entra_takes_s256_and_does_not_say_so():
    report = examined(documented.ENTRA, scopes="RESOURCE/orders.read")
    found = named(report, "pkce")
    assert found.level is Level.WARNING
    assert "takes S256 all the same" in found.message
    plain = examined(documented.ENTRA, code_challenge_methods_supported=["plain"])
    assert named(plain, "pkce").level is Level.BROKEN


@slow
def test_entra_registers_nobody():
    report = examined(documented.ENTRA, scopes="RESOURCE/orders.read")
    assert "Register each client by hand" in named(report, "no-registration").cure
    assert "a person gives it a client id with --client-id" in client(report, "Claude Code")
    assert client(report, "Codex").startswith("Codex connects where a person gives it a token")


@slow
@pytest.mark.parametrize("scopes", ["orders.read", "RESOURCE/orders.read orders.write"])
def test_entra_takes_bare_scopes_for_others(scopes: str):
    report = examined(documented.ENTRA, scopes=scopes)
    found = named(report, "bare-scopes")
    assert found.level is Level.BROKEN
    assert "for scopes of Microsoft Graph" in found.message
    assert 'DJANGO_MCP["SCOPE_FORMAT"] = "{resource}/{scope}"' in found.cure
    assert "(bare-scopes)" in client(report, "Claude Code")


@slow
@pytest.mark.parametrize("scopes", ["", "openid"])
def test_entra_needs_a_scope_to_know_for_what_a_token_is(scopes: str):
    found = named(examined(documented.ENTRA, scopes=scopes), "bare-scopes")
    assert "Clients are told of no scope" in found.message


@slow
@pytest.mark.parametrize("tenant", ["common", "shop.onmicrosoft.com"])
def test_entra_has_to_be_named_by_the_id_of_the_tenant(tenant: str):
    with served(Site(guarded=True)) as site:
        del site.documents[ISSUER]
        (metadata,) = documented.ENTRA.documents(site.origin).values()
        site.documents[f"/{tenant}/v2.0/.well-known/openid-configuration"] = metadata
        site.document["authorization_servers"] = [f"{site.origin}/{tenant}/v2.0"]
        found = named(look(site), "issuer-differs")
    assert found.level is Level.BROKEN
    assert "with the id of the tenant" in found.cure


# AuthKit


@slow
def test_authkit_has_no_scopes_for_clients_that_nobody_has_made():
    found = named(examined(documented.AUTHKIT, scopes="orders:read"), "unknown-scopes")
    assert "AuthKit gives none but these" in found.message
    assert "leave BASE_SCOPES empty" in found.cure


@slow
def test_documents_of_authkit_that_differ_are_named():
    found = named(examined(documented.AUTHKIT, scopes="openid"), "issuer-documents")
    assert "code_challenge_methods_supported, registration_endpoint and client_id" in found.message


# What is known


@pytest.mark.parametrize(
    ("issuer", "name"),
    [
        (f"https://login.microsoftonline.com/{TENANT}/v2.0", ENTRA.name),
        ("https://sts.windows.net/common/", ENTRA.name),
        ("https://shop.eu.auth0.com/", AUTH0.name),
        ("https://imaginative-palm-54.authkit.app", AUTHKIT.name),
        ("https://login.microsoftonline.com.example/", None),
        ("https://id.example.com/realms/shop", None),
        ("no url", None),
        ("https://[id", None),
    ],
)
def test_hosts_of_their_own_are_known(issuer: str, name: str | None):
    found = known_issuer(AuthorizationServer(issuer=issuer))
    assert (found and found.name) == name


@pytest.mark.parametrize("name", BY_NAME)
def test_at_hosts_of_their_customers_their_endpoints_are_known(name: str):
    issuer = BY_NAME[name].issuer("https://id.example.com")
    documents = BY_NAME[name].documents("https://id.example.com")
    # Where the keys are is said by one of AuthKit's documents alone.
    metadata = {key: value for each in documents.values() for key, value in each.items()}
    found = known_issuer(AuthorizationServer(issuer=issuer, metadata=metadata))
    assert found is KNOWN[name]
    assert any(
        url.removeprefix("https://id.example.com") in documents for url in metadata_urls(issuer)
    )


def test_a_finding_of_which_nothing_is_known_stays_as_it_is():
    finding = broken("no-such", "Something.", "Do something.")
    server = AuthorizationServer(issuer="https://shop.eu.auth0.com/")
    assert as_known(server, finding) is finding
    assert as_known(AuthorizationServer(issuer="https://id.example.com"), finding) is finding


def test_facts_have_a_day_and_a_source():
    assert dt.date.fromisoformat(READ) >= dt.date(2026, 11, 1)
    for each in ISSUERS:
        assert each.seen
        for remark in each.remarks.values():
            assert remark.message or remark.cure
            assert all(text.endswith(".") for text in (remark.message, remark.cure) if text)
