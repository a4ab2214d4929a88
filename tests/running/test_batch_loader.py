"""Those who ask at the same time share a question, and nothing else."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from django_mcp.conf import Settings
from django_mcp.protocol.errors import Unavailable
from django_mcp.running import batch_loader, worker_threads
from django_mcp.running.batch_loader import BatchLoader
from django_mcp.running.fair_turns import too_busy
from django_mcp.store.prepared import MOST
from tests.support.sites import run
from tests.support.streams import BOUND


class Slow:
    """Finds the length of each key; begins and ends when a test wants it to."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.begun = threading.Semaphore(0)
        self.may_end = threading.Semaphore(0)
        self.error: Exception | None = None

    def __call__(self, keys: Sequence[str]) -> dict[str, int]:
        self.asked.append(list(keys))
        self.begun.release()
        assert self.may_end.acquire(timeout=BOUND)
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        return {key: len(key) for key in keys if key != "none"}

    async def has_begun(self) -> None:
        """Wait until a question is under way."""
        assert await asyncio.to_thread(self.begun.acquire, timeout=BOUND)

    def end(self, number: int = 1) -> None:
        """Let so many questions be answered."""
        self.may_end.release(number)


@pytest.fixture
def slow() -> Iterator[Slow]:
    made = Slow()
    yield made
    made.end(100)


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No machine is so slow that a question seems to hang."""
    monkeypatch.setattr(batch_loader, "PATIENCE_SECONDS", 3600)


async def asking(asked: BatchLoader[str, int], *keys: str) -> list[asyncio.Future[Any]]:
    """Ask for each of the keys, one after the other."""
    found = [asyncio.ensure_future(asked.find(key)) for key in keys]
    await asyncio.sleep(0)
    return found


async def busy_asking(slow: Slow) -> tuple[BatchLoader[str, int], asyncio.Future[Any]]:
    """Return what has begun to ask for "a", and who waits for that."""
    asked = BatchLoader(slow)
    (first,) = await asking(asked, "a")
    await slow.has_begun()
    return asked, first


def test_who_is_alone_asks_at_once(slow):
    async def main():
        slow.end()
        return await BatchLoader(slow).find("abc")

    assert run(main()) == 3
    assert slow.asked == [["abc"]]


def test_who_comes_meanwhile_is_part_of_the_next_question(slow):
    async def main():
        asked, first = await busy_asking(slow)
        others = await asking(asked, "bb", "none", "ccc")
        slow.end(2)
        return await asyncio.gather(first, *others)

    assert run(main()) == [1, 2, None, 3]
    assert slow.asked == [["a"], ["bb", "none", "ccc"]]


def test_nobody_is_told_what_was_asked_before_he_came(slow):
    """A session may have ended since."""

    async def main():
        asked, first = await busy_asking(slow)
        second = await asking(asked, "a")
        slow.end(2)
        return await asyncio.gather(first, *second)

    assert run(main()) == [1, 1]
    assert slow.asked == [["a"], ["a"]]


def test_there_is_a_limit_to_one_question(slow, monkeypatch):
    monkeypatch.setattr(batch_loader, "MOST", 2)

    async def main():
        asked, first = await busy_asking(slow)
        others = await asking(asked, "2", "3", "4", "5", "6")
        slow.end(4)
        return await asyncio.gather(first, *others)

    assert run(main()) == [1] * 6
    assert slow.asked == [["a"], ["2", "3"], ["4", "5"], ["6"]]


def test_an_error_is_told_to_all_who_asked_and_to_nobody_else(slow):
    async def main():
        asked, first = await busy_asking(slow)
        others = await asking(asked, "bb", "ccc")
        slow.end()
        assert await first == 1
        await slow.has_begun()
        last = await asking(asked, "dddd")
        slow.error = LookupError("planted")
        slow.end(2)
        failed = await asyncio.gather(*others, return_exceptions=True)
        return failed, await last[0]

    failed, last = run(main())
    assert [str(each) for each in failed] == ["planted"] * 2
    assert last == 4


def test_the_error_of_who_was_alone_holds_up_nobody(slow):
    async def main():
        asked, first = await busy_asking(slow)
        second = await asking(asked, "bb")
        slow.error = LookupError("planted")
        slow.end(2)
        with pytest.raises(LookupError):
            await first
        return await second[0]

    assert run(main()) == 2


def test_who_goes_takes_nobody_along(slow):
    async def main():
        asked, first = await busy_asking(slow)
        others = await asking(asked, "bb", "ccc")
        first.cancel()
        others[0].cancel()
        slow.end(2)
        return await others[1]

    assert run(main()) == 3


def test_a_question_that_hangs_holds_up_others_for_a_while_only(slow, monkeypatch):
    async def main():
        asked, hanging = await busy_asking(slow)
        waiting = await asking(asked, "bb")
        monkeypatch.setattr(batch_loader, "PATIENCE_SECONDS", 0)
        late = await asking(asked, "ccc")
        await slow.has_begun()
        # Two are under way now, and either may end first.
        slow.end(2)
        return await asyncio.gather(hanging, *waiting, *late)

    assert run(main()) == [1, 2, 3]
    assert slow.asked == [["a"], ["bb", "ccc"]]


def test_who_waits_behind_a_question_that_hangs_need_not_be_freed_by_somebody_else(
    slow, monkeypatch
):
    monkeypatch.setattr(batch_loader, "PATIENCE_SECONDS", 0.01)

    async def main():
        asked = BatchLoader(slow)
        (hanging,) = await asking(asked, "a")
        await slow.has_begun()
        (waiting,) = await asking(asked, "bb")
        await slow.has_begun()
        slow.end(2)
        return await asyncio.gather(hanging, waiting)

    assert run(main()) == [1, 2]


def test_where_no_thread_is_free_all_who_wait_are_told_so(slow, monkeypatch):
    """However many: none is left waiting, and none is refused within the refusal of another."""

    async def refuse(caller: str) -> None:
        raise too_busy()

    async def main():
        asked, first = await busy_asking(slow)
        others = await asking(asked, *map(str, range(5_000)))
        monkeypatch.setattr(worker_threads.pools().admission, "take", refuse)
        slow.end()
        assert await first == 1
        return await asyncio.gather(*others, return_exceptions=True)

    monkeypatch.setattr(batch_loader, "get_settings", lambda: Settings(thread_queue=10_000))
    assert {type(each) for each in run(main())} == {Unavailable}


def test_no_more_may_wait_than_for_a_thread(slow, monkeypatch):
    monkeypatch.setattr(batch_loader, "get_settings", lambda: Settings(thread_queue=2))

    async def main():
        asked, first = await busy_asking(slow)
        others = await asking(asked, *map(str, range(MOST + 2)))
        (refused,) = await asking(asked, "one too many")
        with pytest.raises(Unavailable):
            await refused
        slow.end(3)
        return await asyncio.gather(first, *others)

    assert run(main())[-1] == 2


def test_who_waits_when_the_question_is_broken_off_is_let_go(slow):
    """As when the loop ends."""

    async def main():
        asked, first = await busy_asking(slow)
        (other,) = await asking(asked, "bb")
        slow.end()
        await first
        await slow.has_begun()
        for task in asyncio.all_tasks() - {asyncio.current_task(), other}:
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(other, BOUND)
        slow.end()

    run(main())


def test_who_finds_nobody_waiting_any_more_asks_nothing(slow):
    """Before Python 3.12 a task begins a turn later: another may have asked for all by then."""

    async def main():
        slow.end()
        await BatchLoader(slow)._ask_for_some()

    run(main())
    assert slow.asked == []


def test_no_loop_is_kept_for_what_was_asked_on_it():
    async def main():
        batch_loader.batch_loader(len)
        return weakref.ref(asyncio.get_running_loop())

    loop = asyncio.run(main())
    gc.collect()
    assert loop() is None
