"""What Django means to the user's functions: transactions, missing objects, values without JSON."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

from django.core.exceptions import ObjectDoesNotExist
from django.db import connections, models, transaction
from django.http import Http404
from django.utils.functional import Promise

from ..store.database import available


class DjangoBridge:
    """Implements :class:`django_mcp.server.ports.Bridge`."""

    not_found: tuple[type[Exception], ...] = (ObjectDoesNotExist, Http404)

    @contextmanager
    def scope(self, *, atomic: bool) -> Iterator[None]:
        """Run a synchronous function as the site's settings ask.

        The view itself is outside ``ATOMIC_REQUESTS``, so that protocol rows never wait for user
        code; the function gets what the setting promises.
        """
        with ExitStack() as stack:
            for alias in _transactional_aliases() if atomic else ():
                stack.enter_context(transaction.atomic(using=alias))
            yield

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


def _transactional_aliases() -> list[str]:
    asked = [a for a in connections if connections.settings[a].get("ATOMIC_REQUESTS")]
    opened = [c.alias for c in connections.all(initialized_only=True) if c.in_atomic_block]
    return list(dict.fromkeys((*asked, *opened)))
