"""Who has requests and streams open in this process, and whether they may still have them."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth import get_user_model
from django.core.exceptions import FieldDoesNotExist
from django.db import DatabaseError, router
from django.db.models import QuerySet

from ..server.ports import Principal

logger = logging.getLogger("django_mcp.store")


@dataclass(frozen=True, slots=True)
class Guest:
    """Somebody with something open."""

    principal: Principal
    dismiss: Callable[[], object]
    guard: Callable[[Any], bool] | None


class Audience:
    """Everybody with something open here. One query asks after all users, however many."""

    def __init__(self) -> None:
        self._present: dict[object, Guest] = {}

    def enter(
        self,
        key: object,
        principal: Principal,
        dismiss: Callable[[], object],
        guard: Callable[[Any], bool] | None = None,
    ) -> None:
        """Call ``dismiss`` once ``principal`` may stay no longer. From any thread.

        ``guard`` says whether a user may still do what was begun.
        """
        if principal.user_id or principal.recheck is not None:
            self._present[key] = Guest(principal, dismiss, guard)

    def leave(self, key: object) -> None:
        """Forget what was opened. From any thread."""
        self._present.pop(key, None)

    def look(self) -> None:
        """Dismiss those who may stay no longer."""
        present = list(self._present.items())
        if not present:
            return
        guests = [guest for _, guest in present]
        principals = [guest.principal for guest in guests]
        gone = {id(each) for each in (*_without_user(principals), *_refused(principals))}
        forbidden = set(map(id, _forbidden(guests)))
        for key, guest in present:
            if id(guest.principal) in gone or id(guest) in forbidden:
                self.leave(key)
                guest.dismiss()


def _without_user(principals: Sequence[Principal]) -> Iterable[Principal]:
    """Return those whose users have been deactivated or deleted."""
    ours = [each for each in principals if _is_ours(each)]
    if not ours:
        return ()
    rows = _users(ours)
    if _has_flag(rows.model):
        rows = rows.filter(is_active=True)
    active = set(rows.values_list("pk", flat=True))
    return [each for each in ours if each.user.pk not in active]


def _forbidden(guests: Sequence[Guest]) -> Iterable[Guest]:
    """Yield those who may no longer do what they have begun."""
    guarded = [each for each in guests if each.guard is not None and _is_ours(each.principal)]
    if not guarded:
        return
    # Read anew, for a user remembers permissions.
    users = _users([each.principal for each in guarded]).in_bulk()
    for each in guarded:
        user = users.get(each.principal.user.pk)
        try:
            if user is not None and each.guard is not None and not each.guard(user):
                yield each
        except DatabaseError:
            raise
        except Exception:
            logger.exception("Whether a caller may go on could not be asked; he does")


def _is_ours(principal: Principal) -> bool:
    return isinstance(principal.user, get_user_model()) and bool(principal.user_id)


def _users(principals: Sequence[Principal]) -> QuerySet[Any]:
    model = get_user_model()
    rows = model._base_manager.using(router.db_for_write(model))
    return rows.filter(pk__in={each.user.pk for each in principals})


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
