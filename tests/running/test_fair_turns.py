"""Callers take turns at what there is little of, and none of them keeps it from the others."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import Any

import pytest

from django_mcp.protocol.errors import Unavailable
from django_mcp.running.fair_turns import FairTurns
from tests.support.sites import run


class Queue:
    """Callers of one process, and who has got what, in order."""

    def __init__(self, size: int) -> None:
        self.turns = FairTurns(size)
        self.got: list[str] = []
        self.tasks: dict[str, list[asyncio.Task[None]]] = {}

    async def want(self, *callers: str) -> None:
        """Let callers want one each, one after the other."""
        for caller in callers:
            task = asyncio.create_task(self._take(caller))
            self.tasks.setdefault(caller, []).append(task)
            await asyncio.sleep(0)

    async def _take(self, caller: str) -> None:
        if not self.turns.take_now(caller):
            await self.turns.wait(caller)
        self.got.append(caller)

    async def end(self, *callers: str) -> None:
        """Let callers give one back each, one after the other."""
        for caller in callers:
            self.turns.give_back(caller)
            for _ in range(3):
                await asyncio.sleep(0)


def test_one_caller_may_have_all_while_nobody_else_wants_one():
    async def main() -> list[str]:
        queue = Queue(4)
        await queue.want(*"aaaaaa")
        assert (queue.turns.running, queue.turns.waiting) == (4, 2)
        await queue.end("a")
        for task in queue.tasks["a"]:
            task.cancel()
        return queue.got

    assert run(main()) == ["a"] * 5


def test_who_comes_does_not_wait_for_the_calls_of_one_caller():
    async def main() -> list[str]:
        queue = Queue(4)
        await queue.want(*"aaaaaa", "b", "c")
        assert (queue.turns.running, queue.turns.waiting) == (6, 2)
        # So many are borrowed, and no more: from here on others wait for a turn of their own.
        await queue.want("b", "d")
        assert (queue.turns.running, queue.turns.waiting) == (6, 4)
        await queue.end("b", "a", "a", "a", "c")
        for task in queue.tasks["a"]:
            task.cancel()
        return queue.got

    assert run(main()) == [*"aaaa", "b", "c", "b", "a", "d"]


def test_while_others_wait_nobody_gets_more_than_half():
    async def main() -> Counter[str]:
        queue = Queue(6)
        await queue.want(*"aaaaaa", *"bbbbbbbbb", *"aaaaaaaaa")
        assert Counter(queue.got) == {"a": 6, "b": 3}
        for _ in range(6):
            ends = "a" if queue.turns._held["a"] > 3 else "b"
            await queue.end(ends)
        held = Counter(queue.turns._held)
        for task in (*queue.tasks["a"], *queue.tasks["b"]):
            task.cancel()
        return held

    assert run(main()) == {"a": 3, "b": 3}


def test_callers_are_served_in_turn_however_many_wait_for_one():
    async def main() -> str:
        queue = Queue(1)
        await queue.want("x", *"aaaaa", *"bb", "c")
        for _ in range(8):
            await queue.end(queue.got[-1])
        return "".join(queue.got)

    assert run(main()) == "xabcabaaa"


def test_where_the_queue_is_full_who_waits_for_most_makes_room(settings):
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "THREAD_QUEUE": 4}

    async def main() -> Any:
        queue = Queue(1)
        await queue.want("x", *"aaaa", "a", "b", "c", "d", "e")
        await asyncio.sleep(0)
        refused = {
            caller: sum(each.done() and each.exception() is not None for each in tasks)
            for caller, tasks in queue.tasks.items()
        }
        assert queue.turns.waiting == 4
        for _ in range(4):
            await queue.end(queue.got[-1])
        return refused, "".join(queue.got)

    refused, got = run(main())
    # Where each waits for one, whoever comes is refused.
    assert refused == {"x": 0, "a": 4, "b": 0, "c": 0, "d": 0, "e": 1}
    assert got == "xabcd"


def test_who_waits_too_long_is_refused_and_leaves_nothing_behind(settings):
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "THREAD_WAIT_SECONDS": 1}

    async def main() -> Any:
        queue = Queue(1)
        await queue.want("x", "a")
        with pytest.raises(Unavailable):
            await queue.tasks["a"][0]
        assert (queue.turns.waiting, dict(queue.turns._queues)) == (0, {})
        await queue.end("x")
        return queue.turns.running

    assert run(main()) == 0


@pytest.mark.parametrize("served", [False, True])
def test_a_wait_that_is_cancelled_keeps_nothing(served):
    """Also if it got one in the very moment: the next gets that."""

    async def main() -> Any:
        queue = Queue(1)
        await queue.want("x", "a", "b")
        if served:
            queue.turns.give_back("x")
        queue.tasks["a"][0].cancel()
        if not served:
            await asyncio.sleep(0)
            queue.turns.give_back("x")
        await asyncio.wait([*queue.tasks["a"], *queue.tasks["b"]])
        assert queue.tasks["a"][0].cancelled()
        return queue.got, queue.turns.running, queue.turns.waiting

    assert run(main()) == (["x", "b"], 1, 0)


def test_who_gives_up_one_of_several_waits_keeps_the_turn():
    async def main() -> list[str]:
        queue = Queue(1)
        await queue.want("x", *"aa", "b")
        queue.tasks["a"][0].cancel()
        await asyncio.wait([queue.tasks["a"][0]])
        await queue.end("x", "a")
        return queue.got

    assert run(main()) == ["x", "a", "b"]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
def test_whatever_happens_no_more_than_that_runs_and_nobody_waits_in_vain(size):
    """Callers come, give up and end at random."""
    chance = random.Random(size)

    async def main() -> None:
        queue, most = Queue(size), 0
        for _ in range(600):
            what, caller = chance.randrange(5), chance.choice("aaaab" if size > 2 else "abc")
            if what < 3:
                await queue.want(caller)
            elif what == 3 and queue.tasks.get(caller):
                chance.choice(queue.tasks[caller]).cancel()
                await asyncio.sleep(0)
            elif queue.turns._held.get(caller):
                queue.turns.give_back(caller)
                await asyncio.sleep(0)
            turns, share = queue.turns, max(1, size // 2)
            most = max(most, turns.running)
            held = turns._held
            assert turns.running == sum(held.values()) <= size + size - share
            assert turns._borrowed == sum(max(0, each - share) for each in held.values())
            assert turns.waiting == sum(map(len, turns._queues.values()))
            assert turns.running >= size or not turns._queues
            if turns.running - turns._borrowed < size:
                assert all(held[each] >= share for each in turns._queues)
        for task in [each for tasks in queue.tasks.values() for each in tasks]:
            task.cancel()
        for caller in list(Counter(queue.turns._held).elements()):
            queue.turns.give_back(caller)
        assert most >= size
        assert queue.turns.running == queue.turns.waiting == 0

    run(main())
