"""Tasks that nobody waits for."""

from __future__ import annotations

import asyncio
import gc
import weakref

from django_mcp.running.eager_tasks import keep, start
from tests.support.sites import run


def test_a_task_lasts_though_nobody_else_has_it_and_no_longer_than_it_runs():
    async def main() -> tuple[bool, bool]:
        begun, reached = asyncio.Event(), asyncio.Event()

        async def work() -> None:
            await begun.wait()
            reached.set()

        task = weakref.ref(keep(start(work())))
        begun.set()
        gc.collect()
        await reached.wait()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        gc.collect()
        return reached.is_set(), task() is None

    assert run(main()) == (True, True)
