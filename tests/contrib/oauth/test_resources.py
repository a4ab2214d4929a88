"""Which endpoint of the site a URL is, as the resource that a token is issued for."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import RequestFactory
from django.urls import include, path

from django_mcp import MCPServer, endpoint
from django_mcp.contrib.oauth.resources import only_resource, resource_at
from tests.support.sites import urlconf

ISSUER = "https://shop.example.com"
shop = MCPServer("shop")
other = MCPServer("other", authorization_servers=["https://id.example.com"])
alone = MCPServer("alone", authorization_servers=[])


@pytest.fixture(autouse=True)
def site(settings: Any) -> Any:
    settings.ROOT_URLCONF = urlconf(
        path("api/", include([endpoint("mcp", server=shop)])),
        endpoint("other", server=other),
        endpoint("alone", server=alone),
    )
    settings.DJANGO_MCP = {
        "AUTH": "django_mcp.auth.public",
        "AUTHORIZATION_SERVERS": [ISSUER],
        "BASE_URL": [ISSUER, "http://localhost:8000", "https://proxy.example/app"],
    }
    # `public` takes no tokens; what is looked for here is where tokens are taken.
    settings.DJANGO_MCP["AUTH"] = lambda request: None
    return settings


@pytest.mark.parametrize(
    "url",
    [f"{ISSUER}/api/mcp", "http://localhost:8000/api/mcp", "https://proxy.example/app/api/mcp"],
)
def test_an_endpoint_is_found_by_each_of_its_urls(url):
    found = resource_at(url)
    assert found is not None
    assert found.authorization_servers == (ISSUER,)
    assert url in found.urls


def test_each_endpoint_names_who_issues_tokens_for_it():
    found = resource_at(f"{ISSUER}/other")
    assert found is not None
    assert found.authorization_servers == ("https://id.example.com",)
    assert resource_at(f"{ISSUER}/alone") is None


@pytest.mark.parametrize(
    "url",
    [
        *("", "mcp", "/api/mcp", ISSUER, f"{ISSUER}/", f"{ISSUER}/api", f"{ISSUER}/api/mcp/"),
        *(f"{ISSUER}/api/mcp?x=1", f"{ISSUER}/api/mcp#a", f"{ISSUER}/api/MCP"),
        *(f"{ISSUER}/api/%6dcp", f"{ISSUER}:443/api/mcp", "https://SHOP.example.com/api/mcp"),
        *("http://shop.example.com/api/mcp", "https://evil.example/api/mcp"),
        *("https://shop.example.com.evil.example/api/mcp", "https://proxy.example/api/mcp"),
        *(f"{ISSUER}@evil.example/api/mcp", "https://[/api/mcp", f"{ISSUER}/app/api/mcp"),
    ],
)
def test_what_is_written_otherwise_is_none(url):
    assert resource_at(url) is None


def test_without_a_base_url_the_allowed_hosts_count(settings):
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "BASE_URL": []}
    settings.ALLOWED_HOSTS = ["shop.example.com", "*"]
    assert resource_at(f"{ISSUER}/api/mcp") is not None
    assert resource_at("http://shop.example.com/api/mcp") is not None
    assert resource_at("https://evil.example/api/mcp") is None
    settings.ALLOWED_HOSTS = ["*"]
    assert resource_at(f"{ISSUER}/api/mcp") is None


def test_the_only_endpoint_of_a_site(settings):
    request = RequestFactory().get("/", headers={"Host": "localhost:8000"})
    assert only_resource(request) is None, "there are several"
    settings.ROOT_URLCONF = urlconf(endpoint("mcp", server=shop))
    found = only_resource(request)
    assert found is not None
    assert found.url == "http://localhost:8000/mcp"
    settings.ROOT_URLCONF = urlconf(path("<slug:shop>/", include([endpoint("mcp", server=shop)])))
    assert only_resource(request) is None
    assert resource_at(f"{ISSUER}/green/mcp") is not None


def test_settings_that_cannot_be_read_have_none(settings):
    settings.DJANGO_MCP = {"NO_SUCH_KEY": 1}
    assert resource_at(f"{ISSUER}/api/mcp") is None
