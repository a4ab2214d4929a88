"""A site whose endpoint is a resource of an authorization server on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import RequestFactory
from django.urls import include, path

from django_mcp import Context, MCPServer, endpoint
from django_mcp.auth import ProtectedResource
from django_mcp.contrib.oauth import UserFromClaim
from django_mcp.contrib.oauth.introspection import forget_answers
from django_mcp.contrib.oauth.issuers import forget_issuers
from tests.support.sites import urlconf

from .issuer import CLIENT, SECRET, Issuer, serving

RESOURCE = "http://testserver/mcp"
server = MCPServer("shop")


@server.tool
def whoami(ctx: Context) -> str:
    """Say who is calling, by what, and for what."""
    return f"{ctx.user} {ctx.client_id} {' '.join(sorted(ctx.scopes))}"


@server.tool(scopes=["orders:write"])
def ship() -> str:
    """Ship all orders."""
    return "Shipped"


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with serving() as found:
        yield found


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    """Know nothing of any issuer, nor of any token."""
    forget_issuers()
    forget_answers()
    yield
    forget_issuers()
    forget_answers()


@pytest.fixture
def anna(db: None) -> Any:
    return get_user_model().objects.create_user("anna")


@pytest.fixture
def site(settings: Any, issuer: Issuer, request: pytest.FixtureRequest) -> Any:
    """The settings of the site."""
    settings.ROOT_URLCONF = urlconf(
        endpoint("mcp", server=server), path("", include("django_mcp.well_known"))
    )
    settings.DJANGO_MCP = {
        "AUTH": "django_mcp.contrib.oauth.jwt_auth",
        "AUTHORIZATION_SERVERS": [issuer.url],
        "OAUTH_USER": UserFromClaim("sub"),
        "INTROSPECTION_CLIENT_ID": CLIENT,
        "INTROSPECTION_CLIENT_SECRET": SECRET,
        "WORKER_THREADS": 2,
    }
    return settings


def configure(settings: Any, **keys: Any) -> None:
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, **keys}


def shown(issuer: Issuer, token: str, *, url: str = RESOURCE, **more: Any) -> Any:
    """Return a request with a token to the resource at a URL."""
    request = RequestFactory().post("/mcp", headers={"Authorization": f"Bearer {token}"})
    request.mcp_resource = ProtectedResource(  # type: ignore[attr-defined]
        url, frozenset({url, "https://alias.example/mcp"}), f"{url}/metadata", (issuer.url,), **more
    )
    return request
