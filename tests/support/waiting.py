"""Waiting for conditions, with bounds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from django.db import connections

BOUND = 20


async def until(ask: Callable[[], Any], expected: Any) -> None:
    """Wait until ``ask``, which may touch the database, answers what is expected."""
    async with asyncio.timeout(BOUND):
        while (found := await in_thread(ask)) != expected:
            await asyncio.sleep(0.02)
    assert found == expected


async def in_thread(function: Callable[..., Any], *args: Any) -> Any:
    """Run what touches the database on a thread of its own."""

    def run() -> Any:
        try:
            return function(*args)
        finally:
            connections.close_all()

    return await asyncio.to_thread(run)
