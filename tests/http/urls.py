"""The URLconf of a site with pages, an admin and several endpoints."""

from __future__ import annotations

from functools import wraps
from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import include, path
from django.views.decorators.csrf import csrf_exempt

from django_mcp import MCPServer, MCPView, endpoint
from django_mcp.auth import django_user

staff = MCPServer("staff", version="1", auth=django_user)


@staff.tool
def secret() -> str:
    """Say something to the staff."""
    return "for the staff"


@csrf_exempt
def page(request: HttpRequest, **kwargs: Any) -> HttpResponse:
    return HttpResponse("a page")


def locked(view: Any) -> Any:
    """A decorator of the site's own, which nobody may step around."""

    @wraps(view)
    def refuse(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return HttpResponse("locked", status=423)

    return refuse


urlpatterns = [
    path("admin/", admin.site.urls),
    path("page", page),
    path("locked/mcp", locked(MCPView.as_view())),
    path("nested/", include([endpoint("deep/mcp")])),
    endpoint("staff/mcp", server=staff),
    path("", include("django_mcp.urls")),
]
