"""Sessions remembered for moments, so that their next request asks the database nothing.

Off unless ``SESSION_CACHE_SECONDS`` says for how long: in the memory of each process, or in the
cache that ``SESSION_CACHE`` names. What is remembered lets requests in and no more: whatever is
written for a session is written under the condition that its row lives, but for the number of its
requests. Only sessions that are ready are remembered, since nothing about them changes but their
log level, until they end; never that there is none.

Whoever ends or changes a session makes everybody forget it once that is committed. A reader that
was faster than that may come late with what it has read: it is not taken any more. And if nobody is
told, what was read is too old soon, counted from before it was read.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from django.core.cache import BaseCache, caches
from django.db import transaction
from django.db.models import QuerySet
from django.utils.crypto import salted_hmac

from ...conf import get_settings
from ...forks import PerProcess
from ...models import Session
from ...protocol.lifecycle import Sender, SessionInfo
from ...protocol.messages import encode
from ...protocol.versions import BY_NAME
from ..database import alias, is_in_transaction

logger = logging.getLogger("django_mcp.store")

MAX_SESSIONS: Final = 5_000
"""Sessions that a process remembers; more, and those that were read first are forgotten."""
ENDED_MARK: Final = ""
"""Stands in a shared cache for a session that is not to be remembered."""
ENDED_SECONDS: Final = 60
"""For how long: longer than anything may be remembered, so that who read before comes too late."""

Owner = tuple[str, str, str]
"""Server, key of the user as text, client id."""


@dataclass(frozen=True, slots=True)
class CachedSession:
    """A live session, and whose it is; remembered only if it was ready."""

    owner: Owner
    info: SessionInfo


class ProcessCache:
    """What one process remembers. From any thread; asks nobody, so that an event loop may."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: dict[str, tuple[float, CachedSession]] = {}
        self._forgotten = 0

    def mark(self) -> int:
        """Return what tells whether anything has been forgotten since: for :meth:`put`."""
        return self._forgotten

    def get(self, key: str) -> CachedSession | None:
        """Return the session with the digest ``key``."""
        until, found = self._found.get(key, _NOTHING)
        return found if time.monotonic() < until else None

    def put(self, key: str, found: CachedSession, seconds: float, mark: int) -> None:
        """Remember for ``seconds`` what was read after ``mark`` was taken."""
        now = time.monotonic()
        with self._lock:
            if mark != self._forgotten:
                return
            # Put last: the dict's order is that in which they were read.
            self._found.pop(key, None)
            self._found[key] = (now + seconds, found)
            self._make_room(now)

    def drop(self, keys: Iterable[str]) -> None:
        """Forget some."""
        with self._lock:
            self._forgotten += 1
            for key in keys:
                self._found.pop(key, None)

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._forgotten += 1
            self._found.clear()

    def _make_room(self, now: float) -> None:
        while self._found:
            oldest = next(iter(self._found))
            if len(self._found) <= MAX_SESSIONS and self._found[oldest][0] > now:
                return
            del self._found[oldest]


memory: Final = PerProcess(ProcessCache)
"""Returns what this process remembers; a fork begins with nothing."""


_NOTHING: Final[tuple[float, Any]] = (float("-inf"), None)


@dataclass(frozen=True, slots=True)
class SharedCache:
    """What all processes remember together. Where it cannot be reached, the database is asked."""

    cache: BaseCache

    def mark(self) -> int:
        """Return anything: what is forgotten is marked in the cache."""
        return 0

    def get(self, key: str) -> CachedSession | None:
        """Return the session with the digest ``key``."""
        try:
            text = self.cache.get(_name(key))
            found = _decoded(text) if text else None
        except Exception as error:
            # Whatever a cache raises that is away, or has what nobody here has written.
            _outage.begins(error)
            return None
        _outage.ends()
        return found

    def put(self, key: str, found: CachedSession, seconds: float, mark: int) -> None:
        """Remember a session, unless it is to be forgotten. A cache counts whole seconds."""
        if int(seconds) < 1 or _outage.lasts:
            return
        try:
            self.cache.add(_name(key), _encoded(found), timeout=int(seconds))
        except Exception as error:
            _outage.begins(error)

    def drop(self, keys: Iterable[str]) -> None:
        """Forget some, and take them from nobody for a while."""
        try:
            self.cache.set_many({_name(key): ENDED_MARK for key in keys}, timeout=ENDED_SECONDS)
        except Exception as error:
            _outage.begins(error)


@dataclass(slots=True)
class _Outage:
    """Whether the shared cache can be used: said once each time."""

    lasts: bool = False

    def begins(self, error: Exception) -> None:
        if not self.lasts:
            self.lasts = True
            logger.warning("SESSION_CACHE cannot be used; the database is asked instead: %s", error)

    def ends(self) -> None:
        self.lasts = False


def process_memory() -> ProcessCache | None:
    """Return this process's memory, if that is where sessions are looked for now."""
    settings = get_settings()
    if not settings.session_cache_seconds or settings.session_cache or is_in_transaction():
        return None
    return memory()


def cache_in_use() -> ProcessCache | SharedCache | None:
    """Return where sessions are looked for now, if anywhere but in the database.

    Within a transaction the caller has rows that nobody else sees.
    """
    settings = get_settings()
    if not settings.session_cache_seconds or is_in_transaction():
        return None
    return SharedCache(caches[settings.session_cache]) if settings.session_cache else memory()


def forget(keys: Iterable[str]) -> None:
    """Let nobody remember the sessions with these digests. Never fails."""
    name = get_settings().session_cache
    if name:
        SharedCache(caches[name]).drop(keys)
    else:
        memory().drop(keys)
        _clear_others()


def forget_rows(sessions: QuerySet[Session]) -> None:
    """Let nobody remember sessions as they were before the present transaction.

    Those that expire need not be forgotten: nobody remembers them for longer than they live.
    """
    if get_settings().session_cache_seconds:
        keys = list(sessions.values_list("key_digest", flat=True))
        transaction.on_commit(partial(forget, keys), using=alias(), robust=True)


def install(clear_others: Callable[[], None]) -> None:
    """Have ``clear_others`` called when other processes must forget what they remember."""
    global _clear_others
    _clear_others = clear_others


def _name(key: str) -> str:
    # Sites that share a cache by mistake do not share a key.
    return f"mcp-session-{salted_hmac('django_mcp.sessions', key, algorithm='sha256').hexdigest()}"


def _encoded(found: CachedSession) -> str:
    info = found.info
    about = [info.id, info.revision.name, info.sender.info, info.sender.capabilities]
    return encode([*found.owner, *about, info.log_level]).decode()


def _decoded(text: str) -> CachedSession:
    server, user, client, key, revision, info, capabilities, log_level = json.loads(text)
    session = SessionInfo(
        id=key,
        revision=BY_NAME[revision],
        sender=Sender(info, capabilities, log_level),
        initialized=True,
        log_level=log_level,
    )
    return CachedSession((server, user, client), session)


def _do_nothing() -> None:
    """Tell nobody, as long as there is nothing to tell it with."""


_clear_others: Callable[[], None] = _do_nothing
_outage = _Outage()
