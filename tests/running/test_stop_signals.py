"""Signals are heard before the server hears them, however it does, and passed on when told to."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from django_mcp.running.stop_signals import StopSignals

BOUND = 20


async def until(ask: Callable[[], object]) -> None:
    async with asyncio.timeout(BOUND):
        while not ask():
            await asyncio.sleep(0.001)


def by_python(number: int, hear: Callable[[], object]) -> None:
    signal.signal(number, lambda *_: hear())


def by_loop(number: int, hear: Callable[[], object]) -> None:
    asyncio.get_running_loop().add_signal_handler(number, hear)


@pytest.fixture
def _handlers() -> Any:
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)
    before = {number: signal.getsignal(number) for number in numbers}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("_handlers")
@pytest.mark.parametrize("listen", [by_python, by_loop])
def test_the_server_hears_of_a_signal_when_it_is_passed_on(listen: Any) -> None:
    async def main() -> None:
        server: list[str] = []
        ours: list[int] = []
        listen(signal.SIGTERM, lambda: server.append("stop"))
        by_loop(signal.SIGUSR1, lambda: server.append("another"))
        signals = StopSignals(ours.append)

        os.kill(os.getpid(), signal.SIGTERM)
        await until(lambda: ours)
        os.kill(os.getpid(), signal.SIGUSR1)
        await until(lambda: server)
        assert (ours, server) == ([signal.SIGTERM], ["another"])

        signals.pass_on(signal.SIGTERM)
        await until(lambda: len(server) == 2)
        signals.close()
        os.kill(os.getpid(), signal.SIGTERM)
        await until(lambda: len(server) == 3)
        assert (ours, server) == ([signal.SIGTERM], ["another", "stop", "stop"])

    asyncio.run(main())


@pytest.mark.usefixtures("_handlers")
def test_a_signal_that_is_ignored_stays_so() -> None:
    """Nobody would pass it on, so that a process would begin to end, and never do."""

    async def main() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signals = StopSignals(lambda number: None)
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
        signals.close()
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN

    asyncio.run(main())


@pytest.mark.usefixtures("_handlers")
def test_what_a_library_waits_for_is_not_broken_off_by_a_signal() -> None:
    """Python's own functions go on waiting in any case; a driver of a database may not."""

    async def main() -> tuple[int, bytes]:
        signals = StopSignals(lambda number: None)
        reading, writing = os.pipe()
        main_thread = threading.get_ident()

        def interrupt() -> None:
            for _ in range(100):
                signal.pthread_kill(main_thread, signal.SIGTERM)
                time.sleep(0.001)
            os.write(writing, b"x")

        thread = threading.Thread(target=interrupt)
        thread.start()
        buffer = ctypes.create_string_buffer(1)
        number = ctypes.CDLL(None).read(reading, buffer, 1)
        thread.join()
        signals.close()
        os.close(reading)
        os.close(writing)
        return number, buffer.raw

    assert asyncio.run(main()) == (1, b"x")


@pytest.mark.usefixtures("_handlers")
def test_a_loop_that_hears_of_signals_no_more_is_left_alone() -> None:
    """Some loops close their descriptor before the lifespan ends; its number is anybody's then."""

    async def main() -> int:
        before = signal.set_wakeup_fd(-1)
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        signal.set_wakeup_fd(writing)
        signals = StopSignals(lambda number: None)
        os.close(reading)
        os.set_blocking(writing, True)  # as whatever has been opened under that number
        signals.close()
        os.close(writing)
        return signal.set_wakeup_fd(before)

    assert asyncio.run(main()) == -1
