"""The system checks find what would keep clients out, or let others in."""

from __future__ import annotations

from typing import Any

import pytest
from allauth.idp.oidc.adapter import DefaultOIDCAdapter
from django.urls import include, path

from django_mcp import endpoint
from django_mcp.checks.oauth import check_tokens
from django_mcp.contrib.oauth import OIDCAdapterMixin
from django_mcp.contrib.oauth.allauth.checks import check_code_cache, check_provider
from tests.support.sites import urlconf

from .urls import shop

OURS = path("", include("django_mcp.contrib.oauth.allauth.urls"))
STOCK = path("", include("allauth.idp.urls"))


def ids(*more: Any) -> list[str]:
    return [each.id.removeprefix("django_mcp.") for each in (*check_provider(), *more)]


def test_the_site_of_these_tests_has_nothing_wrong():
    assert ids(*check_tokens()) == []


@pytest.mark.parametrize(
    "adapter",
    [
        "allauth.idp.oidc.adapter.DefaultOIDCAdapter",
        "no.such.Adapter",
        "tests.allauth_site.test_checks.TheOtherWayRound",
        "tests.allauth_site.test_checks.ids",
    ],
)
def test_an_adapter_that_is_not_ours(settings, adapter):
    settings.IDP_OIDC_ADAPTER = adapter
    assert ids() == ["E040"]


@pytest.mark.parametrize(
    "patterns",
    [[STOCK], [STOCK, OURS], [path("sso/", include("django_mcp.contrib.oauth.allauth.urls"))], []],
    ids=["stock", "stock first", "below a prefix", "none"],
)
def test_urls_that_are_not_ours(settings, patterns):
    settings.ROOT_URLCONF = urlconf(*patterns, endpoint("mcp", server=shop))
    assert set(ids()) == {"E041"}


def test_nothing_to_consent_to(settings):
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "SCOPES": {}, "BASE_SCOPES": []}
    assert ids() == ["E042"]


def test_an_issuer_that_is_elsewhere(settings):
    keys = settings.DJANGO_MCP
    settings.DJANGO_MCP = {**keys, "AUTHORIZATION_SERVERS": ["https://id.example.com"]}
    assert ids() == ["E043"]
    settings.DJANGO_MCP = {**keys, "AUTHORIZATION_SERVERS": ["http://localhost/"]}
    assert ids() == []
    settings.DJANGO_MCP = {**keys, "AUTHORIZATION_SERVERS": []}
    assert set(ids(*check_tokens())) == {"E010"}


def test_what_allauth_would_do_itself(settings):
    settings.IDP_OIDC_CIMD_ENABLED = True
    assert ids() == ["W040"]


def test_registration_that_nobody_can_use(settings):
    settings.IDP_OIDC_DCR_REQUIRES_INITIAL_ACCESS_TOKEN = True
    assert ids() == ["W041"]
    settings.IDP_OIDC_DCR_ENABLED = False
    assert ids() == []


def test_codes_that_one_process_knows(settings):
    for backend, expected in (("locmem.LocMemCache", ["W042"]), ("db.DatabaseCache", [])):
        settings.CACHES = {"default": {"BACKEND": f"django.core.cache.backends.{backend}"}}
        assert [each.id.removeprefix("django_mcp.") for each in check_code_cache()] == expected


def test_settings_that_cannot_be_read_are_another_checks(settings):
    settings.DJANGO_MCP = {"NO_SUCH_KEY": 1}
    assert ids() == []


class TheOtherWayRound(DefaultOIDCAdapter, OIDCAdapterMixin):
    """Of which allauth's own comes first."""
