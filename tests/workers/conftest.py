"""The workers that most tests of this directory share."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from importlib.util import find_spec
from urllib.parse import urlsplit

import pytest

from .serving import HERE, Workers, serving

PUBSUB = "channels_redis.pubsub.RedisPubSubChannelLayer"
CORE = "channels_redis.core.RedisChannelLayer"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this directory."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.workers)


@pytest.fixture(scope="session", params=["polling", "core", "pubsub"])
def workers(request: pytest.FixtureRequest) -> Iterator[Workers]:
    """Two workers, with and without a channel layer."""
    layer = {"polling": "", "core": CORE, "pubsub": PUBSUB}[request.param]
    if layer and find_spec("channels_redis") is None:
        pytest.skip("needs channels-redis")
    if layer and not _has_redis():
        if os.environ.get("CI"):
            pytest.fail("CI needs Redis, and none answers")
        pytest.skip("needs Redis; set REDIS_URL")
    with serving(LAYER=layer) as served:
        yield served


def _has_redis() -> bool:
    url = urlsplit(os.environ.get("REDIS_URL") or "redis://127.0.0.1:6379/0")
    try:
        socket.create_connection((url.hostname or "", url.port or 6379), timeout=2).close()
    except OSError:
        return False
    return True
