"""What speaks against a token that an authorization server vouches for, and whom it lets in."""

from __future__ import annotations

import hashlib
import logging
import math
import time
from collections.abc import Iterable, Mapping
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.http import HttpRequest
from django.utils.module_loading import import_string

from ...auth import Principal, ProtectedResource, Refusal
from ...conf import Settings, get_settings
from .users import UserFromClaim

logger = logging.getLogger("django_mcp.contrib.oauth")

LEEWAY_SECONDS: Final = 30
"""By so much clocks may differ."""
MAX_TOKEN_CHARACTERS: Final = 16 * 1024
MAX_CLIENT_CHARACTERS: Final = 200
"""Of a client's id; a longer one is told by its digest."""

INVALID: Final = (
    "The token has ended, or is not for this endpoint. Log in again, which most clients do by "
    "themselves."
)
CLOSED: Final = Refusal(
    "This endpoint is closed: nobody has said which authorization server issues tokens for it.",
    status=403,
)
STRANGER: Final = Refusal(
    "You are logged in, but have no account here that is open. Ask whoever runs this site for one.",
    status=403,
    recognised=True,
)


class Objection(Exception):
    """Why a token is refused: for the log, and not for whoever has sent it."""


def resource_of(request: HttpRequest) -> ProtectedResource | None:
    """Return the resource that an endpoint is; log an error where it is none."""
    resource: ProtectedResource | None = getattr(request, "mcp_resource", None)
    if resource is None:
        logger.error(
            'Refused: DJANGO_MCP["AUTHORIZATION_SERVERS"] names none for this endpoint, or '
            "ALLOWED_HOSTS admits any name and BASE_URL is not set"
        )
    return resource


def check_claims(
    claims: Mapping[str, Any], resource: ProtectedResource, *, needs_end: bool = True
) -> None:
    """Check that a token is for the resource, and for now; raises :class:`Objection`.

    RFC 9068, section 4, and RFC 7662, section 2.2. 2026-07-28, basic/authorization, "Token
    Handling": only tokens that were issued for this very resource.
    """
    named = audiences_of(claims)
    if resource.urls.isdisjoint(named) and resource.other_names.isdisjoint(named):
        # That it is true is not known yet; but whoever has set this up needs to know it.
        raise Objection(f"it is for {ascii(claims.get('aud'))[:200]}, and not for {resource.url}")
    now = time.time()
    has_end = needs_end or "exp" in claims
    if has_end and not _number(claims, "exp") > now - LEEWAY_SECONDS:
        raise Objection("it has expired")
    for name in ("nbf", "iat"):
        if name in claims and not _number(claims, name) <= now + LEEWAY_SECONDS:
            raise Objection("it is not valid yet")
    if claims.get("cnf") is not None:
        raise Objection("it is bound to a key of the client's, which is not looked at here")


def audiences_of(claims: Mapping[str, Any]) -> list[str]:
    """Return what a token says it is for (RFC 7519, section 4.1.3)."""
    audience = claims.get("aud")
    named = audience if isinstance(audience, list) else [audience]
    return [each for each in named if isinstance(each, str)]


def _number(claims: Mapping[str, Any], name: str) -> float:
    value = claims.get(name)
    if type(value) is int or (type(value) is float and math.isfinite(value)):
        return value
    raise Objection(f"its {name} is no time")


def scopes_of(claims: Mapping[str, Any], names: Iterable[str]) -> frozenset[str]:
    """Return the scopes of a token, of the claims with these names: texts with spaces, or lists."""
    found: list[Any] = []
    for name in names:
        value = claims.get(name)
        found += value.split() if isinstance(value, str) else _listed(value)
    return frozenset(each for each in found if isinstance(each, str) and each)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def client_of(claims: Mapping[str, Any]) -> str:
    """Return the id of the client that a token was issued to; empty where it does not say."""
    for name in ("client_id", "azp", "appid", "cid"):
        value = claims.get(name)
        if isinstance(value, str) and value and value.isprintable():  # or no database keeps it
            return value
    return ""


def principal_of(claims: Mapping[str, Any], **more: Any) -> Principal | Refusal:
    """Return who is calling with a token that holds, or a refusal where there is no user."""
    settings = get_settings()
    client = client_of(claims)
    user = _user_of(claims, client, settings)
    if user is None or not getattr(user, "is_active", True):
        logger.info("Refused a token: its subject is no active user.")
        return STRANGER
    return Principal(user, client_key(client), scopes_of(claims, settings.scope_claims), **more)


def client_key(client: str) -> str:
    """Return by what a principal names a client with this id."""
    if len(client) > MAX_CLIENT_CHARACTERS:
        client = hashlib.sha256(client.encode()).hexdigest()
    return f"oauth:{client}"


def _user_of(claims: Mapping[str, Any], client: str, settings: Settings) -> Any:
    service = _service_of(claims, client, settings) if client else None
    if service is not None:
        model: Any = get_user_model()
        return model._default_manager.filter(**{model.USERNAME_FIELD: service}).first()
    hook = settings.oauth_user
    if hook is None:
        logger.error('Refused: DJANGO_MCP["OAUTH_USER"] does not say whose tokens are')
        return None
    find = import_string(hook) if isinstance(hook, str) else hook
    return find(claims)


def _service_of(claims: Mapping[str, Any], client: str, settings: Settings) -> str | None:
    """Return the name of the user that a machine is, which may be named with its issuer in front.

    Another issuer could have a client of the same name.
    """
    named = settings.oauth_service_users
    service = named.get(f"{claims.get('iss')} {client}")
    return named.get(client) if service is None and " " not in client else service


def problems_of(settings: Settings, authorization_servers: tuple[str, ...]) -> list[str]:
    """Return what is missing for tokens of others, one sentence each."""
    problems = []
    if not authorization_servers:
        problems.append('Nobody issues tokens for it: DJANGO_MCP["AUTHORIZATION_SERVERS"] is empty')
    if settings.oauth_user is None and not settings.oauth_service_users:
        problems.append('Nobody is let in: DJANGO_MCP["OAUTH_USER"] does not say whose tokens are')
    find: Any = settings.oauth_user
    if isinstance(find, str):
        try:
            find = import_string(find)
        except ImportError as error:
            problems.append(f'DJANGO_MCP["OAUTH_USER"] cannot be imported: {error}')
    machines = settings.oauth_service_users
    if len(authorization_servers) > 1 and not all(" " in each for each in machines):
        problems.append(
            "Several authorization servers name clients, and each could have one that "
            'DJANGO_MCP["OAUTH_SERVICE_USERS"] names: write its issuer in front, as in '
            '"https://id.example.com nightly-report"'
        )
    if len(authorization_servers) > 1 and isinstance(find, UserFromClaim) and not find.issuer:
        problems.append(
            "Several authorization servers name users, and each could name those of the others: "
            "give UserFromClaim the issuer whose claims count, or write a function that looks at "
            'the claim "iss"'
        )
    return problems
