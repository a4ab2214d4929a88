"""What somebody has consented to, and which tokens came of it.

allauth keeps codes in Django's cache, and gives a token whatever resource is asked for with its
code where none was asked for with the consent, or one whose path only begins alike.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any, Final

from allauth.core.internal.httpkit import extract_basic_auth
from allauth.idp.oidc.internal.oauthlib import authorization_codes
from allauth.idp.oidc.models import Client, Token
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse
from oauthlib.oauth2.rfc6749.errors import OAuth2Error

REMEMBERED_SECONDS: Final = 600
"""For so long a code that has been used ends what was issued for it, if it is shown again."""

INVALID_GRANT: Final = {
    "error": "invalid_grant",
    "error_description": "The code has been used already. Log in again.",
}


def invalid_target(description: str) -> OAuth2Error:
    """Return the error for a resource for which no token is issued (RFC 8707, section 2)."""
    error = OAuth2Error(description)
    error.error = "invalid_target"
    return error


def is_granted(request: HttpRequest, resource: str) -> bool:
    """Return whether a request of a client for a token may name a resource, letter by letter."""
    if request.path != reverse("idp:oidc:token"):
        # Nobody who types the code of a device is shown for which endpoint it is.
        return False
    match request.POST.get("grant_type"):
        case Client.GrantType.AUTHORIZATION_CODE:
            code = authorization_codes.lookup(_client_of(request), request.POST.get("code", ""))
            return resource in ((code or {}).get("resources") or ())
        case Client.GrantType.REFRESH_TOKEN:
            shown = request.POST.get("refresh_token", "")
            token = Token.objects.lookup(Token.Type.REFRESH_TOKEN, shown)
            return token is not None and resource in token.get_resources()
        case Client.GrantType.CLIENT_CREDENTIALS:
            return True
    return False


def exchange(request: HttpRequest, issue: Callable[[HttpRequest], HttpResponse]) -> HttpResponse:
    """Have a token issued for a code once, whoever comes with it at the same time.

    Whoever comes later ends what was issued: the code has been stolen (RFC 6749, section 4.1.2).
    What has been refreshed since is out of reach.
    """
    code = request.POST.get("code", "")
    if request.POST.get("grant_type") != Client.GrantType.AUTHORIZATION_CODE or not code:
        return issue(request)
    digest = hashlib.sha256(f"{_client_of(request)}\n{code}".encode()).hexdigest()
    key = f"django_mcp.allauth.code.{digest}"
    if not cache.add(key, [], REMEMBERED_SECONDS):
        Token.objects.filter(hash__in=cache.get(key) or []).delete()
        return JsonResponse(INVALID_GRANT, status=400)
    hashes: Sequence[str] = ()
    try:
        response = issue(request)
        hashes = _issued(response)
    finally:
        if hashes:
            cache.set(key, hashes, REMEMBERED_SECONDS)
        else:
            cache.delete(key)
    return response


def _client_of(request: HttpRequest) -> str:
    shown, _ = extract_basic_auth({"Authorization": request.headers.get("Authorization", "")})
    return shown or request.POST.get("client_id", "")


def _issued(response: HttpResponse) -> list[str]:
    """Return the hashes of the tokens that a response has."""
    if response.status_code != 200:
        return []
    found: dict[str, Any] = json.loads(response.content)
    names = ("access_token", "refresh_token")
    tokens = [Token() for name in names if found.get(name)]
    for token, shown in zip(tokens, filter(None, map(found.get, names)), strict=True):
        token.set_value(shown)
    return [token.hash for token in tokens]
