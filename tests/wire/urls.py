"""The URLs of the site that the acceptance tests talk to."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import path

from django_mcp import endpoint

from . import who
from .others import bare, guarded, paged
from .site import wire


def elsewhere(request: HttpRequest) -> HttpResponse:
    """Show a page of the site's own."""
    return HttpResponse("page")


PUBLIC = "django_mcp.auth.public"
urlpatterns = [
    path("mcp/elsewhere", elsewhere, name="elsewhere"),
    endpoint("mcp", server=wire, auth=PUBLIC),
    endpoint("members/mcp", server=wire, auth=who.by_header),
    endpoint("bare/mcp", server=bare, auth=PUBLIC),
    endpoint("guarded/mcp", server=guarded, auth=who.by_header),
    endpoint("paged/mcp", server=paged, auth=PUBLIC),
    endpoint("session/mcp", server=wire, auth="django_mcp.auth.django_user"),
    endpoint("unset/mcp", server=bare),
    endpoint("broken/mcp", server=wire, auth=who.broken),
    endpoint("curious/mcp", server=wire, auth=who.curious),
    endpoint("async/mcp", server=wire, auth=who.asynchronous),
    endpoint("object/mcp", server=wire, auth=who.AsynchronousObject()),
    endpoint("odd/mcp", server=wire, auth=who.odd),
    endpoint("accented/mcp", server=wire, auth=who.accented),
    endpoint("closed/mcp", server=wire, auth=who.closed),
    endpoint("slowed/mcp", server=wire, auth=who.slowed),
]
