"""Who has requests and streams open in this process, and whether they may still have them."""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.core.exceptions import FieldDoesNotExist
from django.db import router
from django.db.models import QuerySet

from ...principal import Guard, Principal
from ..database import is_outage

logger = logging.getLogger("django_mcp.store")

UNSURE_SECONDS: Final = 60.0
"""For so long somebody stays while it cannot be found out whether he may."""


@dataclass(slots=True, eq=False)
class Guest:
    """Somebody with something open."""

    principal: Principal
    dismiss: Callable[[], object]
    guard: Callable[[], Guard | None]
    unsure_since: float | None = None
    """Since when, by the monotonic clock, it is not known whether he may have it."""

    def note(self, *, is_unsure: bool) -> bool:
        """Take note of what a look has found out; return whether that was too little for long."""
        if not is_unsure:
            self.unsure_since = None
            return False
        self.unsure_since = self.unsure_since or time.monotonic()
        return time.monotonic() - self.unsure_since >= UNSURE_SECONDS


class Audience:
    """Everybody with something open here. One query asks after all users, however many."""

    def __init__(self) -> None:
        self._present: dict[object, Guest] = {}

    def enter(
        self,
        key: object,
        principal: Principal,
        dismiss: Callable[[], object],
        guard: Callable[[], Guard | None] = lambda: None,
    ) -> None:
        """Call ``dismiss`` once ``principal`` may stay no longer. From any thread.

        ``guard`` returns what says whether a user may still do what was begun.
        """
        if principal.user_id or principal.recheck is not None:
            self._present[key] = Guest(principal, dismiss, guard)

    def leave(self, key: object) -> None:
        """Forget what was opened. From any thread."""
        self._present.pop(key, None)

    def look(self) -> None:
        """Dismiss those who may stay no longer, and those of whom that is unknown for too long.

        Raises what has kept it from asking: a database that cannot be used.
        """
        present = list(self._present.items())
        gone, unsure, outage = _find_out([guest for _, guest in present])
        given_up = {guest for _, guest in present if guest.note(is_unsure=guest in unsure)}
        if given_up:
            logger.error(
                "Whether callers may go on could not be found out for %g seconds; "
                "what they have open ends: %d calls and streams",
                UNSURE_SECONDS,
                len(given_up),
            )
        for key, guest in present:
            if guest in gone or guest in given_up:
                self.leave(key)
                guest.dismiss()
        if outage is not None:
            raise outage


def users_of(principals: Iterable[Principal]) -> dict[Any, Any]:
    """Return the users as they are now, by their keys: an instance remembers permissions."""
    return _users([each for each in principals if is_ours(each)]).in_bulk()


def is_ours(principal: Principal) -> bool:
    """Return whether the user is one of the site's, with a row."""
    return isinstance(principal.user, get_user_model()) and bool(principal.user_id)


def _find_out(guests: Sequence[Guest]) -> tuple[set[Guest], set[Guest], Exception | None]:
    """Return who may stay no longer, of whom that is unknown, and what has kept it from asking.

    What fails concerns those alone who are asked after. Where a database cannot be used, nothing
    more is asked: each attempt may take its time, and others wait for this thread.
    """
    gone: set[Guest] = set()
    unsure: set[Guest] = set()
    outage: Exception | None = None
    for concerned, ask in _questions(guests):
        try:
            if outage is None:
                gone.update(ask())
                continue
        except Exception as error:
            if is_outage(error):
                outage = error
            elif any(each.unsure_since is None for each in concerned):
                logger.exception("Whether callers may go on could not be found out")
        unsure.update(concerned)
    return gone, unsure, outage


def _questions(
    guests: Sequence[Guest],
) -> Iterator[tuple[Sequence[Guest], Callable[[], Iterable[Guest]]]]:
    """Yield what is to be asked, after whom; each returns those who may stay no longer."""
    ours = [each for each in guests if is_ours(each.principal)]
    if ours:
        yield ours, partial(_without_user, ours)
    for check, admitted in _by_check(guests).items():
        yield admitted, partial(_refused, check, admitted)
    guarded = [(each, guard) for each in ours if (guard := each.guard()) is not None]
    users: dict[Any, Any] = {}
    if guarded:
        some = [each for each, _ in guarded]
        yield some, partial(_read_users, some, users)
    for each, guard in guarded:
        yield [each], partial(_forbidden, each, guard, users)


def _without_user(guests: Sequence[Guest]) -> Iterable[Guest]:
    """Return those whose users have been deactivated or deleted."""
    rows = _users([each.principal for each in guests])
    if _has_flag(rows.model):
        rows = rows.filter(is_active=True)
    active = set(rows.values_list("pk", flat=True))
    return [each for each in guests if each.principal.user.pk not in active]


def _refused(check: Callable[[Sequence[Principal]], Any], guests: Sequence[Guest]) -> list[Guest]:
    """Return those to whom what admitted them would not give access again."""
    refused = set(map(id, check([each.principal for each in guests])))
    return [each for each in guests if id(each.principal) in refused]


def _read_users(guests: Sequence[Guest], users: dict[Any, Any]) -> Iterable[Guest]:
    users.update(users_of(each.principal for each in guests))
    return ()


def _forbidden(guest: Guest, guard: Guard, users: dict[Any, Any]) -> Iterable[Guest]:
    """Return the guest if he may no longer do what he has begun."""
    user = users.get(guest.principal.user.pk)
    return () if user is None or guard(user) else (guest,)


def _by_check(guests: Iterable[Guest]) -> dict[Any, list[Guest]]:
    by_check: dict[Any, list[Guest]] = defaultdict(list)
    for each in guests:
        if each.principal.recheck is not None:
            by_check[each.principal.recheck].append(each)
    return by_check


def _users(principals: Iterable[Principal]) -> QuerySet[Any]:
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
