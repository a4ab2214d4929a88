"""The partition of a request, which is found before anything else is asked about it."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from typing import Any, Final

from django.db import InterfaceError, OperationalError

from ..current_partition import current_partition, noted_partition
from ..partitions import Partitions, partitions
from ..protocol.errors import ErrorCode, MCPError
from ..server.function_call import Runner
from ..store.database import has_loop, unavailable
from . import replies
from .request import IncomingRequest

NOT_HERE: Final = replies.error(
    None, MCPError(ErrorCode.INVALID_REQUEST, "There is no MCP server at this host"), 404
)
"""The reply to a request that belongs to no partition; the mount leaves it to Django instead."""


async def enter_partition_of(
    request: IncomingRequest, runner: Runner
) -> AbstractContextManager[Any] | None:
    """Enter the partition of a request, until what is returned is closed; ``None`` without one."""
    kind = partitions()
    assert kind is not None
    name = await _partition_of(request, kind, runner)
    if not name:
        return None
    inside = ExitStack()
    inside.enter_context(noted_partition(name))
    if not has_loop():
        # Middleware may have done so, but need not. What leaves the loop enters it on its thread.
        inside.enter_context(kind.enter(name))
    return inside


async def _partition_of(request: IncomingRequest, kind: Partitions, runner: Runner) -> str | None:
    django_request = request.django()
    # Middleware of the site may have entered one, also if that was for another reason.
    name = current_partition() or kind.recall(django_request)
    if name:
        return name
    try:
        found: str | None = await runner.run(kind.of_request, django_request)
    except (OperationalError, InterfaceError) as error:
        raise unavailable(error) from error
    return found
