"""How the package talks to its database: which alias, and what a failure means."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import InterfaceError, OperationalError

from ..conf import get_settings
from ..protocol.errors import Unavailable

logger = logging.getLogger("django_mcp.store")


def alias() -> str:
    """Return the database alias of all protocol rows: reads too, since a replica may lag."""
    return get_settings().database


@contextmanager
def available() -> Iterator[None]:
    """Turn a database that cannot be reached into an answer that says so (HTTP 503)."""
    try:
        yield
    except (OperationalError, InterfaceError) as error:
        logger.error("The database cannot be used: %s", error)
        raise Unavailable("The server's database is unavailable; try again") from error
