"""A worker is killed under the client, on a database that outlives it."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator

import pytest

from django_mcp.client import Client, Limits, OutcomeUnknown, RemoteError
from tests.support.balancer import Balancer, balancing
from tests.workers.serving import Workers, serving

pytestmark = [pytest.mark.processes, pytest.mark.xdist_group("client-workers")]

LEASE = "2"
"""Seconds after which a worker counts as dead."""
PATIENT = Limits(backoff=0.1, max_backoff=0.5, reconnects=60)


@pytest.fixture
def workers() -> Iterator[Workers]:
    with serving(LEASE=LEASE) as workers:
        yield workers


@pytest.fixture
def balancer(workers: Workers) -> Iterator[Balancer]:
    with balancing([server.port for server in workers.servers]) as balancer:
        yield balancer


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.02)


def worker_of(balancer: Balancer, name: str) -> int:
    (call,) = (each for each in balancer.passed if each.asks == f"tools/call {name}")
    return call.worker


def kill(workers: Workers, balancer: Balancer, number: int) -> None:
    """Kill a worker, and let the balancer know."""
    process = workers.servers[number].process
    process.send_signal(signal.SIGKILL)
    process.wait()
    balancer.ports = [workers.servers[1 - number].port] * 2


async def test_in_a_session_the_other_worker_says_how_the_call_ended(
    workers: Workers, balancer: Balancer
) -> None:
    heard = asyncio.Event()

    async def hear(message: object) -> None:
        heard.set()

    options = {"revision": "2025-11-25", "timeout": 60.0, "limits": PATIENT}
    async with Client(balancer.url, on_log=hear, **options) as client:  # type: ignore[arg-type]
        call = asyncio.create_task(client.call_tool("ahold", {"value": "killed", "speaks": True}))
        # From now on the client has a place on the stream to come back to.
        await heard.wait()
        await until(lambda: workers.gates.reached("killed"))
        kill(workers, balancer, worker_of(balancer, "ahold"))
        with pytest.raises(RemoteError):
            await call
        result = await client.call_tool("work", {"value": "alive"})
        assert result.content[0].text == "alive"  # type: ignore[union-attr]
    assert sum(each.asks == "initialize" for each in balancer.passed) == 1
    assert sum(each.asks == "tools/call ahold" for each in balancer.passed) == 1


async def test_without_a_session_the_outcome_is_unknown(
    workers: Workers, balancer: Balancer
) -> None:
    async with Client(balancer.url, revision="2026-07-28", timeout=60) as client:
        call = asyncio.create_task(client.call_tool("ahold", {"value": "killed"}))
        await until(lambda: workers.gates.reached("killed"))
        kill(workers, balancer, worker_of(balancer, "ahold"))
        with pytest.raises(OutcomeUnknown):
            await call
        result = await client.call_tool("work", {"value": "alive"})
        assert result.content[0].text == "alive"  # type: ignore[union-attr]
    assert sum(each.asks == "tools/call ahold" for each in balancer.passed) == 1
