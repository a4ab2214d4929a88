"""What would be an error of the site's at django-oauth-toolkit's views is an answer here.

oauthlib raises where a query is none, a database where a text has what it cannot store, and DOT
where a client's entry goes just while it is used. And the database may be busy, or away.
"""

from __future__ import annotations

import re
from typing import Any, Final

from django.db import IntegrityError, InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponseBase, JsonResponse, QueryDict

from ....store.database import unavailable
from .models import Application

_NO_ENCODING: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")


def _objection_to(request: HttpRequest, *given: QueryDict) -> str:
    """Return what speaks against the parameters of a request, or nothing."""
    if _NO_ENCODING.search(request.META.get("QUERY_STRING", "")):
        return "The query of the URL has a % that does not belong there."
    # PostgreSQL stores no such text, nor compares it.
    texts = (
        text
        for parameters in given
        for name, values in parameters.lists()
        for text in (name, *map(str, values))
    )
    return "A parameter has the character NUL." if any("\0" in text for text in texts) else ""


class Guarded:
    """A view that always has an answer of its own."""

    reads_form = True
    """Whether it takes parameters from the body; else that is left as it is."""

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Answer, whatever comes and whatever is away."""
        given = (request.GET, request.POST) if self.reads_form else (request.GET,)
        objection = _objection_to(request, *given)
        if objection:
            return self.refuse(400, "invalid_request", objection)
        try:
            response: HttpResponseBase = super().dispatch(request, *args, **kwargs)  # type: ignore[misc]
        except (OperationalError, InterfaceError) as error:
            away = unavailable(error)
            response = self.refuse(503, "temporarily_unavailable", str(away))
            response.headers["Retry-After"] = str(away.retry_after)
        except (Application.DoesNotExist, IntegrityError):
            # Whatever was written refers to what has just gone: the client, or the user.
            response = self.refuse(400, "invalid_client", "The client is known no longer.")
        return response

    def refuse(self, status: int, error: str, description: str) -> HttpResponseBase:
        """Return an answer with an error of OAuth (RFC 6749, section 5.2)."""
        body = {"error": error, "error_description": description}
        return JsonResponse(body, status=status, headers={"Cache-Control": "no-store"})
