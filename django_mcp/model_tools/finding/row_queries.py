"""Notices where each row of a page costs queries of its own, and says what to do about it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connections

logger = logging.getLogger("django_mcp.server")


@contextmanager
def noticing_queries(label: str, alias: str, rows: int) -> Iterator[None]:
    """Log a warning if what is done with ``rows`` that are loaded takes a query for each."""
    number = 0

    def count(execute: Callable[..., Any], *args: Any) -> Any:
        nonlocal number
        number += 1
        return execute(*args)

    with connections[alias].execute_wrapper(count):
        yield
    if rows > 1 and number >= rows:
        logger.warning(
            "%s: to show %d rows took %d queries. What a property, a method or a __str__ looks up "
            "in other rows is to be loaded with them: by select_related() or prefetch_related() "
            "in get_queryset()",
            label,
            rows,
            number,
        )
