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

from ...auth import Guard, Principal
from ..database import is_outage

logger = logging.getLogger("django_mcp.store")

UNSURE_SECONDS: Final = 60.0
"""For so long somebody stays while it cannot be found out whether he may."""


@dataclass(slots=True, eq=False)
class Admitted:
    """Somebody with something open."""

    principal: Principal
    end: Callable[[], object]
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


class AccessWatch:
    """Everybody with something open here. One query asks after all users, however many."""

    def __init__(self) -> None:
        self._watched: dict[object, Admitted] = {}

    def watch(
        self,
        key: object,
        principal: Principal,
        end: Callable[[], object],
        guard: Callable[[], Guard | None] = lambda: None,
    ) -> None:
        """Call ``end`` once ``principal`` may stay no longer. From any thread.

        ``guard`` returns what says whether a user may still do what was begun.
        """
        if principal.user_id or principal.recheck is not None:
            self._watched[key] = Admitted(principal, end, guard)

    def unwatch(self, key: object) -> None:
        """Forget what was opened. From any thread."""
        self._watched.pop(key, None)

    def look(self) -> None:
        """End what those have open who may no longer, or of whom that is unknown for too long.

        Raises what has kept it from asking: a database that cannot be used.
        """
        watched = list(self._watched.items())
        gone, unsure, outage = _check([entry for _, entry in watched])
        given_up = {entry for _, entry in watched if entry.note(is_unsure=entry in unsure)}
        if given_up:
            logger.error(
                "Whether callers may go on could not be found out for %g seconds; "
                "what they have open ends: %d calls and streams",
                UNSURE_SECONDS,
                len(given_up),
            )
        for key, entry in watched:
            if entry in gone or entry in given_up:
                self.unwatch(key)
                entry.end()
        if outage is not None:
            raise outage


def users_of(principals: Iterable[Principal]) -> dict[Any, Any]:
    """Return the users as they are now, by their keys: an instance remembers permissions."""
    return _users([each for each in principals if has_site_user(each)]).in_bulk()


def has_site_user(principal: Principal) -> bool:
    """Return whether the user is one of the site's, with a row."""
    return isinstance(principal.user, get_user_model()) and bool(principal.user_id)


def _check(admitted: Sequence[Admitted]) -> tuple[set[Admitted], set[Admitted], Exception | None]:
    """Return who may stay no longer, of whom that is unknown, and what has kept it from asking.

    What fails concerns those alone who are asked after. Where a database cannot be used, nothing
    more is asked: each attempt may take its time, and others wait for this thread.
    """
    gone: set[Admitted] = set()
    unsure: set[Admitted] = set()
    outage: Exception | None = None
    for concerned, ask in _questions(admitted):
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
    admitted: Sequence[Admitted],
) -> Iterator[tuple[Sequence[Admitted], Callable[[], Iterable[Admitted]]]]:
    """Yield what is to be asked, after whom; each returns those who may stay no longer."""
    ours = [each for each in admitted if has_site_user(each.principal)]
    if ours:
        yield ours, partial(_without_user, ours)
    for check, group in _by_check(admitted).items():
        yield group, partial(_refused, check, group)
    guarded = [(each, guard) for each in ours if (guard := each.guard()) is not None]
    users: dict[Any, Any] = {}
    if guarded:
        some = [each for each, _ in guarded]
        yield some, partial(_read_users, some, users)
    for each, guard in guarded:
        yield [each], partial(_forbidden, each, guard, users)


def _without_user(admitted: Sequence[Admitted]) -> Iterable[Admitted]:
    """Return those whose users have been deactivated or deleted."""
    rows = _users([each.principal for each in admitted])
    if _has_flag(rows.model):
        rows = rows.filter(is_active=True)
    active = set(rows.values_list("pk", flat=True))
    return [each for each in admitted if each.principal.user.pk not in active]


def _refused(
    check: Callable[[Sequence[Principal]], Any], admitted: Sequence[Admitted]
) -> list[Admitted]:
    """Return those to whom what admitted them would not give access again."""
    refused = set(map(id, check([each.principal for each in admitted])))
    return [each for each in admitted if id(each.principal) in refused]


def _read_users(admitted: Sequence[Admitted], users: dict[Any, Any]) -> Iterable[Admitted]:
    users.update(users_of(each.principal for each in admitted))
    return ()


def _forbidden(entry: Admitted, guard: Guard, users: dict[Any, Any]) -> Iterable[Admitted]:
    """Return the entry if its user may no longer do what was begun."""
    user = users.get(entry.principal.user.pk)
    return () if user is None or guard(user) else (entry,)


def _by_check(admitted: Iterable[Admitted]) -> dict[Any, list[Admitted]]:
    by_check: dict[Any, list[Admitted]] = defaultdict(list)
    for each in admitted:
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
