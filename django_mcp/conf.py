"""The settings of the package: the one reader of ``settings.DJANGO_MCP``.

Every key is described in ``docs/reference/settings.md``.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator
from dataclasses import field, fields
from functools import partial
from threading import Lock
from typing import Annotated, Any, Final, NamedTuple, TypeVar, get_type_hints
from urllib.parse import urlsplit

from django.conf import settings as django_settings
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed
from django.dispatch import receiver
from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass
from pydantic_core import ErrorDetails

from .forks import PerProcess
from .protocol.scopes import AS_IT_IS, check_scope, check_scope_format
from .rates import Rate

T = TypeVar("T")

MAX_SERVER_NAME_LENGTH: Final = 128
"""Characters of a server's name: so many has a row of its sessions."""

MIN_LEASE_SECONDS: Final = 2
"""The books are looked at twice a second, and a process that has missed a third of a lease ends no
calls of others: within a shorter one none ever would."""

OLD_NAMES: Final = {
    "LANES": "WORKER_THREADS",
    "LANE_WAIT_SECONDS": "THREAD_WAIT_SECONDS",
    "LANE_QUEUE": "THREAD_QUEUE",
}
"""Other names of keys, which mean the same; the system check ``django_mcp.W017`` advises against
them."""

JWT_ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA", "Ed25519"),
)
"""RFC 7518, section 3, and RFC 9864, without what a public key or nothing at all could forge."""

MAX_TOKEN_DAYS: Final = 36_500
"""For which a token is issued, unless it never expires."""

LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
"""Hosts that are this machine, to which nobody listens in."""


def is_this_machine(host: str | None) -> bool:
    """Return whether a host is this machine; so is all below ``localhost`` (RFC 6761, 6.3)."""
    return host is not None and (host in LOOPBACK or host.endswith(".localhost"))


_ORIGIN: Final = re.compile(r"\*|null|[a-z][a-z0-9+.\-]*://[^/\s?#@]+", re.IGNORECASE)


def _check_origin(origin: Any) -> Any:
    if not isinstance(origin, str) or not _ORIGIN.fullmatch(origin):
        raise ValueError(
            f"{origin!r} is not an origin. Write scheme and host, without a path or a slash at the "
            'end, as in "https://app.example.com"; "*" allows every origin'
        )
    return origin


def check_issuer(issuer: Any) -> Any:
    """Return the identifier of an authorization server; raises ``ValueError`` for what is none.

    RFC 8414, section 2: HTTPS, without query and fragment. On this machine it may be HTTP.
    """
    if not isinstance(issuer, str) or not _is_url(issuer):
        raise ValueError(
            f"{issuer!r} is not the identifier of an authorization server. Write what its metadata "
            'has as "issuer", as in "https://id.example.com/realms/shop": HTTPS, unless it is on '
            "this machine, and no query"
        )
    return _check_star(issuer)


def _check_metadata_urls(urls: Any) -> Any:
    for issuer, url in urls.items() if isinstance(urls, dict) else ():
        check_issuer(issuer)
        if not isinstance(url, str) or not _is_url(url.partition("?")[0]):
            raise ValueError(
                f"{url!r} is not where the metadata of an issuer is. Write the whole URL: HTTPS, "
                "unless it is on this machine"
            )
    return urls


def _check_token_issuers(issuers: Any) -> Any:
    if not isinstance(issuers, dict):
        return issuers
    found = {check_issuer(server): _names(names) for server, names in issuers.items()}
    for names in found.values():
        for each in names:
            check_issuer(each)
    return found


def _check_audiences(audiences: Any) -> Any:
    if not isinstance(audiences, dict):
        return audiences
    return {_check_base_url(url): _names(names) for url, names in audiences.items()}


def _names(value: Any) -> tuple[str, ...]:
    names = (value,) if isinstance(value, str) else value
    if not isinstance(names, (list, tuple)) or not all(isinstance(n, str) and n for n in names):
        raise ValueError(f"{value!r} is neither a name nor a list of names")
    return tuple(names)


def _check_base_url(url: Any) -> Any:
    if not isinstance(url, str) or not _is_url(url, is_secure=False):
        raise ValueError(
            f"{url!r} is not where a site is. Write scheme and host, as in "
            '"https://shop.example.com", and behind it the path that a proxy takes away, if any'
        )
    return _check_star(url.rstrip("/"))


def _check_star(url: str) -> str:
    host = urlsplit(url).hostname or ""
    if "*" in url and not (url.count("*") == 1 and re.fullmatch(r"\*\.[^.*]+.*", host)):
        raise ValueError(
            f"{url!r} has a star that stands for nothing. It stands for the first part of a host, "
            'where each tenant has one, as in "https://*.example.com"'
        )
    return url


def _check_hierarchy(hierarchy: Any) -> Any:
    if not isinstance(hierarchy, dict):
        return hierarchy
    return {check_scope(each): _checked_scopes(included) for each, included in hierarchy.items()}


def _checked_scopes(scopes: Any) -> Any:
    return tuple(map(check_scope, _names(scopes)))


def _check_sentences(scopes: Any) -> Any:
    for each in scopes if isinstance(scopes, dict) else ():
        check_scope(each)
    return scopes


def _check_algorithm(name: Any) -> Any:
    if name not in JWT_ALGORITHMS:
        raise ValueError(
            f"{name!r} is none of the algorithms by which issuers sign tokens with keys of their "
            f"own: {', '.join(JWT_ALGORITHMS)}"
        )
    return name


def _is_url(text: str, *, is_secure: bool = True) -> bool:
    try:
        parts = urlsplit(text)
        has_port = parts.port is None or parts.port > 0
    except ValueError:
        return False
    is_plain = text.isascii() and text.isprintable() and not set(text) & set(' "\\<>?#@')
    schemes = ("https", "http") if not is_secure or is_this_machine(parts.hostname) else ("https",)
    return is_plain and has_port and bool(parts.hostname) and parts.scheme in schemes


def _check_scopes_at_login(which: str) -> str:
    if which not in ("needed", "all"):
        raise ValueError(f'{which!r} is neither "needed" nor "all"')
    return which


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _check_rate(rate: str | None) -> str | None:
    if rate:
        Rate.parse(rate)
    return rate


Count = Annotated[int, Field(ge=1)]
CountOrZero = Annotated[int, Field(ge=0)]
Days = Annotated[int, Field(ge=1, le=MAX_TOKEN_DAYS)]
Seconds = Annotated[float, Field(gt=0)]
SecondsOrZero = Annotated[float, Field(ge=0)]
Names = Annotated[tuple[str, ...], Field(strict=False)]
Origins = Annotated[
    tuple[Annotated[str, BeforeValidator(_check_origin)], ...],
    Field(strict=False),  # a list is as good
]


Issuers = Annotated[
    tuple[Annotated[str, BeforeValidator(check_issuer)], ...],
    BeforeValidator(_listed),
    Field(strict=False),
]
Scopes = Annotated[
    tuple[Annotated[str, BeforeValidator(check_scope)], ...],
    BeforeValidator(_listed),
    Field(strict=False),
]
Algorithms = Annotated[
    tuple[Annotated[str, BeforeValidator(_check_algorithm)], ...], Field(strict=False)
]
ScopeFormat = Annotated[str, AfterValidator(check_scope_format)]
MetadataURLs = Annotated[dict[str, str], BeforeValidator(_check_metadata_urls)]
TokenIssuers = Annotated[dict[str, tuple[str, ...]], BeforeValidator(_check_token_issuers)]
TokenAudiences = Annotated[dict[str, tuple[str, ...]], BeforeValidator(_check_audiences)]
Sentences = Annotated[dict[str, Any], BeforeValidator(_check_sentences)]
"""Texts, or lazy translations, by scope."""
Hierarchy = Annotated[dict[str, tuple[str, ...]], BeforeValidator(_check_hierarchy)]
BaseURLs = Annotated[
    tuple[Annotated[str, BeforeValidator(_check_base_url)], ...],
    BeforeValidator(_listed),
    Field(strict=False),
]


@dataclass(
    frozen=True, slots=True, kw_only=True, eq=False, config=ConfigDict(strict=True, extra="forbid")
)
class Settings:
    """``DJANGO_MCP``, checked; attribute ``auth`` is the key ``AUTH``, and so on.

    As long as the settings do not change there is one instance, by which others can remember what
    they have made of it.
    """

    auth: str | Callable[..., Any] | None = None
    path: str = "mcp"
    server_name: Annotated[str, Field(max_length=MAX_SERVER_NAME_LENGTH)] = "django-mcp"
    server_version: str = ""
    instructions: str = ""
    structured_text: bool = False
    call_context: str | Callable[..., Any] | None = None
    authorization_servers: Issuers = ()
    base_url: BaseURLs = ()
    base_scopes: Scopes = ()
    scopes: Sentences = field(default_factory=dict)
    scope_hierarchy: Hierarchy = field(default_factory=dict)
    read_only_scopes: Scopes = ()
    scopes_at_login: Annotated[str, AfterValidator(_check_scopes_at_login)] = "needed"
    step_up_help: bool = True
    refresh_grace_seconds: SecondsOrZero = 30
    registration_rate: Annotated[str | None, AfterValidator(_check_rate)] = "100/h"
    oauth_user: str | Callable[..., Any] | None = None
    oauth_service_users: dict[str, str] = field(default_factory=dict)
    jwt_algorithms: Algorithms = JWT_ALGORITHMS
    token_audiences: TokenAudiences = field(default_factory=dict)
    token_issuers: TokenIssuers = field(default_factory=dict)
    issuer_metadata: MetadataURLs = field(default_factory=dict)
    scope_claims: Names = ("scope", "scp")
    scope_format: ScopeFormat = AS_IT_IS
    introspection_url: str = ""
    introspection_client_id: str = ""
    introspection_client_secret: str = field(default="", repr=False)  # for reports of errors
    own_token_scopes: Scopes = ()
    own_token_max_days: Days | None = 365
    allowed_origins: Origins = ()
    max_body_bytes: Count = 4 * 1024 * 1024
    max_json_values: Count = 100_000
    body_seconds: Seconds = 120
    body_pause_seconds: Seconds = 20
    max_receiving_bytes: Count = 64 * 1024 * 1024
    max_result_bytes: Count = 4 * 1024 * 1024
    file_link_seconds: Count = 600
    rate_limit: Annotated[str | None, AfterValidator(_check_rate)] = "600/m per process"
    rate_limit_cache: str = ""
    page_size: Count = 100
    strict_arguments: bool = True
    list_ttl_seconds: CountOrZero = 60
    database: str = "default"
    partition: str | None = None
    session_idle_seconds: Count = 24 * 60 * 60
    session_max_age_seconds: Count = 30 * 24 * 60 * 60
    session_cache: str = ""
    session_cache_seconds: Annotated[SecondsOrZero, Field(le=10)] = 0
    max_sessions: Count = 100_000
    max_sessions_per_user: Count = 1_000
    anonymous_sessions_share: Annotated[float, Field(gt=0, le=1)] = 0.5
    stream_after_seconds: Seconds = 1.0
    stream_max_age_seconds: Count | None = None
    queue_messages: Count = 1_000
    queue_bytes: Count = 4 * 1024 * 1024
    replay_seconds: Count = 300
    retention_seconds: CountOrZero = 7 * 24 * 60 * 60
    max_subscriptions: Count = 1_000
    max_streams: Count = 5_000
    max_streams_per_user: Count = 100
    write_timeout_seconds: Seconds = 60
    question_seconds: Count = 300
    state_max_age_seconds: Count = 60 * 60
    lease_seconds: Annotated[float, Field(ge=MIN_LEASE_SECONDS)] = 15
    shutdown_seconds: SecondsOrZero = 8
    worker_threads: Count = 16
    thread_wait_seconds: Count = 30
    thread_queue: CountOrZero = 1_000
    wsgi_streams: CountOrZero = 0
    mount_without: Names = ()
    otel_resource_uris: bool = False
    otel_users: bool = False


_KEYS: Final = [each.name.upper() for each in fields(Settings)]
_IN_WORDS: Final[dict[Any, str]] = {
    str | Callable[..., Any] | None: "a dotted path or a callable",
    str: "text",
    str | None: "text or None",
    int: "a whole number",
    int | None: "a whole number or None",
    float: "a number",
    bool: "True or False",
    tuple[str, ...]: "a list",
    dict[str, Any]: "a dict",
    dict[str, str]: "a dict of texts",
    dict[str, tuple[str, ...]]: "a dict of lists",
}
_WHY_NO_MORE: Final = {
    "session_cache_seconds": "for so long a session that has ended may still be let in",
    "own_token_max_days": "it is a hundred years; None stands for ever",
    "anonymous_sessions_share": "it is a part of MAX_SESSIONS; write 0.5 for half of them",
}


def read_settings(raw: Any) -> Settings:
    """Check the dict ``raw`` and return it as :class:`Settings`.

    Raises ``ImproperlyConfigured``, which says of each mistake what is meant.
    """
    if raw is None:
        return Settings()
    if not isinstance(raw, dict):
        raise ImproperlyConfigured(f"DJANGO_MCP must be a dict, not {type(raw).__name__}.")
    problems = list(_misnamed(raw))
    # As the site writes it, for messages: perhaps by the old name.
    written = {key: key for key in raw if key in _KEYS}
    written |= {new: old for old, new in OLD_NAMES.items() if old in raw}
    try:
        settings = Settings(**{key.lower(): raw[name] for key, name in written.items()})
    except ValidationError as error:
        wrong = error.errors(include_url=False)
        problems += [_describe(written[str(each["loc"][0]).upper()], each) for each in wrong]
    if problems:
        raise ImproperlyConfigured("\n".join(dict.fromkeys(problems)))
    return settings


def _misnamed(raw: dict[Any, Any]) -> Iterator[str]:
    for key in raw:
        new = OLD_NAMES.get(key)
        if new is not None and new in raw:
            yield f"DJANGO_MCP has both {new!r} and {key!r}, which is its old name: remove {key!r}."
        elif new is None and key not in _KEYS:
            near = difflib.get_close_matches(str(key).upper(), _KEYS, cutoff=0.7)
            names = " or ".join(map(repr, near))
            hint = f" Did you mean {names}?" if near else f" Known keys: {', '.join(_KEYS)}."
            yield f"DJANGO_MCP has no key {key!r}.{hint}"


def _describe(key: str, error: ErrorDetails) -> str:
    where, given, about = f"DJANGO_MCP[{key!r}]", error["input"], error.get("ctx", {})
    match error["type"]:
        case "value_error":
            return f"{where}: {about['error']}."
        case "string_too_long":
            return (
                f"{where} may have {about['max_length']} characters at most, as a row of its "
                "sessions has."
            )
        case "greater_than_equal":
            return f"{where} must be at least {about['ge']:g}, not {given}."
        case "greater_than":
            return f"{where} must be more than {about['gt']:g}, not {given}."
        case "less_than_equal":
            why = _WHY_NO_MORE[str(error["loc"][0])]
            return f"{where} may be {about['le']:g} at most, not {given}: {why}."
    meant = _IN_WORDS[get_type_hints(Settings)[str(error["loc"][0])]]
    return f"{where} must be {meant}, not {type(given).__name__}."


class SiteSettings(NamedTuple):
    """What Django's own settings say of each request to an endpoint.

    ``ALLOWED_HOSTS`` is not one of them: ``setup_test_environment`` changes it without a signal.
    """

    use_x_forwarded_host: bool
    secure_ssl_redirect: bool
    root_urlconf: Any


def _read_site_settings() -> SiteSettings:
    return SiteSettings(
        django_settings.USE_X_FORWARDED_HOST,
        django_settings.SECURE_SSL_REDIRECT,
        getattr(django_settings, "ROOT_URLCONF", ""),
    )


class _Current(dict[None, T]):
    """The settings in force, from when they are first asked for until they change."""

    def __init__(self, read: Callable[[], T]) -> None:
        super().__init__()
        self._read = read

    def __missing__(self, key: None) -> T:
        # Under the lock: what is stored after a change has been read after it.
        with _reading():
            found = self[key] = self._read()
        return found


_current: Final = _Current(lambda: read_settings(getattr(django_settings, "DJANGO_MCP", None)))
_current_of_site: Final = _Current(_read_site_settings)
_reading: Final = PerProcess(Lock)

# Where they are known this takes no call of a Python function: each request asks several times.
get_settings: Final[Callable[[], Settings]] = partial(_current.__getitem__, None)
"""Return the settings in force; raises ``ImproperlyConfigured`` for what cannot be meant."""
get_site_settings: Final[Callable[[], SiteSettings]] = partial(_current_of_site.__getitem__, None)
"""Return those of Django's that are in force."""


@receiver(setting_changed)
def _forget(*, setting: str, **kwargs: Any) -> None:
    """Read the settings anew, after ``override_settings``."""
    with _reading():
        if setting == "DJANGO_MCP":
            _current.clear()
        elif setting.lower() in SiteSettings._fields:
            _current_of_site.clear()
