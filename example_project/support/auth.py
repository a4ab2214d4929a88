"""Who calls: the demo agent on the developer's own machine, and the owner of a token elsewhere."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING

from django.conf import settings
from django.contrib.auth.models import User

from django_mcp.auth import Principal, Refusal, any_of, without_oauth
from django_mcp.contrib.oauth import dot_auth
from django_mcp.contrib.tokens.auth import token_auth

if TYPE_CHECKING:
    from django.http import HttpRequest

DEMO_AGENT = "agent"
# Any of these means that somebody in front of us passes on the request of somebody else.
FORWARDED = ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP", "Via")


login_auth = any_of(dot_auth, token_auth)
"""For clients that log in by OAuth, on this machine as well."""


@without_oauth
def demo_auth(request: HttpRequest) -> Principal | Refusal:
    """Let a client without a token act as the demo agent, under DEBUG and on this machine only.

    A client that shows credentials is held to them: a bad token is refused and not replaced by
    the demo agent.
    """
    if settings.DEBUG and _is_local(request) and "Authorization" not in request.headers:
        agent = User.objects.filter(username=DEMO_AGENT, is_active=True).first()
        if agent is not None:
            return Principal(user=agent, client_id="demo", scopes=None)
    return token_auth(request)


def _is_local(request: HttpRequest) -> bool:
    """Whether the connection itself comes from this machine, whatever its headers claim."""
    if any(name in request.headers for name in FORWARDED):
        return False
    try:
        address = ip_address(request.META.get("REMOTE_ADDR", ""))
    except ValueError:  # none at all, as on a Unix socket, which a proxy may be using
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    return address.is_loopback
