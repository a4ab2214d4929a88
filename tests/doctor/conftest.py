"""Examines sites, and remembers what was found of those without a fault."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache

import pytest

from django_mcp.doctor.examination import Report, examine
from django_mcp.doctor.visit import Options

from .site import CLIENT, TOKEN, Site, served

Healthy = Callable[[bool], Report]


def options_for(site: Site, *, watch: float = 0.3, timeout: float = 5.0) -> Options:
    """Look quickly, with a token that is good there, and at nothing outside this machine."""
    document = f"{site.origin}{CLIENT}"
    token = TOKEN if site.guarded else None
    return Options(token=token, watch=watch, timeout=timeout, client_document=document)


def examined(url: str, options: Options) -> Report:
    """Examine a server."""
    return asyncio.run(examine(url, options))


def look(site: Site, *, options: Options | None = None) -> Report:
    """Examine a site that is served."""
    return examined(site.url, options or options_for(site))


@pytest.fixture
def open_site() -> Iterator[Site]:
    """A server for everybody."""
    with served(Site(guarded=False)) as site:
        yield site


@pytest.fixture
def guarded_site() -> Iterator[Site]:
    """A server that asks for a login."""
    with served(Site(guarded=True)) as site:
        yield site


@pytest.fixture(scope="session")
def healthy() -> Iterator[Healthy]:
    """What is found where nothing is wrong; each is looked at once."""
    with ExitStack() as stack:

        @cache
        def report(guarded: bool) -> Report:
            return look(stack.enter_context(served(Site(guarded=guarded))))

        yield report
