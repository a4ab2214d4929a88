"""Real clients of the sites, in this process: over HTTP, without a socket."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import httpx
from django.core.handlers.asgi import ASGIHandler
from django.test import Client as Browser

from django_mcp.asgi import mount
from django_mcp.client import Client
from tests.support.sites import run

T = TypeVar("T")


def as_client(user: Any, path: str, talk: Callable[[Client], Awaitable[T]]) -> T:
    """Return what ``talk`` returns, which is given a client that has logged in as ``user``."""
    browser = Browser()
    browser.force_login(user)
    cookie = f"sessionid={browser.cookies['sessionid'].value}"

    async def converse() -> T:
        transport = httpx.ASGITransport(mount(ASGIHandler()))
        headers = {"Cookie": cookie}
        url = f"http://testserver/{path}"
        async with Client(url, headers=headers, transport=transport, timeout=30) as client:
            return await talk(client)

    return run(converse())
