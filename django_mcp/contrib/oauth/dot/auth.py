"""``dot_auth``: the value of ``AUTH`` that takes the tokens of the site's django-oauth-toolkit."""

from __future__ import annotations

import hashlib
import logging
from typing import Any

from django.db import router
from django.db.models import OuterRef, Subquery
from django.http import HttpRequest
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables
from oauth2_provider.settings import oauth2_settings

from ....auth import Principal, ProtectedResource, Refusal
from ....conf import Settings, get_settings
from ....protocol.headers import bearer_token
from ..tokens import CLOSED, INVALID, MAX_TOKEN_CHARACTERS, STRANGER, client_key, resource_of
from .models import AccessToken, RefreshToken, is_active
from .site import configured_issuer, has_scope_of_ours
from .standing import Standing, ended
from .step_up import note_challenge
from .usable import is_usable

logger = logging.getLogger("django_mcp.contrib.oauth")


@sensitive_variables("token")
def dot_auth(request: HttpRequest) -> Principal | Refusal:
    """Return the principal for whom django-oauth-toolkit has issued a token for this endpoint.

    A refusal never says why, but the log does. One query, and no write.
    """
    resource = resource_of(request)
    if resource is None:
        return CLOSED
    token = bearer_token(request.headers)
    if not token:
        return Refusal(resource.advice)
    row = _row(token) if len(token) <= MAX_TOKEN_CHARACTERS else None
    if row is None:
        logger.info("Refused a token: it is unknown.")
        return Refusal(INVALID)
    objection = _objection(row, request, resource)
    if objection:
        logger.info("Refused %s: %s.", row, objection)
        return Refusal(INVALID, recognised=True)
    if not is_active(row.user):
        logger.info("Refused %s: its user is inactive.", row)
        return STRANGER
    return Principal(
        row.user,
        client_key(row.application.client_id),
        frozenset(row.scope.split()),
        recheck=ended,
        credential=Standing(row.pk, row.family, resource.urls),
        on_insufficient_scope=note_challenge if get_settings().step_up_help else None,
    )


def _problems(settings: Settings, authorization_servers: tuple[str, ...]) -> list[str]:
    problems = []
    if not settings.base_url:
        problems.append(
            'Nobody knows for which site tokens are: DJANGO_MCP["BASE_URL"] does not say where '
            "this one is"
        )
    if configured_issuer() not in authorization_servers:
        problems.append(
            'DJANGO_MCP["AUTHORIZATION_SERVERS"] does not have the site\'s own issuer: add '
            f"{configured_issuer() or 'what BASE_URL says'!r}"
        )
    return problems


dot_auth.problems = _problems  # type: ignore[attr-defined]


@sensitive_variables("token", "checksum")
def _row(token: str) -> Any:
    """Return the token with its user, its application, and the family of its refresh token."""
    checksum = hashlib.sha256(token.encode()).hexdigest()
    family = RefreshToken.objects.filter(access_token=OuterRef("pk")).values("token_family")
    # A client sends a token at once that it has just got: a replica may not have it yet.
    rows = AccessToken.objects.using(router.db_for_write(AccessToken))
    rows = rows.select_related("user", "application").annotate(family=Subquery(family[:1]))
    return rows.filter(token_checksum=checksum).first()


def _objection(row: Any, request: HttpRequest, resource: ProtectedResource) -> str:
    """Return what speaks against a token, for the log, or nothing."""
    scopes = row.scope.split()
    if not row.expires or row.expires <= timezone.now():
        return "it has expired"
    if row.user is None or row.application is None:
        return "it is nobody's, or no application's"
    if oauth2_settings.DCR_REGISTRATION_SCOPE in scopes:
        return "it is for changing a client's registration"
    # 2026-07-28, basic/authorization, "Token Handling": only what was issued for this very
    # resource. DOT itself takes a token without any for all, and prefixes.
    if len(row.resource or ()) != 1 or row.resource[0] not in resource.urls:
        return "it is not for this resource"
    if not has_scope_of_ours(scopes):
        return "it has no scope of the endpoints'"
    return "" if is_usable(row.application, request) else "its application is out of use"
