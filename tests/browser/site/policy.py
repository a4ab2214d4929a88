"""What pages of the package have to do with: a strict policy for their content."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

POLICY = "default-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'"
CLIENTS = " https: http://localhost:* http://127.0.0.1:*"
"""Where people are sent from the page on which they agree: browsers hold its form to that."""


def strict_pages(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[..., object]:
    """Say on these pages that nothing inline counts."""

    def respond(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        if request.path.startswith(("/tokens/", "/login/")):
            response["Content-Security-Policy"] = POLICY
        elif request.path.startswith("/o/"):
            response["Content-Security-Policy"] = POLICY + CLIENTS
        return response

    return respond
