"""The way of every request into its session: from the secret to what is known of the session."""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any, Final

from django.db import InterfaceError, OperationalError
from django.db.models import TextField
from django.db.models.functions import Cast

from ...clock import DatabaseNow
from ...conf import get_settings
from ...current_partition import current_partition
from ...models import Session
from ...protocol.lifecycle import Sender, SessionInfo
from ...protocol.versions import BY_NAME
from ..database import unavailable, with_retries
from ..prepared import MOST, PreparedQuery
from . import session_cache
from .liveness import live_sessions
from .session_cache import CachedSession

logger = logging.getLogger("django_mcp.store")

SHORT_CHARACTERS: Final = 1_000
"""Characters of what a client says of itself that are kept for when they come again."""


def digest(secret: str) -> str:
    """Return what is stored of an ``Mcp-Session-Id``: in each partition something else."""
    if partition := current_partition():
        secret = f"{partition}\0{secret}"
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def find_sessions(keys: Sequence[str]) -> dict[str, CachedSession]:
    """Return the live sessions that secrets with these digests name.

    What is remembered need not be asked for; what the database says of the others costs one
    statement for :data:`~django_mcp.store.prepared.MOST` of them.
    """
    cache = session_cache.cache_in_use()
    if cache is None:
        return read_sessions(keys)
    known = {key: found for key in keys if (found := cache.get(key)) is not None}
    unknown = [key for key in keys if key not in known]
    return known | _read_and_remember(unknown, cache) if unknown else known


def session_info(
    key: Any,
    revision: str,
    info: dict[str, Any],
    capabilities: dict[str, Any],
    log_level: str,
    state: str,
) -> SessionInfo:
    """Return what a session's row says of it."""
    return SessionInfo(
        id=str(key),
        revision=BY_NAME[revision],
        sender=Sender(info, capabilities, log_level),
        initialized=state == Session.State.READY,
        log_level=log_level,
    )


def text_of(user_key: Any) -> str:
    """Return a user's key as it is remembered."""
    return "" if user_key is None else str(user_key)


def read_sessions(keys: Sequence[str]) -> dict[str, CachedSession]:
    """Return what the database says of the live sessions with these digests."""
    return {key: _cached_session(row) for key, *row in _rows(_by_key, keys)}


def _read_and_remember(
    keys: Sequence[str], cache: session_cache.ProcessCache | session_cache.SharedCache
) -> dict[str, CachedSession]:
    settings = get_settings()
    # Both taken before the rows are read: they may change as soon as they have been.
    began, mark = time.monotonic(), cache.mark()
    read: dict[str, CachedSession] = {}
    for expires, now, key, *row in _rows(_by_key_with_times, keys):
        read[key] = found = _cached_session(row)
        if found.info.initialized:
            lives = (expires - now).total_seconds()
            seconds = min(settings.session_cache_seconds, settings.session_idle_seconds, lives)
            cache.put(key, found, seconds - (time.monotonic() - began), mark)
    return read


def _rows(query: PreparedQuery, keys: Sequence[str]) -> list[list[Any]]:
    parts = [keys[first : first + MOST] for first in range(0, len(keys), MOST)]
    try:
        rows = [row for part in parts for row in with_retries(partial(query.run, part))]
    except (OperationalError, InterfaceError) as error:
        raise unavailable(error) from error
    return [row for row in rows if _is_spoken_here(row[_REVISION])]


def _is_spoken_here(revision: str) -> bool:
    """Return whether this version of the package knows a revision; to it no other session is live.

    After a downgrade, or beside a newer process, a client is so told to open another session.
    """
    if revision in BY_NAME:
        return True
    logger.warning("A session of revision %s is not live here: another version opened it", revision)
    return False


def _cached_session(row: Sequence[Any]) -> CachedSession:
    short = len(row[_CLIENT_INFO]) + len(row[_CAPABILITIES]) <= SHORT_CHARACTERS
    return (_read_once if short else _read)(*row)


def _read(
    server: str,
    user: Any,
    client: str,
    key: Any,
    revision: str,
    info: str,
    capabilities: str,
    log_level: str,
    state: str,
) -> CachedSession:
    about = session_info(key, revision, _parsed(info), _parsed(capabilities), log_level, state)
    return CachedSession((server, text_of(user), client), about)


def _parsed(text: str) -> Any:
    return _parsed_once(text) if len(text) <= SHORT_CHARACTERS else json.loads(text)


# The row of a session says the same with most requests, and many clients say the same of
# themselves. Nobody changes what is made of either: see Context.
_read_once = lru_cache(maxsize=1024)(_read)
_parsed_once = lru_cache(maxsize=256)(json.loads)

_OWNER: Final = ("server", "user_id", "client_id")
_INFO: Final = (
    "id",
    "revision",
    Cast("client_info", TextField()),
    Cast("client_capabilities", TextField()),
    "log_level",
    "state",
)
_REVISION: Final = _INFO.index("revision") - len(_INFO)
_CLIENT_INFO, _CAPABILITIES = _REVISION + 1, _REVISION + 2
_by_key = PreparedQuery(
    lambda keys: (
        live_sessions().filter(key_digest__in=keys).values_list("key_digest", *_OWNER, *_INFO)
    )
)
_by_key_with_times = PreparedQuery(
    lambda keys: (
        live_sessions()
        .filter(key_digest__in=keys)
        .values_list("expires", DatabaseNow(), "key_digest", *_OWNER, *_INFO)
    )
)
