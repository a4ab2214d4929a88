"""Announced in one process, told by another: with a channel layer, and without."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from django_mcp import endpoint
from django_mcp.store import doorbell
from django_mcp.store.changes import feed
from django_mcp.store.doorbell import Doorbell
from tests.asgi import urlconf

from .changing import PROMPTS, TOOLS, listening, redis, server, told
from .elsewhere import announce_elsewhere
from .streaming import Client
from .test_subscriptions import own_stream, subscribe
from .waiting import in_thread

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
    monkeypatch.setattr(feed, "PAUSE", 3600)
    # As on a machine that has been started just now, whose clock is near its beginning.
    monkeypatch.setattr(doorbell, "REJOIN", time.monotonic() + 3600)
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
    monkeypatch.setattr(doorbell, "BRIEFLY", 0.1)
    bell = Doorbell("x", *[lambda: None] * 3)
    for _ in range(5):
        bell.ring_once()
        time.sleep(doorbell.GATHERING)
    assert layer.asked == 1


def test_a_storm_of_changes_is_no_storm_of_rings(monkeypatch):
    class Layer(Stuck):
        async def group_send(self, group: str, message: Any) -> None:
            self.asked += 1

    layer = Layer()
    monkeypatch.setattr(doorbell, "_layer", lambda: layer)
    monkeypatch.setattr(doorbell, "GATHERING", 3600)
    bell = Doorbell("x", *[lambda: None] * 3)
    for _ in range(100):
        bell.ring_once()
    assert layer.asked == 1
