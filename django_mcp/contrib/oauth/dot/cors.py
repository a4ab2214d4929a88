"""Pages of any origin may read what all the world may, and send what they have themselves.

Clients that run in browsers send ``MCP-Protocol-Version``, so that even the simplest GET has a
preflight. No cookies are let through: nothing here depends on any.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase

_PREFLIGHT_SECONDS = 600
_HEADERS = "Authorization, Content-Type, MCP-Protocol-Version"


def open_to_pages(view: Callable[..., Any], *methods: str) -> Callable[..., Any]:
    """Return the view, with what browsers need to know; ``methods`` are what it answers."""

    @wraps(view)
    def opened(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if request.method == "OPTIONS":
            response: HttpResponseBase = HttpResponse(status=204)
            del response.headers["Content-Type"]
            asked = request.headers.get("Access-Control-Request-Headers", _HEADERS)
            response.headers["Access-Control-Allow-Methods"] = ", ".join((*methods, "OPTIONS"))
            response.headers["Access-Control-Allow-Headers"] = asked
            response.headers["Access-Control-Max-Age"] = str(_PREFLIGHT_SECONDS)
        else:
            response = view(request, *args, **kwargs)
        response.headers["Access-Control-Allow-Origin"] = "*"
        # DOT names an origin where it knows the client's, and lets cookies through.
        if response.has_header("Access-Control-Allow-Credentials"):
            del response.headers["Access-Control-Allow-Credentials"]
        return response

    return opened
