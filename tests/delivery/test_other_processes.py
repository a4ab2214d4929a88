"""Announced in one process, told by another: with a channel layer, and without."""

from __future__ import annotations

import asyncio
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
from tests.support.waiting import in_thread

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
    monkeypatch.setattr(doorbell, "RETRY_SECONDS", 0.05)
    bell = Doorbell("x", *[lambda: None] * 3)
    bell.start()
    try:
        assert layer.has_joined_again.wait(20)
    finally:
        bell.close()
