"""Who has requests and streams open in this process, and whether they may still have them."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from django.contrib.auth import get_user_model
from django.core.exceptions import FieldDoesNotExist
from django.db import DatabaseError, router

from ..server.ports import Principal

logger = logging.getLogger("django_mcp.store")


class Audience:
    """Everybody with something open here. One query asks after all users, however many."""

    def __init__(self) -> None:
        self._present: dict[object, tuple[Principal, Callable[[], object]]] = {}

    def enter(self, key: object, principal: Principal, dismiss: Callable[[], object]) -> None:
        """Call ``dismiss`` once ``principal`` may stay no longer. From any thread."""
        if principal.user_id or principal.recheck is not None:
            self._present[key] = (principal, dismiss)

    def leave(self, key: object) -> None:
        """Forget what was opened. From any thread."""
        self._present.pop(key, None)

    def look(self) -> None:
        """Dismiss those who may stay no longer."""
        present = list(self._present.items())
        if not present:
            return
        principals = [principal for _, (principal, _) in present]
        gone = {id(each) for each in (*_without_user(principals), *_refused(principals))}
        for key, (principal, dismiss) in present:
            if id(principal) in gone:
                self.leave(key)
                dismiss()


def _without_user(principals: Sequence[Principal]) -> Iterable[Principal]:
    """Return those whose users have been deactivated or deleted."""
    model = get_user_model()
    ours = [each for each in principals if isinstance(each.user, model) and each.user_id]
    if not ours:
        return ()
    rows = model._base_manager.using(router.db_for_write(model))
    rows = rows.filter(pk__in={each.user.pk for each in ours})
    if _has_flag(model):
        rows = rows.filter(is_active=True)
    active = set(rows.values_list("pk", flat=True))
    return [each for each in ours if each.user.pk not in active]


def _has_flag(model: Any) -> bool:
    # As Django's ModelBackend has it: a user model without the flag is active.
    try:
        model._meta.get_field("is_active")
    except FieldDoesNotExist:
        return False
    return True


def _refused(principals: Sequence[Principal]) -> Iterable[Principal]:
    """Yield those to whom what admitted them would not give access again."""
    by_check: dict[Any, list[Principal]] = defaultdict(list)
    for each in principals:
        if each.recheck is not None:
            by_check[each.recheck].append(each)
    for check, admitted in by_check.items():
        try:
            yield from check(admitted)
        except DatabaseError:
            raise
        except Exception:
            logger.exception("Whether callers may stay could not be asked; they stay")
