"""In which partition the present code runs: one context variable, "" where there are none.

See :mod:`django_mcp.partitions`. It is read where objects are made, which carry it from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

PARTITION: Final[ContextVar[str]] = ContextVar("mcp_partition", default="")

# A method of C's: each request asks several times, and it calls no Python function.
current_partition: Final[Callable[[], str]] = PARTITION.get
"""Return the name of the partition that the present code has been put into, or ""."""


@contextmanager
def noted_partition(name: str) -> Iterator[None]:
    """Let :func:`current_partition` return ``name`` within the block; nothing else is entered."""
    token = PARTITION.set(name)
    try:
        yield
    finally:
        PARTITION.reset(token)
