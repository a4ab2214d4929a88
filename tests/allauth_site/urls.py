from __future__ import annotations

import asyncio

from django.urls import include, path

from django_mcp import Context, MCPServer, endpoint

shop = MCPServer("shop", version="1", scopes=["orders:read"])
stock = MCPServer("stock", version="1")


@shop.tool
def whoami(ctx: Context) -> str:
    """Say who is calling, by what, and for what."""
    return f"{ctx.user} {ctx.client_id} {' '.join(sorted(ctx.scopes))}"


@shop.tool(scopes=["orders:write"])
def ship() -> str:
    """Ship all orders."""
    return "Shipped"


@shop.tool
async def wait(ctx: Context) -> str:
    """Wait until somebody ends it."""
    ctx.progress(1)
    await asyncio.sleep(60)
    return "Nobody has"


urlpatterns = [
    path("", include("django_mcp.contrib.oauth.allauth.urls")),
    path("", include("django_mcp.well_known")),
    path("accounts/", include("allauth.urls")),
    endpoint("mcp", server=shop),
    endpoint("stock", server=stock),
]
