"""A site of a test's own: its URLs, and the loop on which it is served."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from types import ModuleType
from typing import Any, TypeVar

from django_mcp.running.worker_threads import close_worker_threads
from django_mcp.store.ledger import close_ledger

T = TypeVar("T")


def urlconf(*patterns: Any) -> ModuleType:
    """Return a URLconf for ``settings.ROOT_URLCONF``, without a file."""
    module = ModuleType("urlconf")
    module.urlpatterns = list(patterns)  # type: ignore[attr-defined]
    return module


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a test's coroutine on a loop of its own, and leave no thread or connection behind."""

    async def main() -> T:
        try:
            return await coroutine
        finally:
            await asyncio.to_thread(close_ledger)
            await close_worker_threads()

    return asyncio.run(main())
