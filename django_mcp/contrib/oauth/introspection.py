"""``introspection_auth``: the value of ``AUTH`` that asks the authorization server about tokens.

RFC 7662. An answer counts for a minute at most, by a digest of the token.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock, Thread
from time import monotonic
from typing import Any, Final
from urllib.parse import quote_plus

from django.http import HttpRequest
from django.views.decorators.debug import sensitive_variables

from ...auth import Principal, ProtectedResource, Refusal
from ...conf import Settings, get_settings
from ...forks import PerProcess
from ...protocol.errors import Unavailable
from ...protocol.headers import bearer_token
from .fetching import FetchFailed, fetch_json
from .issuers import issuer_of
from .tokens import (
    CLOSED,
    INVALID,
    MAX_TOKEN_CHARACTERS,
    Objection,
    check_claims,
    principal_of,
    problems_of,
    resource_of,
)

logger = logging.getLogger("django_mcp.contrib.oauth")

CACHE_SECONDS: Final = 60
"""For so long an answer counts, if the token does not end before."""
MAX_CACHED: Final = 10_000
"""Tokens that a process knows of, of those that hold, and of others."""
ASKED_AT_ONCE: Final = 20
"""Tokens about which the server is asked again, one after the other, before it is looked anew."""
THREAD: Final = "mcp-introspection"


class _Answers:
    """Answers by the digest of the token, the oldest forgotten first. Safe from any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._until: OrderedDict[bytes, tuple[float, Mapping[str, Any]]] = OrderedDict()

    def get(self, digest: bytes) -> Mapping[str, Any] | None:
        """Return the answer, as long as it counts."""
        until, answer = self._until.get(digest, (0.0, None))
        return answer if monotonic() < until else None

    def keep(self, digest: bytes, answer: Mapping[str, Any], seconds: float) -> None:
        """Let an answer count for so many seconds."""
        with self._lock:
            self._until[digest] = (monotonic() + seconds, answer)
            self._until.move_to_end(digest)
            while len(self._until) > MAX_CACHED:
                self._until.popitem(last=False)


# Apart, so that who sends many that do not hold has none forgotten that does.
_active: Final = PerProcess(_Answers)
_others: Final = PerProcess(_Answers)


def forget_answers() -> None:
    """Forget all answers, and what has kept from getting some."""
    _active.forget()
    _others.forget()
    _rechecks.forget()


@dataclass(frozen=True, slots=True)
class _Shown:
    """A token that somebody has come in with, to ask about it again."""

    token: str = field(repr=False)
    resource: ProtectedResource
    ends: float
    """When it expires, as the clock has it."""


@sensitive_variables("token")
def introspection_auth(request: HttpRequest) -> Principal | Refusal:
    """Return the principal whose token the authorization server says is active.

    The token must name the endpoint's URL as its audience. A refusal never says why, but the log
    does.
    """
    resource = resource_of(request)
    if resource is None:
        return CLOSED
    token = bearer_token(request.headers)
    if not token:
        return Refusal(resource.advice)
    claims = _asked(token, resource) if len(token) <= MAX_TOKEN_CHARACTERS else {}
    if claims.get("active") is not True:
        logger.info("Refused a token: the authorization server does not know it as active.")
        return Refusal(INVALID)
    try:
        _check(claims, resource)
    except Objection as objection:
        logger.info("Refused a token: %s.", objection)
        return Refusal(INVALID, recognised=True)
    ends = claims.get("exp", float("inf"))
    shown = _Shown(token, resource, ends)
    return principal_of(claims, recheck=_revoked, credential=shown, comes_back=True)


def _problems(settings: Settings, authorization_servers: tuple[str, ...]) -> list[str]:
    found = problems_of(settings, authorization_servers)
    if not settings.introspection_client_id:
        found.append('Nobody asks about tokens: DJANGO_MCP["INTROSPECTION_CLIENT_ID"] is empty')
    if len(authorization_servers) > 1:
        found.append("It can ask one authorization server only, and there are several")
    return found


introspection_auth.problems = _problems  # type: ignore[attr-defined]


def _check(claims: Mapping[str, Any], resource: ProtectedResource) -> None:
    if claims.get("iss", resource.authorization_servers[0]) not in resource.token_issuers:
        raise Objection("another issuer has issued it")
    if claims.get("token_type", "Bearer") not in ("Bearer", "bearer", "access_token"):
        raise Objection("it is a token of another type")
    check_claims(claims, resource, needs_end=False)


@sensitive_variables("token", "form", "secret")
def _asked(token: str, resource: ProtectedResource) -> Mapping[str, Any]:
    """Return what the authorization server says of a token; raises :class:`Unavailable`."""
    settings, issuer = get_settings(), resource.authorization_servers[0]
    digest = _digest(token, issuer)
    known = _known(digest)
    if known is not None:
        return known
    url = settings.introspection_url or issuer_of(issuer).metadata.get("introspection_endpoint")
    # RFC 6749, section 2.3.1: either is encoded as in a form.
    client = quote_plus(settings.introspection_client_id)
    secret = quote_plus(settings.introspection_client_secret)
    form = {"token": token, "token_type_hint": "access_token"}
    try:
        if not url:
            raise FetchFailed(f"{issuer} has no introspection_endpoint")
        answer = fetch_json("POST", str(url), auth=(client, secret), data=form)
    except FetchFailed as error:
        logger.warning("A token cannot be asked about: %s.", error)
        raise Unavailable("The authorization server cannot be reached; try again later") from None
    is_active, ends = answer.get("active") is True, answer.get("exp")
    left = ends - time.time() if isinstance(ends, (int, float)) else CACHE_SECONDS
    cache = _active() if is_active else _others()
    cache.keep(digest, answer if is_active else {"active": False}, min(CACHE_SECONDS, left))
    return answer


@sensitive_variables("token")
def _digest(token: str, issuer: str) -> bytes:
    # What one server says is not what another would.
    return hashlib.sha256(f"{issuer}\n{token}".encode()).digest()


def _known(digest: bytes) -> Mapping[str, Any] | None:
    return _active().get(digest) or _others().get(digest)


def _revoked(principals: Sequence[Principal]) -> list[Principal]:
    """Return those whose tokens the server knows as active no longer, and before their time.

    One that has simply expired ends nothing: its client will come with another. What is not known
    any more is asked meanwhile, for the next look. Raises what keeps it from being asked.
    """
    now, rechecks = time.time(), _rechecks()
    ended, unknown = [], []
    for each in principals:
        shown: _Shown = each.credential
        answer = _known(_digest(shown.token, shown.resource.authorization_servers[0]))
        if now >= shown.ends:
            continue
        if answer is None:
            unknown.append(shown)
        elif answer.get("active") is not True:
            ended.append(each)
    if unknown:
        rechecks.begin(unknown[:ASKED_AT_ONCE])
        if rechecks.failure is not None and not ended:
            raise rechecks.failure
    return ended


class _Rechecks:
    """Asks about tokens again, on a thread of its own.

    Whoever looks at what is open also renews the leases of all calls, and must not wait for another
    server.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._is_asking = False
        self.failure: Exception | None = None
        """What has kept the last one from being asked."""

    def begin(self, shown: Sequence[_Shown]) -> None:
        """Ask about tokens, unless others are being asked about."""
        with self._lock:
            if self._is_asking:
                return
            self._is_asking = True
        try:
            Thread(target=self._ask, args=(shown,), name=THREAD, daemon=True).start()
        except RuntimeError as error:  # the system has no more threads to give
            self.failure, self._is_asking = error, False

    def _ask(self, shown: Sequence[_Shown]) -> None:
        try:
            for each in shown:
                _asked(each.token, each.resource)
            self.failure = None
        except Exception as error:
            self.failure = error
        finally:
            self._is_asking = False


_rechecks: Final = PerProcess(_Rechecks)
