"""``allauth_auth``: the value of ``AUTH`` that looks tokens up in the table of django-allauth."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, TypeVar

from django.apps import apps
from django.contrib.auth import get_user_model
from django.db import router
from django.http import HttpRequest
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from ....auth import Principal, ProtectedResource, Refusal
from ....conf import Settings, get_settings
from ....protocol.headers import bearer_token
from ..tokens import CLOSED, INVALID, MAX_TOKEN_CHARACTERS, STRANGER, Objection, resource_of

logger = logging.getLogger("django_mcp.contrib.oauth")

T = TypeVar("T")

APP: Final = "django_mcp.contrib.oauth.allauth"
PROVIDER: Final = "allauth.idp.oidc"
BATCH: Final = 500
"""Tokens that one query asks for."""


@dataclass(frozen=True, slots=True)
class _Shown:
    """The token that somebody has come in with."""

    token: int
    client: str
    user: Any
    """The primary key of whom allauth has issued it to; ``None`` for a machine."""
    ends: datetime | None
    resource: ProtectedResource = field(repr=False)


@sensitive_variables("shown")
def allauth_auth(request: HttpRequest) -> Principal | Refusal:
    """Return the principal to whose client allauth has issued an access token for this endpoint.

    The token must name the endpoint's URL as its only resource. A refusal never says why, but the
    log does. Nothing is written.
    """
    resource = resource_of(request)
    if resource is None:
        return CLOSED
    shown = bearer_token(request.headers)
    if not shown:
        return Refusal(resource.advice)
    token = _find(shown) if len(shown) <= MAX_TOKEN_CHARACTERS else None
    if token is None:
        logger.info("Refused a token: allauth has issued no such access token.")
        return Refusal(INVALID)
    try:
        _check(token, resource)
    except Objection as objection:
        logger.info("Refused the token %s: %s.", token.pk, objection)
        return Refusal(INVALID, recognised=True)
    user = token.user if token.user_id is not None else _service_user(token.client_id)
    if user is None or not getattr(user, "is_active", True):
        logger.info("Refused the token %s: it has no active user.", token.pk)
        return STRANGER
    known = _Shown(token.pk, token.client_id, token.user_id, token.expires_at, resource)
    scopes = frozenset(token.get_scopes())
    return Principal(user, f"oauth:{token.client_id}", scopes, recheck=_ended, credential=known)


def _problems(settings: Settings, authorization_servers: tuple[str, ...]) -> list[str]:
    problems = []
    if not authorization_servers:
        problems.append(
            'Nobody issues tokens for it: name this site in DJANGO_MCP["AUTHORIZATION_SERVERS"]'
        )
    problems += [
        f'Add "{each}" to INSTALLED_APPS' for each in (PROVIDER, APP) if not apps.is_installed(each)
    ]
    return problems


allauth_auth.problems = _problems  # type: ignore[attr-defined]


@sensitive_variables("shown")
def _find(shown: str) -> Any:
    # Tokens that register clients, and that refresh, are rows of other types.
    tokens = _tokens().select_related("user", "client")
    return tokens.by_value(shown).filter(type=_types().ACCESS_TOKEN).first()


def _check(token: Any, resource: ProtectedResource) -> None:
    """Check that a token is for the resource, and for now; raises :class:`Objection`."""
    if not _is_for(token.get_resources(), resource):
        raise Objection("it is not for this resource, or not for it alone")
    if token.expires_at is not None and token.expires_at <= timezone.now():
        raise Objection("it has expired")
    if token.client is None or not _is_usable(token.client):
        raise Objection("its client may not be used")


def _is_for(resources: Sequence[str], resource: ProtectedResource) -> bool:
    # 2026-07-28, basic/authorization, "Token Handling". With several, each of them could use the
    # token at the others.
    return bool(resources) and all(each in resource.urls for each in resources)


def _is_usable(client: Any) -> bool:
    from allauth.idp.oidc import app_settings  # noqa: PLC0415 - a site without allauth has none

    public = type(client).Type.PUBLIC
    return client.type != public or "none" in app_settings.AUTH_METHODS


def _service_user(client: str) -> Any:
    """Return the user whom the site names for a machine: its tokens are nobody's."""
    name = get_settings().oauth_service_users.get(client)
    if name is None:
        return None
    model: Any = get_user_model()
    return model._default_manager.filter(**{model.USERNAME_FIELD: name}).first()


def _ended(principals: Sequence[Principal]) -> Iterator[Principal]:
    """Yield those whose tokens are gone, or have expired and have nothing that renews them."""
    now = timezone.now()
    expired: list[Principal] = []
    lasting: dict[int, list[Principal]] = defaultdict(list)
    for each in principals:
        shown: _Shown = each.credential
        if shown.ends is None or now < shown.ends:
            lasting[shown.token].append(each)
        else:
            expired.append(each)
    for keys in _batches(lasting):
        kept = set(_written().filter(pk__in=keys).values_list("pk", flat=True))
        for key in keys:
            if key not in kept:
                yield from lasting[key]
    yield from _not_renewed(expired)


def _not_renewed(principals: Sequence[Principal]) -> Iterator[Principal]:
    """Yield those whose clients have no other token for the same resource.

    An access token lasts for an hour and a stream for longer: as long as its client can get the
    next, nobody has taken the access back.
    """
    renewed: dict[tuple[str, Any], list[Sequence[str]]] = defaultdict(list)
    types = (_types().REFRESH_TOKEN, _types().ACCESS_TOKEN)
    clients = {each.credential.client for each in principals}
    for some in _batches(clients):
        tokens = _written().valid().filter(client__in=some, type__in=types)
        for each in _of_users(tokens, principals).only("client", "user", "data").iterator():
            renewed[each.client_id, each.user_id].append(each.get_resources())
    for each in principals:
        shown: _Shown = each.credential
        found = renewed.get((shown.client, shown.user), ())
        if not any(_is_for(resources, shown.resource) for resources in found):
            yield each


def _of_users(tokens: Any, principals: Iterable[Principal]) -> Any:
    """Return the tokens of the users, as far as there are few enough to name them."""
    users = {each.credential.user for each in principals}
    return tokens if None in users or len(users) > BATCH else tokens.filter(user__in=users)


def _batches(items: Collection[T]) -> Iterator[list[T]]:
    listed = list(items)
    for first in range(0, len(listed), BATCH):
        yield listed[first : first + BATCH]


def _tokens() -> Any:
    from allauth.idp.oidc.models import Token  # noqa: PLC0415 - a site without allauth has none

    return Token.objects.all()


def _types() -> Any:
    return _tokens().model.Type


def _written() -> Any:
    tokens = _tokens()
    return tokens.using(router.db_for_write(tokens.model))
