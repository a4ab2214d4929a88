"""Who calls: whoever a header names, by a number that is somebody's at each tenant."""

from __future__ import annotations

from django.contrib.auth import get_user_model
from django.http import HttpRequest

from django_mcp.auth import Principal, Refusal, without_oauth


@without_oauth
def by_header(request: HttpRequest) -> Principal | Refusal:
    if request.headers.get("X-Anonymous"):
        from django.contrib.auth.models import AnonymousUser  # noqa: PLC0415

        return Principal(AnonymousUser())
    user = get_user_model().objects.filter(pk=request.headers.get("X-User", "0")).first()
    return Refusal() if user is None else Principal(user, "client")
