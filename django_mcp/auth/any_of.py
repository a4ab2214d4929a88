"""Several ways to come in at one endpoint."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from asgiref.sync import iscoroutinefunction
from django.contrib.auth import get_user
from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject
from django.utils.module_loading import import_string

from ..native_threads import waiting_for
from ..protocol.headers import bearer_token
from .principal import Principal
from .refusal import Refusal

Auth = str | Callable[..., Any]


class AnyOf:
    """What :func:`any_of` returns."""

    def __init__(self, members: Sequence[Auth]) -> None:
        self.members = tuple(members)
        # An asynchronous one cannot be waited for on the loop on which it would be called.
        self.nonblocking = all(
            getattr(each, "nonblocking", False) and not _is_async(each) for each in members
        )
        """Whether it waits for nothing, as far as is known before paths are imported."""

    def __repr__(self) -> str:
        return f"any_of({', '.join(map(repr, self.members))})"

    @cached_property
    def callables(self) -> tuple[Callable[..., Any], ...]:
        """The members, imported: once they are needed, for servers may be made before models."""
        return tuple(
            import_string(each) if isinstance(each, str) else each for each in self.members
        )

    @property
    def takes_oauth_tokens(self) -> bool:
        """Whether any member takes tokens of ``AUTHORIZATION_SERVERS``."""
        return any(getattr(each, "takes_oauth_tokens", True) for each in self.callables)

    def __call__(self, request: HttpRequest) -> Any:
        """Return what the first member says that knows the credentials; else the refusal of all."""
        refusals: list[Refusal] = []
        shown = bearer_token(request.headers)
        user = vars(request).get("user")
        for auth in self.callables:
            if shown and not getattr(auth, "reads_authorization", True):
                # Who shows a token is held to it, and let in by nothing that does not look at it.
                continue
            verdict = _ask(auth, request)
            if isinstance(verdict, Principal):
                return verdict
            if verdict is None or getattr(verdict, "is_anonymous", False):
                verdict = Refusal()
            if not isinstance(verdict, Refusal) or verdict.recognised:
                return verdict
            refusals.append(verdict)
            _give_back(request, user)
        return _joint(refusals)


def any_of(*auths: str | Callable[..., Any]) -> Any:
    """Return a callable for ``AUTH`` that lets in whomever any of these lets in.

    ``auths`` are callables or dotted paths, asked in this order. The first that lets the caller in
    decides, as does the first whose :class:`Refusal` is ``recognised``: the credential is one of
    its own and does not hold. A request with a bearer token is let in by nothing that does not look
    at tokens. Where all refuse, the answer has the challenges of all that were asked.
    """
    if not auths:
        raise TypeError("any_of() takes one callable for AUTH at least, or its dotted path.")
    return AnyOf(auths)


def _ask(auth: Callable[..., Any], request: HttpRequest) -> Any:
    return waiting_for(auth)(request) if _is_async(auth) else auth(request)


def _give_back(request: HttpRequest, user: Any) -> None:
    """Let ``request.user`` be whom Django knows: ``user``, or at the mount whoever that is.

    REST framework puts there whom it has found, also if that is nobody.
    """
    if user is not None:
        request.user = user
    elif "user" in vars(request):
        vars(request)["user"] = SimpleLazyObject(lambda: get_user(request))


def _is_async(auth: Any) -> bool:
    return iscoroutinefunction(auth) or iscoroutinefunction(type(auth).__call__)


def _joint(refusals: Sequence[Refusal]) -> Refusal:
    if not refusals:
        return Refusal()
    # RFC 9110, section 11.6.1: a response may have several challenges.
    challenges = dict.fromkeys(
        challenge for each in refusals for challenge in (each.challenge, *each.more_challenges)
    )
    first, *others = challenges
    return Refusal(
        " ".join(dict.fromkeys(each.message for each in refusals)),
        status=401 if any(each.status == 401 for each in refusals) else refusals[0].status,
        challenge=first,
        headers={name: text for each in reversed(refusals) for name, text in each.headers.items()},
        more_challenges=tuple(others),
    )
