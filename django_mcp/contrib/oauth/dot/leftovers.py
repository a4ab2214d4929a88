"""What ``manage.py mcp prune`` removes: what nobody will use any more."""

from __future__ import annotations

import datetime as dt
from functools import partial
from typing import Any, Final

from django.db import router
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from ....clock import DatabaseNow
from ....store.cleanup import CleanupRule, CleanupStep
from ..models import ScopeChallenge
from .models import AccessToken, Application, Grant, RefreshToken

UNUSED: Final = dt.timedelta(days=7)
"""After so long a client is forgotten that has registered itself, and at which nobody logged in."""
OLD: Final = dt.timedelta(days=1)
"""When nobody asks any more whether a client was challenged."""


def rules() -> list[CleanupRule]:
    """Return what may go, and how."""
    return [
        CleanupRule(name, due, partial(_forget, due))
        for name, due in (
            ("registered clients without a login", unused_applications),
            ("challenges for scopes", old_challenges),
        )
    ]


def unused_applications(age: dt.timedelta = UNUSED) -> Any:
    """Return those that have been known for so long, and have no token and no code."""
    rows = Application.objects.using(router.db_for_write(Application))
    rows = rows.filter(created__lte=timezone.now() - age).exclude(registration_source="manual")
    used = Q()
    for model in (AccessToken, RefreshToken, Grant):
        used |= Q(Exists(model.objects.filter(application=OuterRef("pk"))))
    return rows.exclude(used)


def old_challenges() -> Any:
    """Return what was said so long ago that nothing follows from it."""
    rows = ScopeChallenge._default_manager.using(router.db_for_write(ScopeChallenge))
    return rows.filter(moment__lte=DatabaseNow() - OLD)


def _forget(due: Any, limit: int) -> CleanupStep:
    rows = due()
    keys = list(rows.values_list("pk", flat=True)[:limit])
    # Again under the condition: somebody may be logging in.
    deleted = rows.filter(pk__in=keys).delete()[1] if keys else {}
    return CleanupStep(deleted.get(rows.model._meta.label, 0), more=len(keys) == limit)
