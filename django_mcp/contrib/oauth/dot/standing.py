"""Who may stay: those whose tokens are still good for what they have open.

A refresh replaces both tokens, and the row of the one by which somebody came in is gone then. What
stays is the *family* of the refresh tokens, which begins with a login. So a login stands while its
access token has not expired, or a refresh token of its family is good. One that has lost its access
token is not: that is what remains where somebody has deleted the access token, and DOT does not
take it either.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db import router
from django.utils import timezone
from oauth2_provider.models import refresh_token_expire_timedelta

from ....auth import Principal
from .models import AccessToken, RefreshToken
from .usable import is_usable

BATCH: Final = 500
"""Tokens that one query asks for."""


@dataclass(frozen=True, slots=True)
class Standing:
    """By which token somebody came in."""

    access_token: int
    family: uuid.UUID | None
    """Of its refresh token; tokens of machines have none."""
    resources: frozenset[str]


def ended(principals: Sequence[Principal]) -> list[Principal]:
    """Return those whose logins stand no longer."""
    standings: list[Standing] = [each.credential for each in principals]
    tokens = _living_tokens({each.access_token for each in standings})
    rest = [each for each in standings if not _is_for(tokens.get(each.access_token), each)]
    families = _living_families({each.family for each in rest if each.family is not None})
    gone = {each for each in rest if not _is_for(families.get(each.family), each)}
    return [each for each in principals if each.credential in gone]


def _is_for(resource: list[str] | None, standing: Standing) -> bool:
    return bool(resource) and standing.resources.issuperset(resource or ())


def _living_tokens(keys: set[int]) -> dict[Any, list[str]]:
    """Return for what access tokens are that have not expired, by their keys."""
    rows = AccessToken.objects.using(router.db_for_write(AccessToken))
    rows = rows.filter(expires__gt=timezone.now()).select_related("application")
    return {
        each.pk: each.resource
        for batch in _batches(keys)
        for each in rows.filter(pk__in=batch)
        if each.application is not None and is_usable(each.application)
    }


def _living_families(families: set[uuid.UUID]) -> dict[Any, list[str]]:
    """Return for what the refresh tokens are that a login may still use, by their families."""
    rows = RefreshToken.objects.using(router.db_for_write(RefreshToken))
    rows = rows.filter(revoked__isnull=True, access_token__isnull=False)
    lifetime = refresh_token_expire_timedelta()
    if lifetime:
        rows = rows.filter(access_token__expires__gt=timezone.now() - lifetime)
    return {
        each.token_family: each.resource
        for batch in _batches(families)
        for each in rows.filter(token_family__in=batch).select_related("application")
        if is_usable(each.application)
    }


def _batches(keys: Iterable[Any]) -> Iterator[list[Any]]:
    listed = list(keys)
    for first in range(0, len(listed), BATCH):
        yield listed[first : first + BATCH]
