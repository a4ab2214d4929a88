"""The lifespan of the mount, and of what it is mounted on."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from django.core.asgi import get_asgi_application

from django_mcp.asgi import mount
from django_mcp.running import shutdown

BOUND = 20
SCOPE = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": {}}


@pytest.fixture(autouse=True)
def _open_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process is not asked to stop for good."""
    monkeypatch.setattr(shutdown, "_is_closing", False)


def live(application: Any) -> list[Any]:
    """Let an application live for a moment; return what it answers, and when it was closing."""

    async def main() -> list[Any]:
        asked: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        said: list[Any] = []

        async def send(event: dict[str, Any]) -> None:
            said.append((event["type"], shutdown.is_closing()))
            if event["type"] == "lifespan.startup.complete":
                asked.put_nowait({"type": "lifespan.shutdown"})

        asked.put_nowait({"type": "lifespan.startup"})
        async with asyncio.timeout(BOUND):
            await mount(application)(dict(SCOPE), asked.get, send)
        return said

    return asyncio.run(main())


WHOLE = [("lifespan.startup.complete", False), ("lifespan.shutdown.complete", True)]


async def silent(scope: Any, receive: Any, send: Any) -> None:
    """Return at once, as applications do that know nothing of it."""


async def forgetful(scope: Any, receive: Any, send: Any) -> None:
    """Know only how to begin."""
    await receive()
    await send({"type": "lifespan.startup.complete"})


def test_django_has_none_and_is_answered_for() -> None:
    assert live(get_asgi_application()) == WHOLE


@pytest.mark.parametrize("application", [silent, forgetful])
def test_who_has_half_of_one_is_answered_for(application: Any) -> None:
    assert live(application) == WHOLE


def test_who_has_one_has_it_and_ends_after_what_runs_here() -> None:
    heard: list[Any] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        scope["state"]["begun"] = True
        for _ in range(2):
            event = await receive()
            heard.append((event["type"], shutdown.is_closing()))
            await send({"type": f"{event['type']}.complete"})

    assert live(application) == WHOLE
    assert heard == [("lifespan.startup", False), ("lifespan.shutdown", True)]


def test_who_cannot_start_says_so() -> None:
    async def application(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "lifespan.startup.failed", "message": "no"})

    assert live(application) == [("lifespan.startup.failed", False)]


def test_who_crashes_when_it_starts_is_heard_by_the_server() -> None:
    async def application(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        raise RuntimeError("no database")

    with pytest.raises(RuntimeError, match="no database"):
        live(application)
