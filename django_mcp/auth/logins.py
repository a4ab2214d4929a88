"""Logins of Django's: by which of its sessions somebody came in, and whether that has ended.

A login ends when its session does (somebody logs out, it expires, it is deleted), or when the
password is another one. What ``django.contrib.auth.get_user`` finds out at each request is found
out here for all who have something open, without writing to any session.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final

from django.conf import settings
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY, get_user_model
from django.contrib.sessions.backends.base import SessionBase
from django.contrib.sessions.backends.db import SessionStore as DatabaseStore
from django.db import router
from django.http import HttpRequest
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from .principal import Principal

BATCH: Final = 500
"""Sessions in the database that one query asks for."""
READ_AT_ONCE: Final = 100
"""Sessions elsewhere that are read one by one, in each look; the others follow in the next."""


@dataclass(slots=True, eq=False)
class Login:
    """How somebody came in."""

    session_key: str
    user: str
    """The primary key, as sessions have it."""
    auth_hash: str
    """What changes with the password; empty where the user model has nothing of the kind."""
    seen: int | None = None
    """A hash of what the session held, the last time; it need not be decoded again."""
    looked: float = field(default_factory=time.monotonic)


def login_of(request: HttpRequest) -> Login | None:
    """Return the login of the user that Django has recognised, if a session made it that."""
    session: SessionBase | None = getattr(request, "session", None)
    if session is None or session.get(SESSION_KEY) is None or not session.session_key:
        return None
    return Login(session.session_key, str(session[SESSION_KEY]), session.get(HASH_SESSION_KEY, ""))


def ended_logins(principals: Sequence[Principal]) -> Iterator[Principal]:
    """Yield those whose logins have ended."""
    by_session: dict[str, list[Principal]] = defaultdict(list)
    for each in principals:
        by_session[each.credential.session_key].append(each)
    store = import_module(settings.SESSION_ENGINE).SessionStore
    in_database = isinstance(store, type) and issubclass(store, DatabaseStore)
    find = _users_in_database if in_database else _users_elsewhere
    logins = {key: [each.credential for each in them] for key, them in by_session.items()}
    found = find(store, logins)
    hashes = _hashes({each.credential.user for each in principals if each.credential.auth_hash})
    for key, user in found.items():
        for each in by_session[key]:
            if user != each.credential.user or not _has_password(each.credential, hashes):
                yield each


def _users_in_database(
    store: type[DatabaseStore], logins: Mapping[str, Sequence[Login]]
) -> dict[str, str | None]:
    """Return whose each session is, by as few queries as there are hundreds of them."""
    rows = store.get_model_class().objects.filter(expire_date__gt=timezone.now())
    keys, found = list(logins), dict[str, str | None].fromkeys(logins)
    for first in range(0, len(keys), BATCH):
        batch = rows.filter(session_key__in=keys[first : first + BATCH])
        for key, text in batch.values_list("session_key", "session_data"):
            seen = hash(text)
            if any(each.seen != seen for each in logins[key]):
                user = store(key).decode(text).get(SESSION_KEY)
            else:
                user = logins[key][0].user
            found[key] = user
            for each in logins[key]:
                each.seen = seen if user == each.user else None
    return found


def _users_elsewhere(
    store: type[SessionBase], logins: Mapping[str, Sequence[Login]]
) -> dict[str, str | None]:
    """Return whose sessions are, those first that nobody has looked at for longest."""
    keys = sorted(logins, key=lambda key: min(each.looked for each in logins[key]))
    found: dict[str, str | None] = {}
    for key in keys[:READ_AT_ONCE]:
        found[key] = store(key).load().get(SESSION_KEY)
        for each in logins[key]:
            each.looked = time.monotonic()
    return found


def _hashes(users: Iterable[str]) -> dict[str, list[str]]:
    """Return what sessions of each user may have for the hash, by the key of the user."""
    model: Any = get_user_model()
    rows = model._base_manager.using(router.db_for_write(model)).in_bulk(users)
    return {
        model._meta.pk.value_to_string(user): [
            user.get_session_auth_hash(),
            *getattr(user, "get_session_auth_fallback_hash", tuple)(),
        ]
        for user in rows.values()
    }


def _has_password(login: Login, hashes: Mapping[str, Sequence[str]]) -> bool:
    if not login.auth_hash:
        return True
    return any(constant_time_compare(login.auth_hash, each) for each in hashes.get(login.user, ()))
