"""Partitions: places where the rows of one tenant are, apart from those of all others.

A partition is a schema of django-tenants, or a database alias. ``DJANGO_MCP["PARTITION"]`` names
the object that knows them: ``django_mcp.contrib.tenants.TenantSchemas`` for the one kind, a
subclass of :class:`DatabasePartitions` for the other, or any other :class:`Partitions`. Nothing of
one partition is known in another: no session, token, state, cursor or event, no limit is shared.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from typing import Any, TypeVar

from django.core.checks import CheckMessage
from django.core.exceptions import ImproperlyConfigured
from django.db.models import Model
from django.http import HttpRequest
from django.utils.module_loading import import_string

from .conf import get_settings
from .current_partition import current_partition, noted_partition

T = TypeVar("T")

__all__ = ["DatabasePartitions", "PartitionRouter", "Partitions", "enter_partition"]


class Partitions(ABC):
    """Knows the partition of a request, all partitions, and how to enter one.

    A partition has a name, which is not empty. There is one object for each process, used from any
    thread.
    """

    @abstractmethod
    def of_request(self, request: HttpRequest) -> str | None:
        """Return the partition of a request; ``None`` if it has none, which is answered with 404.

        At the view all middleware has run; at the mount none has, and a request without partition
        is left to Django. It may touch the database, outside of any partition, or be asynchronous.
        With :func:`django_mcp.auth.nonblocking` it asks nobody, and is called on the event loop.
        """

    @abstractmethod
    def all(self) -> Iterable[str]:
        """Return all partitions there are. May touch the database, outside of any partition."""

    @abstractmethod
    def enter(self, partition: str) -> AbstractContextManager[Any]:
        """Enter a partition: what the present thread asks of the database is asked there.

        It is entered on each thread that runs code for a request, also where it has been entered
        before, and left before the thread serves another.
        """

    def enter_for_bookkeeping(self, partition: str) -> AbstractContextManager[Any]:
        """Enter a partition where nothing but statements of this package follows: many times a
        second, on a thread of the package's own. By default as :meth:`enter`.
        """
        return self.enter(partition)

    def recall(self, request: HttpRequest) -> str | None:
        """Return what :meth:`of_request` would, if nobody has to be asked; else ``None``.

        It is asked first, on the event loop as well. By default nothing is known.
        """
        return None

    def here(self) -> str:
        """Return the partition in which the site has put the present thread, if it has; else "".

        For code that no request to an endpoint has led here: the admin, management commands, jobs.
        """
        return ""

    def database(self, partition: str) -> str:
        """Return the alias of the database with the rows of a partition; "" stands for none.

        By default ``DJANGO_MCP["DATABASE"]``.
        """
        return get_settings().database

    def middleware(self) -> Collection[str]:
        """Return the paths of middleware whose work is done by this object at the mount."""
        return ()

    def check(self) -> Iterable[CheckMessage]:
        """Yield what a site has to mend, for ``manage.py check``."""
        return ()


class DatabasePartitions(Partitions):
    """A database for each partition, which has the name of its alias in ``DATABASES``.

    With :class:`PartitionRouter` in ``DATABASE_ROUTERS`` the site's models are there as well. A
    subclass says which request belongs where, and which aliases are partitions, if not all are.
    """

    def all(self) -> Iterable[str]:
        """Return all aliases in ``DATABASES`` but ``DJANGO_MCP["DATABASE"]``."""
        from django.db import connections  # noqa: PLC0415 - not before settings are there

        return [alias for alias in connections if alias != get_settings().database]

    def enter(self, partition: str) -> AbstractContextManager[Any]:
        """Do nothing: the router asks for the present partition each time."""
        return nullcontext()

    def database(self, partition: str) -> str:
        """Return the partition, which is an alias."""
        return partition or get_settings().database


class PartitionRouter:
    """A database router that has all models in the database of the present partition."""

    def db_for_read(self, model: type[Model], **hints: Any) -> str | None:
        """Return the alias to read from; outside of any partition that is for others to say."""
        return current_partition() or None

    def db_for_write(self, model: type[Model], **hints: Any) -> str | None:
        """Return the same, to write to."""
        return current_partition() or None


def partitions() -> Partitions | None:
    """Return what ``DJANGO_MCP["PARTITION"]`` names; raises ``ImproperlyConfigured``."""
    path = get_settings().partition
    return None if path is None else _loaded(path)


def here() -> str:
    """Return the partition in which the present code runs, however it has come there; or ""."""
    kind = partitions()
    return "" if kind is None else kind.here() or current_partition()


@contextmanager
def enter_partition(name: str) -> Iterator[None]:
    """Run the block in a partition: for management commands, jobs, middleware and tests."""
    kind = partitions()
    if kind is None:
        raise ImproperlyConfigured('There are no partitions: DJANGO_MCP["PARTITION"] is not set.')
    with noted_partition(name), kind.enter(name):
        yield


@contextmanager
def enter_for_bookkeeping(name: str) -> Iterator[None]:
    """Do the same for statements of this package alone, on a thread of its own."""
    kind = partitions()
    assert kind is not None
    with noted_partition(name), kind.enter_for_bookkeeping(name):
        yield


def call_in(name: str, function: Callable[..., T], /, *args: Any) -> T:
    """Call ``function``, whose context has been put into a partition, on a thread that has not."""
    kind = partitions()
    if kind is None:
        return function(*args)
    with kind.enter(name):
        return function(*args)


@lru_cache(maxsize=8)
def _loaded(path: str) -> Partitions:
    try:
        found: Any = import_string(path)
    except ImportError as error:
        raise ImproperlyConfigured(
            f'DJANGO_MCP["PARTITION"] cannot be imported: {error}'
        ) from error
    found = found() if isinstance(found, type) else found
    if not isinstance(found, Partitions):
        raise ImproperlyConfigured(
            f'DJANGO_MCP["PARTITION"] is {path!r}, which is no django_mcp.partitions.Partitions.'
        )
    return found
