"""What Django means to the user's functions: transactions, exceptions, values without JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any, Final, TypeVar
from uuid import UUID

from asgiref.sync import sync_to_async
from django.conf import settings
from django.core import signing
from django.db import connections, models, transaction
from django.utils.crypto import salted_hmac
from django.utils.functional import Promise

from ..conf import get_settings
from ..server.errors import QuestionMisplaced
from ..server.failures import Told
from ..server.ports import StateRefused
from ..server.questions.fields import Form
from ..store.access.redeemed_states import redeem
from ..store.database import available
from . import failures
from .forms import form_of

T = TypeVar("T")


class DjangoBridge:
    """Implements :class:`django_mcp.server.ports.Bridge`."""

    @property
    def debug(self) -> bool:
        """``DEBUG``."""
        return settings.DEBUG

    def told(self) -> Mapping[type[BaseException], Told]:
        """Return the table of exceptions."""
        return failures.told()

    def announce(self, error: BaseException, request: Any) -> None:
        """Send Django's signal."""
        failures.announce(error, request)

    def scope(self, *, atomic: bool) -> AbstractContextManager[None]:
        """Run a synchronous function as the site's settings ask.

        The view itself is outside ``ATOMIC_REQUESTS``, so that protocol rows never wait for user
        code; the function gets what the setting promises.
        """
        aliases = _transactional_aliases() if atomic else ()
        return _savepoints(aliases) if aliases else _PLAIN

    def available(self) -> AbstractContextManager[None]:
        """Answer 503 where the database cannot be reached."""
        return available()

    def jsonable(self, value: Any) -> Any:
        """Return text for lazy translations; say what to return instead of a model."""
        if isinstance(value, Promise):
            return str(value)
        kind = type(value).__name__
        if isinstance(value, models.Model):
            raise TypeError(
                f"a {kind} instance has no JSON form. Return a pydantic model made of it (with "
                f"from_attributes=True: {kind}Out.model_validate(instance)), or a dict"
            )
        if isinstance(value, (models.QuerySet, models.Manager)):
            name = value.model.__name__
            raise TypeError(
                f"a {kind} of {name} has no JSON form. Return a list of pydantic models "
                f"([{name}Out.model_validate(each) for each in queryset]), or list(queryset"
                ".values(...))"
            )
        raise TypeError(f"{kind} has no JSON form. Return plain values or pydantic models")

    async def blocking(self, function: Callable[..., T], /, *args: Any) -> T:
        """Run ``function`` where Django runs the ORM of asynchronous code."""
        return await sync_to_async(function)(*args)

    def check_may_wait(self) -> None:
        """Refuse to wait while a transaction is open, for it holds locks until its end."""
        for alias in _open_transactions():
            if not _is_outermost(alias):
                raise QuestionMisplaced(
                    f"A question inside a transaction (of the database {alias!r}) would hold its "
                    "locks until the client answers. Ask before `with transaction.atomic():`, and "
                    "if the site has ATOMIC_REQUESTS, register the function with atomic=False."
                )

    def form(self, value: Any) -> Form | None:
        """Return a form class of Django's as one to be asked."""
        return form_of(value)

    def keys(self, purpose: str) -> Sequence[bytes]:
        """Derive them from ``SECRET_KEY``, and from ``SECRET_KEY_FALLBACKS``."""
        secrets = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
        return [
            salted_hmac("django_mcp.keys", purpose, each, algorithm="sha256").digest()
            for each in secrets
        ]

    def seal(self, state: dict[str, Any]) -> str:
        """Sign ``state`` with ``SECRET_KEY``, and note the time."""
        return signing.dumps(state, salt=_SALT, compress=True)

    def unseal(self, text: str) -> dict[str, Any]:
        """Return what was sealed; ``SECRET_KEY_FALLBACKS`` are honoured."""
        max_age = get_settings().state_max_age_seconds
        try:
            state: dict[str, Any] = signing.loads(text, salt=_SALT, max_age=max_age)
        except signing.BadSignature as error:
            raise StateRefused(str(error)) from error
        return state

    def redeem(self, state: UUID) -> bool:
        """Let the database decide who comes first."""
        return redeem(state)


_PLAIN: Final = nullcontext()

_SALT: Final = "django_mcp.requestState.1"
"""To be counted up with the form of the state, so that no other form is taken for it."""


@contextmanager
def _savepoints(aliases: Sequence[str]) -> Iterator[None]:
    with ExitStack() as stack:
        for alias in aliases:
            stack.enter_context(_savepoint(alias))
        yield


def _savepoint(alias: str) -> AbstractContextManager[None]:
    savepoint = transaction.atomic(using=alias)
    if not connections.settings[alias].get("ATOMIC_REQUESTS") and _is_outermost(alias):
        # Only a test's own transaction is around it, which Django overlooks where it refuses to
        # nest. The savepoint is there for its sake alone, so it is to be overlooked, too.
        savepoint._from_testcase = True  # type: ignore[attr-defined]
    return savepoint


def _is_outermost(alias: str) -> bool:
    try:
        # Without a savepoint of its own it does nothing but check.
        with transaction.atomic(using=alias, savepoint=False, durable=True):
            return True
    except RuntimeError:
        return False


def _open_transactions() -> list[str]:
    return [c.alias for c in connections.all(initialized_only=True) if c.in_atomic_block]


def _transactional_aliases() -> list[str]:
    asked = [name for name, each in connections.settings.items() if each.get("ATOMIC_REQUESTS")]
    return list(dict.fromkeys((*asked, *_open_transactions())))
