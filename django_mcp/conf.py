"""The settings of the package: the one reader of ``settings.DJANGO_MCP``.

Read live, so that ``override_settings`` works: the dict is checked when it changes, not when it is
used. Every key is described in ``docs/reference/settings.md``.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from types import NoneType
from typing import Any, Final

from django.conf import settings as django_settings
from django.core.exceptions import ImproperlyConfigured

from .rates import Rate

MAX_SERVER_NAME_LENGTH: Final = 128
"""Characters of a server's name: so many has a row of its sessions."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Settings:
    """``DJANGO_MCP``, checked; attribute ``auth`` is the key ``AUTH``, and so on.

    As long as the settings do not change there is one instance, by which others can remember what
    they have made of it.
    """

    auth: str | Callable[..., Any] | None = None
    path: str = "mcp"
    server_name: str = "django-mcp"
    server_version: str = ""
    instructions: str = ""
    structured_text: bool = False
    allowed_origins: list[str] = field(default_factory=list)
    max_body_bytes: int = 4 * 1024 * 1024
    max_json_values: int = 100_000
    body_seconds: float = 120
    body_pause_seconds: float = 20
    max_receiving_bytes: int = 64 * 1024 * 1024
    max_result_bytes: int = 4 * 1024 * 1024
    rate_limit: str | None = "600/m per process"
    rate_limit_cache: str = ""
    page_size: int = 100
    strict_arguments: bool = True
    list_ttl_seconds: int = 60
    database: str = "default"
    session_idle_seconds: int = 24 * 60 * 60
    session_max_age_seconds: int = 30 * 24 * 60 * 60
    session_cache: str = ""
    session_cache_seconds: float = 0
    max_sessions: int = 100_000
    max_sessions_per_user: int = 1_000
    anonymous_sessions_share: float = 0.5
    stream_after_seconds: float = 1.0
    stream_max_age_seconds: int = 600
    queue_messages: int = 1_000
    queue_bytes: int = 4 * 1024 * 1024
    replay_seconds: int = 300
    retention_seconds: int = 7 * 24 * 60 * 60
    max_subscriptions: int = 1_000
    max_streams: int = 5_000
    max_streams_per_user: int = 100
    write_timeout_seconds: float = 60
    question_seconds: int = 300
    state_max_age_seconds: int = 60 * 60
    lease_seconds: float = 15
    shutdown_seconds: float = 8
    lanes: int = 16
    lane_wait_seconds: int = 30
    lane_queue: int = 1_000


_ORIGIN = re.compile(r"\*|null|[a-z][a-z0-9+.\-]*://[^/\s?#@]+", re.IGNORECASE)
_POSITIVE = {
    "max_body_bytes",
    "max_json_values",
    "body_seconds",
    "body_pause_seconds",
    "max_receiving_bytes",
    "max_result_bytes",
    "page_size",
    "session_idle_seconds",
    "session_max_age_seconds",
    "max_sessions",
    "max_sessions_per_user",
    "anonymous_sessions_share",
    "stream_after_seconds",
    "stream_max_age_seconds",
    "queue_messages",
    "queue_bytes",
    "replay_seconds",
    "max_subscriptions",
    "max_streams",
    "max_streams_per_user",
    "write_timeout_seconds",
    "question_seconds",
    "state_max_age_seconds",
    "lease_seconds",
    "lanes",
    "lane_wait_seconds",
}
_LONGEST_SESSION_CACHE = 10
_KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "str": ((str,), "text"),
    "str | None": ((str, NoneType), "text or None"),
    "int": ((int,), "a whole number"),
    "float": ((int, float), "a number"),
    "bool": ((bool,), "True or False"),
    "list[str]": ((list, tuple), "a list"),
}
_current: tuple[Any, Settings] | None = None


def get_settings() -> Settings:
    """Return the settings in force; raises ``ImproperlyConfigured`` for what cannot be meant."""
    global _current
    raw = getattr(django_settings, "DJANGO_MCP", None)
    if _current is None or _current[0] is not raw:
        _current = (raw, read_settings(raw))
    return _current[1]


def read_settings(raw: Any) -> Settings:
    """Check the dict ``raw`` and return it as :class:`Settings`."""
    if raw is None:
        return Settings()
    if not isinstance(raw, dict):
        raise ImproperlyConfigured(f"DJANGO_MCP must be a dict, not {type(raw).__name__}.")
    known = {each.name.upper(): each for each in fields(Settings)}
    for key, value in raw.items():
        if key not in known:
            raise ImproperlyConfigured(_unknown(key, list(known)))
        _check(key, value, str(known[key].type))
    for origin in raw.get("ALLOWED_ORIGINS", ()):
        _check_origin(origin)
    _check_name(raw.get("SERVER_NAME", ""))
    _check_rate(raw.get("RATE_LIMIT"))
    _check_session_cache(raw.get("SESSION_CACHE_SECONDS", 0))
    _check_share(raw.get("ANONYMOUS_SESSIONS_SHARE", 1))
    return Settings(**{key.lower(): value for key, value in raw.items()})


def _unknown(key: Any, known: list[str]) -> str:
    near = difflib.get_close_matches(str(key).upper(), known, cutoff=0.7)
    names = " or ".join(map(repr, near))
    hint = f" Did you mean {names}?" if near else f" Known keys: {', '.join(known)}."
    return f"DJANGO_MCP has no key {key!r}.{hint}"


def _check(key: str, value: Any, declared: str) -> None:
    if key == "AUTH":
        if value is not None and not isinstance(value, str) and not callable(value):
            raise ImproperlyConfigured('DJANGO_MCP["AUTH"] must be a dotted path or a callable.')
        return
    kinds, in_words = _KINDS[declared]
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise ImproperlyConfigured(
            f"DJANGO_MCP[{key!r}] must be {in_words}, not {type(value).__name__}."
        )
    least = 0 if key.lower() not in _POSITIVE else 1 if declared == "int" else 0.001
    if isinstance(value, (int, float)) and not value >= least:
        raise ImproperlyConfigured(f"DJANGO_MCP[{key!r}] must be at least {least}, not {value}.")


def _check_name(name: str) -> None:
    if len(name) > MAX_SERVER_NAME_LENGTH:
        raise ImproperlyConfigured(
            f"DJANGO_MCP['SERVER_NAME'] may have {MAX_SERVER_NAME_LENGTH} characters at most, as a "
            "row of its sessions has."
        )


def _check_rate(rate: str | None) -> None:
    if rate:
        try:
            Rate.parse(rate)
        except ValueError as error:
            raise ImproperlyConfigured(f"DJANGO_MCP['RATE_LIMIT']: {error}.") from error


def _check_session_cache(seconds: float) -> None:
    if not seconds <= _LONGEST_SESSION_CACHE:
        raise ImproperlyConfigured(
            f"DJANGO_MCP['SESSION_CACHE_SECONDS'] may be {_LONGEST_SESSION_CACHE} at most, not "
            f"{seconds}: for so long a session that has ended may still be let in."
        )


def _check_share(share: float) -> None:
    if not share <= 1:
        raise ImproperlyConfigured(
            f"DJANGO_MCP['ANONYMOUS_SESSIONS_SHARE'] may be 1 at most, not {share}: it is a part "
            "of MAX_SESSIONS. Write 0.5 for half of them."
        )


def _check_origin(origin: Any) -> None:
    if not isinstance(origin, str) or not _ORIGIN.fullmatch(origin):
        raise ImproperlyConfigured(
            f"DJANGO_MCP['ALLOWED_ORIGINS']: {origin!r} is not an origin. Write scheme and host, "
            'without a path or a slash at the end, as in "https://app.example.com"; "*" allows '
            "every origin."
        )
