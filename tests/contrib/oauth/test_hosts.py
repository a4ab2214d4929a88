"""A star in a URL of the settings stands for the first part of the host, where tenants have one."""

from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import Client
from django.urls import include, path

from django_mcp import MCPServer, endpoint
from django_mcp.conf import get_settings
from django_mcp.server.base_urls import all_at_host, at_host
from tests.support.sites import urlconf

STAR = "https://*.example.com"


@pytest.mark.parametrize(
    ("url", "host", "found"),
    [
        (STAR, "acme.example.com", "https://acme.example.com"),
        (STAR, "ACME.Example.COM", "https://acme.example.com"),
        (STAR, "acme.example.com:443", "https://acme.example.com"),
        ("http://*.localhost:8000", "acme.localhost:8000", "http://acme.localhost:8000"),
        (f"{STAR}/app", "acme.example.com", "https://acme.example.com/app"),
        ("https://shop.example.com", "elsewhere.example", "https://shop.example.com"),
    ],
)
def test_it_is_the_host_of_the_request(url, host, found):
    assert at_host(url, host) == found


@pytest.mark.parametrize(
    "host",
    [
        *("", "acme", "example.com", ".example.com", "acme.example.com.evil.example"),
        *("evil.example", "acmeexample.com", "a.b.example.com", "acme.example.com:8000"),
        *("-.example.com", "acme/.example.com", "evil.example/.example.com", "a@b.example.com"),
        *("acme.example.com:80", "x.example.com.", "acme.example.org"),
    ],
)
def test_no_other_host_is_meant(host):
    assert at_host(STAR, host) == ""
    assert all_at_host([STAR, "https://shop.example.com"], host) == ["https://shop.example.com"]


@pytest.mark.parametrize("key", ["BASE_URL", "AUTHORIZATION_SERVERS"])
@pytest.mark.parametrize(
    "url",
    [
        *("https://*", "https://*:8000", "https://a.*.example.com", "https://a*.example.com"),
        *("https://*.*.example.com", "https://example.com/*", "https://*.", "https://*.*"),
    ],
)
def test_a_star_that_stands_for_nothing_is_no_setting(settings, key, url):
    settings.DJANGO_MCP = settings.DJANGO_MCP | {key: url}
    with pytest.raises(ImproperlyConfigured, match="a star that stands for nothing"):
        get_settings()


@pytest.mark.parametrize("url", [STAR, "http://*.localhost:8000", "http://acme.localhost"])
def test_what_is_below_localhost_needs_no_tls(settings, url):
    settings.DJANGO_MCP = settings.DJANGO_MCP | {"AUTHORIZATION_SERVERS": url, "BASE_URL": url}
    assert get_settings().authorization_servers == (url,)


def test_each_host_has_a_document_of_its_own(settings):
    settings.ALLOWED_HOSTS = [".example.com"]
    settings.ROOT_URLCONF = urlconf(
        endpoint("mcp", server=MCPServer("shop"), auth=lambda request: None),
        path("", include("django_mcp.well_known")),
    )
    settings.DJANGO_MCP = settings.DJANGO_MCP | {
        "BASE_URL": STAR,
        "AUTHORIZATION_SERVERS": [STAR, "https://id.example.org"],
    }
    for name in ("acme", "globex"):
        client = Client(headers={"host": f"{name}.example.com"})
        about = client.get("/.well-known/oauth-protected-resource/mcp").json()
        site = f"https://{name}.example.com"
        assert about["resource"] == f"{site}/mcp"
        assert about["authorization_servers"] == [site, "https://id.example.org"]
    # The domain itself is nobody's.
    client = Client(headers={"host": "example.com"})
    assert client.get("/.well-known/oauth-protected-resource/mcp").status_code == 404
