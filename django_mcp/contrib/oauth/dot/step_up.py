"""Help for clients that do not ask for scopes when they are told to.

A client whose token lacks a scope is answered with a challenge that names it, and should ask its
user for that. Those that are built on the first generation of the TypeScript SDK refresh their
token instead, get the same scopes again, and give up. So the first refresh within seconds after a
challenge is not done: they take that for a reason to ask their user, and use the challenge's scope.

The challenge and the refresh reach different processes, and a cache may be each one's own: what
was said is a row, one for each user and client. It is written at the challenge, and gone with the
refresh, or once the client has asked its user.
"""

from __future__ import annotations

import hashlib
import logging
from datetime import timedelta
from typing import Any, Final

from django.db import DatabaseError, router, transaction

from ....auth import Principal
from ....clock import DatabaseNow
from ....partitions import here
from ..models import ScopeChallenge
from ..tokens import client_key

logger = logging.getLogger("django_mcp.contrib.oauth")

WITHIN: Final = timedelta(seconds=10)
"""So soon after a challenge a refresh is taken for an answer to it."""


def note_challenge(principal: Principal) -> None:
    """Keep in mind that a user's client was challenged. May wait for the database."""
    digest = _digest(principal.user_id, principal.client_id)
    try:
        with transaction.atomic(using=router.db_for_write(ScopeChallenge)):
            if not _rows().filter(digest=digest).update(moment=DatabaseNow()):
                row = ScopeChallenge(digest=digest, moment=DatabaseNow())
                _rows().bulk_create([row], ignore_conflicts=True)
    except DatabaseError:
        logger.warning("That a client was asked for scopes could not be kept.", exc_info=True)


def was_challenged(user: Any, client_id: str) -> bool:
    """Return whether a user's client was challenged just now; true only once for a challenge."""
    return bool(_of(user, client_id).filter(moment__gt=DatabaseNow() - WITHIN).delete()[0])


def forget_challenge(user: Any, client_id: str) -> None:
    """Let the next refresh be done: the client has asked its user."""
    _of(user, client_id).delete()


def _of(user: Any, client_id: str) -> Any:
    return _rows().filter(digest=_digest(str(user.pk), client_key(client_id)))


def _rows() -> Any:
    return ScopeChallenge._default_manager.using(router.db_for_write(ScopeChallenge))


def _digest(user_id: str, client: str) -> str:
    return hashlib.sha256(f"{here()}\n{user_id}\n{client}".encode()).hexdigest()
