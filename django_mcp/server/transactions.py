"""The transactions of the site around its functions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager

from django.db import connections, transaction

from .errors import QuestionMisplaced


def atomic_aliases(transactions: Sequence[str] = ()) -> Sequence[str]:
    """Return the databases of which a synchronous function of the site gets a savepoint.

    They are those with one of ``transactions``, which are open, or with ``ATOMIC_REQUESTS``: so
    what a failing function wrote is rolled back. The view itself is outside ``ATOMIC_REQUESTS``, so
    that protocol rows never wait for user code.
    """
    aliases = [name for name, each in connections.settings.items() if each.get("ATOMIC_REQUESTS")]
    return list(dict.fromkeys((*aliases, *transactions))) if transactions else aliases


def open_transactions() -> Sequence[str]:
    """Return the databases in which the present thread has opened a transaction."""
    return [c.alias for c in connections.all(initialized_only=True) if c.in_atomic_block]


@contextmanager
def savepoints(aliases: Sequence[str]) -> Iterator[None]:
    """Run a function of the site in a savepoint of each of these databases."""
    with ExitStack() as stack:
        for alias in aliases:
            stack.enter_context(_savepoint(alias))
        yield


def check_may_wait() -> None:
    """Refuse to wait for the client while a transaction is open, for it holds locks until its end.

    Raises :class:`~django_mcp.server.errors.QuestionMisplaced` with the cure.
    """
    for alias in open_transactions():
        if not _is_outermost(alias):
            raise QuestionMisplaced(
                f"A question inside a transaction (of the database {alias!r}) would hold its "
                "locks until the client answers. Ask before `with transaction.atomic():`, and "
                "if the site has ATOMIC_REQUESTS, register the function with atomic=False."
            )


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
