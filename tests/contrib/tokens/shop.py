"""A site with two servers whose tools need scopes, and with the page for tokens of one's own."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import include, path

from django_mcp import Context, MCPServer, endpoint
from tests.support.sites import urlconf

shop = MCPServer("shop")
staff = MCPServer("staff", scopes=["back-office"])
open_to_all = MCPServer("open", auth="django_mcp.auth.public")


@shop.tool(read_only=True)
def whoami(ctx: Context) -> str:
    """Say who is calling."""
    return str(ctx.user.get_username())


@shop.tool(read_only=True, scopes=["orders:read"])
def count_orders() -> int:
    """Count the orders."""
    return 3


@shop.tool(scopes=["orders:write"])
def ship_order() -> str:
    """Ship an order."""
    return "Shipped"


@shop.tool(scopes=["orders:write", "stock:write"])
def restock() -> str:
    """Take an order back."""
    return "Back"


@shop.tool
def ring() -> str:
    """Ring the bell, which needs no scope."""
    return "Ding"


@staff.tool(read_only=True)
def figures() -> int:
    """Give figures."""
    return 7


def login(request: HttpRequest) -> HttpResponse:
    """Stand for the site's own page."""
    return HttpResponse("Who are you?")


URLS = (
    endpoint("mcp", server=shop),
    endpoint("staff", server=staff),
    endpoint("open", server=open_to_all),
    path("accounts/login/", login, name="login"),
    path("admin/", admin.site.urls),
)
PAGE = path("tokens/", include("django_mcp.contrib.tokens.urls"))
SETTINGS: dict[str, Any] = {
    "AUTH": "django_mcp.contrib.tokens.auth.token_auth",
    "SCOPES": {"orders:write": "See and ship orders", "orders:read": "See orders"},
    "SCOPE_HIERARCHY": {"orders:write": ["orders:read"]},
}
SCOPES = ["orders:write", "orders:read", "back-office", "stock:write"]
"""Those of the settings first, as they stand there."""


def open_shop(settings: Any, *, page: bool = True, **keys: Any) -> None:
    """Let the settings be those of this site."""
    settings.ROOT_URLCONF = urlconf(*URLS, *([PAGE] if page else []))
    settings.DJANGO_MCP = {**SETTINGS, **keys}
