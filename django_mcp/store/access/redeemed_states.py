"""States that count once only: who comes first with one, and when it may be forgotten."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Final

from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from ...clock import DatabaseNow
from ...conf import get_settings
from ...models import RedeemedState
from ..database import alias, reporting_outages, with_retries

CLOCKS_DIFFER_SECONDS: Final = 300
"""By so much, at most: the age of a state is measured by the clocks of hosts."""


def redeem(state: uuid.UUID) -> bool:
    """Note that a state has been used; return whether it had not been before."""
    call = uuid.uuid4()
    with reporting_outages():
        return with_retries(lambda: _redeem(state, call))


def expired_states() -> QuerySet[RedeemedState]:
    """Return those that nobody would take any more anyway."""
    age = timedelta(seconds=get_settings().state_max_age_seconds + CLOCKS_DIFFER_SECONDS)
    return _rows().filter(redeemed__lt=DatabaseNow() - age)


def _redeem(state: uuid.UUID, call: uuid.UUID) -> bool:
    try:
        with transaction.atomic(using=alias()):
            _rows().create(pk=state, call=call)
    except IntegrityError:
        # Its own, if the answer to the first attempt was lost on the way.
        return _rows().filter(pk=state, call=call).exists()
    return True


def _rows() -> QuerySet[RedeemedState]:
    return RedeemedState.objects.using(alias())
