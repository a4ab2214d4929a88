"""Announced in one process, told by another: with a channel layer, and without."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from typing import Any

import pytest

from django_mcp import endpoint
from django_mcp.store import doorbell
from django_mcp.store.changes import feed
from django_mcp.store.doorbell import Doorbell
from tests.support.client import Client
from tests.support.sites import urlconf
from tests.support.waiting import BOUND, in_thread

from .announcing_process import announce_elsewhere
from .changes import PROMPTS, TOOLS, listening, redis, server, told
from .test_subscriptions import own_stream, subscribe

pytestmark = pytest.mark.processes


@pytest.fixture(autouse=True)
def _changing(_delivery: None, settings: Any) -> None:
    settings.ROOT_URLCONF = urlconf(endpoint("mcp", server=server))


async def hear(application: Any, **layers: Any) -> tuple[list[str], list[str]]:
    """Return what two clients hear of what another process announces."""
    client = await Client(application).open()
    await subscribe(client, "note://1")
    wish = {"toolsListChanged": True, "resourceSubscriptions": ["note://2"]}
    async with own_stream(client) as own, listening(application, wish) as stream:
        await stream.message()
        await in_thread(
            lambda: announce_elsewhere("tools", "prompts", "note://1", "note://2", **layers)
        )
        return (
            [told(await own.message()) for _ in range(3)],
            [told(await stream.message()) for _ in range(2)],
        )


def test_another_process_announces_and_ends(application, on_loop):
    """Without a layer it is found by looking."""
    own, stream = on_loop(hear(application))
    assert own == [TOOLS, PROMPTS, "note://1"]
    assert stream == [TOOLS, "note://2"]


@pytest.mark.parametrize("layer", ["core.RedisChannelLayer", "pubsub.RedisPubSubChannelLayer"])
def test_another_process_rings(application, on_loop, settings, monkeypatch, layer):
    """Whoever is rung does not wait for the time to look, which never comes here."""
    settings.CHANNEL_LAYERS = redis(layer)
    monkeypatch.setattr(feed, "POLL_SECONDS", 3600)
    # As on a machine that has been started just now, whose clock is near its beginning.
    monkeypatch.setattr(doorbell, "REJOIN_SECONDS", time.monotonic() + 3600)
    own, stream = on_loop(hear(application, **settings.CHANNEL_LAYERS))
    assert own == [TOOLS, PROMPTS, "note://1"]
    assert stream == [TOOLS, "note://2"]


def test_another_process_announces_though_the_layer_is_down(application, on_loop):
    """Nobody listens at that port."""
    config = {"hosts": ["redis://127.0.0.1:1"]}
    layer = {"BACKEND": "channels_redis.core.RedisChannelLayer", "CONFIG": config}
    pytest.importorskip("channels_redis")
    own, stream = on_loop(hear(application, default=layer))
    assert own == [TOOLS, PROMPTS, "note://1"]
    assert stream == [TOOLS, "note://2"]


# The bell of a process that may end soon


class Stuck:
    """A layer that takes for ever."""

    def __init__(self) -> None:
        self.asked = 0

    async def group_send(self, group: str, message: Any) -> None:
        self.asked += 1
        await asyncio.sleep(3600)


class Broken(Stuck):
    """A layer that fails."""

    async def group_send(self, group: str, message: Any) -> None:
        self.asked += 1
        raise OSError("planted")


@pytest.mark.parametrize("kind", [Stuck, Broken])
def test_a_layer_that_does_not_take_a_ring_is_left_alone(monkeypatch, kind):
    layer = kind()
    monkeypatch.setattr(doorbell, "_layer", lambda: layer)
    monkeypatch.setattr(doorbell, "WAIT_SECONDS", 0.1)
    bell = Doorbell("x", *[lambda: None] * 3)
    for _ in range(5):
        bell.wake_everybody_once()
        time.sleep(doorbell.INTERVAL_SECONDS)
    assert layer.asked == 1


def test_of_a_layer_that_fails_it_is_said_once_and_once_that_it_is_back(monkeypatch, caplog):
    class Flaky:
        """A layer that fails twice."""

        def __init__(self) -> None:
            self.failures = 2
            self.rings: asyncio.Queue[Any] = asyncio.Queue()

        async def new_channel(self, prefix: str) -> str:
            return prefix

        async def group_add(self, group: str, channel: str) -> None:
            pass

        async def receive(self, channel: str) -> Any:
            if self.failures:
                self.failures -= 1
                raise OSError("planted")
            return await self.rings.get()

    layer, heard = Flaky(), threading.Semaphore(0)
    monkeypatch.setattr(doorbell, "_layer", lambda: layer)
    monkeypatch.setattr(doorbell, "RETRY_SECONDS", 0.2)
    bell = Doorbell("x", heard.release, lambda: None, lambda: None)
    with caplog.at_level(logging.INFO, doorbell.logger.name):
        bell.start()
        try:
            for _ in range(2):
                bell._loop.call_soon_threadsafe(layer.rings.put_nowait, {"type": "ring"})
                assert heard.acquire(timeout=BOUND)
        finally:
            bell.close()
    levels = [(each.levelname, "back" in each.message) for each in caplog.records]
    assert levels == [("WARNING", False), ("INFO", True)]


def test_a_storm_of_changes_is_no_storm_of_rings(monkeypatch):
    class Layer(Stuck):
        async def group_send(self, group: str, message: Any) -> None:
            self.asked += 1

    layer = Layer()
    monkeypatch.setattr(doorbell, "_layer", lambda: layer)
    monkeypatch.setattr(doorbell, "INTERVAL_SECONDS", 3600)
    bell = Doorbell("x", *[lambda: None] * 3)
    for _ in range(100):
        bell.wake_everybody_once()
    assert layer.asked == 1


class Shared:
    """A layer that several bells have in common, each with a loop of its own."""

    def __init__(self) -> None:
        self._rung: dict[str, tuple[asyncio.AbstractEventLoop, asyncio.Queue[Any]]] = {}
        self._members: set[str] = set()

    async def new_channel(self, prefix: str) -> str:
        channel = f"{prefix}.{len(self._rung)}"
        self._rung[channel] = asyncio.get_running_loop(), asyncio.Queue()
        return channel

    async def group_add(self, group: str, channel: str) -> None:
        self._members.add(channel)

    async def receive(self, channel: str) -> Any:
        return await self._rung[channel][1].get()

    async def send(self, channel: str, message: Any) -> None:
        loop, queue = self._rung[channel]
        loop.call_soon_threadsafe(queue.put_nowait, message)

    async def group_send(self, group: str, message: Any) -> None:
        for channel in self._members:
            await self.send(channel, message)


def test_who_is_rung_hears_what_for(monkeypatch):
    layer = Shared()
    monkeypatch.setattr(doorbell, "_layer", lambda: layer)
    monkeypatch.setattr(doorbell, "RETRY_SECONDS", 3600)  # for which none has to wait
    looks, changes, forgets = (threading.Event() for _ in range(3))
    bells = [
        Doorbell("ringing", *[lambda: None] * 3),
        Doorbell("rung", looks.set, changes.set, forgets.set),
    ]
    try:
        for each in bells:
            each.start()
        ringing, rung = bells
        ringing.wake([rung.channel])
        assert looks.wait(20)
        ringing.wake_everybody()
        assert changes.wait(20)
        ringing.clear_session_caches()
        assert forgets.wait(20)
    finally:
        for each in bells:
            each.close()


class Restarted:
    """A layer that is restarted, and has then forgotten who had joined."""

    def __init__(self) -> None:
        self.joined = 0
        self.restart = asyncio.Event()
        self.has_joined_again = threading.Event()

    async def new_channel(self, prefix: str) -> str:
        return prefix

    async def group_add(self, group: str, channel: str) -> None:
        self.joined += 1
        if self.joined == 2:
            self.has_joined_again.set()

    async def receive(self, channel: str) -> Any:
        if self.joined == 1:
            await asyncio.sleep(2 * doorbell.RETRY_SECONDS)  # so it has worked for a while
            raise ConnectionError("planted")
        await asyncio.Event().wait()


def test_a_process_joins_again_when_the_layer_was_restarted(monkeypatch):
    layer = Restarted()
    monkeypatch.setattr(doorbell, "_layer", lambda: layer)
    monkeypatch.setattr(doorbell, "RETRY_SECONDS", 0.2)
    bell = Doorbell("x", *[lambda: None] * 3)
    bell.start()
    try:
        assert layer.has_joined_again.wait(20)
    finally:
        bell.close()
