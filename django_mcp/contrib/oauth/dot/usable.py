"""Whether an application is in use, as a site's own model of applications may have it."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from oauth2_provider.models import AbstractApplication
from oauthlib.common import Request


def is_usable(application: Any, request: HttpRequest | None = None) -> bool:
    """Return what the application says of itself; without a request when one is long over."""
    if type(application).is_usable is AbstractApplication.is_usable:
        return True
    if request is None:
        return bool(application.is_usable(Request("/")))
    asked = Request(request.build_absolute_uri(), request.method, headers=dict(request.META))
    return bool(application.is_usable(asked))
