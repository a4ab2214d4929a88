"""The URLs of the site that the acceptance tests talk to."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import path

from django_mcp import endpoint

from . import auth_callables
from .more_servers import bare, guarded, paged
from .site import wire


def elsewhere(request: HttpRequest) -> HttpResponse:
    """Show a page of the site's own."""
    return HttpResponse("page")


PUBLIC = "django_mcp.auth.public"
urlpatterns = [
    path("mcp/elsewhere", elsewhere, name="elsewhere"),
    endpoint("mcp", server=wire, auth=PUBLIC),
    endpoint("members/mcp", server=wire, auth=auth_callables.by_header),
    endpoint("bare/mcp", server=bare, auth=PUBLIC),
    endpoint("guarded/mcp", server=guarded, auth=auth_callables.by_header),
    endpoint("paged/mcp", server=paged, auth=PUBLIC),
    endpoint("session/mcp", server=wire, auth="django_mcp.auth.django_user"),
    endpoint("unset/mcp", server=bare),
    endpoint("broken/mcp", server=wire, auth=auth_callables.broken),
    endpoint("curious/mcp", server=wire, auth=auth_callables.curious),
    endpoint("async/mcp", server=wire, auth=auth_callables.asynchronous),
    endpoint("object/mcp", server=wire, auth=auth_callables.AsynchronousObject()),
    endpoint("odd/mcp", server=wire, auth=auth_callables.odd),
    endpoint("accented/mcp", server=wire, auth=auth_callables.accented),
    endpoint("closed/mcp", server=wire, auth=auth_callables.closed),
    endpoint("slowed/mcp", server=wire, auth=auth_callables.slowed),
]
