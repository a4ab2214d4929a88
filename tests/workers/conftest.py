"""Starts the workers: two by default, on a database of their own."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Coroutine, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from tests.conformance.servers import RunningServer, running_servers

HERE = Path(__file__).resolve().parent
BOUND = 400
PUBSUB = "channels_redis.pubsub.RedisPubSubChannelLayer"
CORE = "channels_redis.core.RedisChannelLayer"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this directory."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.workers)


class Workers:
    """Server processes on one database."""

    def __init__(
        self, servers: list[RunningServer], environment: dict[str, str], layer: str = ""
    ) -> None:
        self.servers = servers
        self.environment = environment
        self.is_thorough = not layer and not environment["DATABASE_URL"].startswith("sqlite")
        """Whether the long forms run here: once on each database that several hosts can share."""

    @property
    def urls(self) -> list[str]:
        """The address of each one's endpoint."""
        return [server.url for server in self.servers]

    def run(self, main: Callable[[httpx.AsyncClient], Coroutine[Any, Any, Any]]) -> Any:
        """Run a client against them, for a bounded time."""

        async def bounded() -> Any:
            # Less than the servers keep theirs, or a request meets a connection that is closing.
            limits = httpx.Limits(keepalive_expiry=2)
            async with (
                asyncio.timeout(BOUND),
                httpx.AsyncClient(timeout=60, limits=limits) as http,
            ):
                return await main(http)

        try:
            return asyncio.run(bounded())
        except BaseException:
            for server in self.servers:
                print(server.log.read_text(errors="replace")[-8000:])
            raise


def serving(count: int = 2, **variables: str) -> Any:
    """Serve the shop by so many processes."""
    return running_servers(
        ["mount"] * count, settings="shop.settings", path=HERE, variables=variables
    )


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
    with serving(LAYER=layer) as (servers, environment):
        yield Workers(servers, environment, layer)


def _has_redis() -> bool:
    url = urlsplit(os.environ.get("REDIS_URL") or "redis://127.0.0.1:6379/0")
    try:
        socket.create_connection((url.hostname or "", url.port or 6379), timeout=2).close()
    except OSError:
        return False
    return True
