"""``runserver`` reloads the code, whatever is open."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

from tests.support.client import Client, Server, StatelessClient

from .serving import Workers, serving

BOUND = 30


@pytest.fixture
def watched(tmp_path: Path) -> Path:
    """A module of the site's own."""
    path = tmp_path / "watched_by_runserver.py"
    path.touch()
    return path


@pytest.fixture
def developed(watched: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workers]:
    """A site under Daphne's ``runserver``."""
    with serving("runserver", WATCHED=watched.stem, SEARCHED=str(watched.parent)) as served:
        yield served


async def process(http: httpx.AsyncClient, url: str) -> int:
    """Return which process answers; it may be away for a moment."""
    async with asyncio.timeout(BOUND):
        while True:
            try:
                return int(await StatelessClient(Server(url, http)).value("process"))
            except httpx.TransportError:
                await asyncio.sleep(0.1)


@pytest.mark.parametrize("tool", ["stay", "ahold", "ask"])
def test_neither_open_streams_nor_calls_hold_it_up(developed, watched, tool):
    name = uuid4().hex

    async def main(http):
        (url,) = developed.urls
        before = await process(http, url)
        client = await Client(Server(url, http)).open(elicitation={})
        arguments = {} if tool == "ask" else {"speaks": True}
        async with client.listen(), client.call(tool, value=name, **arguments) as answer:
            await answer.message()
            # Later than the reloader has seen, whatever the clock of the file system resolves.
            later = watched.stat().st_mtime + 10
            os.utime(watched, (later, later))
            async with asyncio.timeout(BOUND):
                while (after := await process(http, url)) == before:
                    await asyncio.sleep(0.1)
        return before, after

    before, after = developed.run(main)
    assert before != after
