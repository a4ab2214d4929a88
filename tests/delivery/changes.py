"""What the tests of changes share: a server of their own, and a client that listens."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db.models.signals import post_delete, post_save

from django_mcp import Context, MCPServer
from django_mcp.auth import Principal, Refusal
from tests.support.client import Answering, StatelessClient

SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"
TOOLS = "notifications/tools/list_changed"
PROMPTS = "notifications/prompts/list_changed"
RESOURCES = "notifications/resources/list_changed"
UPDATED = "notifications/resources/updated"

EVERYTHING: dict[str, Any] = {
    "toolsListChanged": True,
    "promptsListChanged": True,
    "resourcesListChanged": True,
}

server = MCPServer("delivery", version="1")


@server.prompt
def greeting() -> str:
    """Greet."""
    return "Hello"


@server.resource("note://{key}")
def note(key: str) -> str:
    """A note."""
    return key


@server.resource("secret://{key}", permission="auth.view_user")
def secret(key: str) -> str:
    """Not for everybody."""
    return key


@server.tool(invalidates=("note://{key}", "note://index"))
def write(key: str, fail: bool = False) -> str:
    """Write a note."""
    if fail:
        raise RuntimeError("planted")
    return key


@server.tool(invalidates=("note://{key}",))
async def awrite(key: str) -> str:
    """Write a note, on the loop."""
    return key


@server.tool
async def aannounce(ctx: Context) -> None:
    """Announce something from the loop."""
    server.notify_prompts_changed()


def by_header(request: Any) -> Any:
    """Let in whoever the header names, and say who it is."""
    name = request.headers.get("X-User")
    if name is None:
        return Refusal()
    user = get_user_model().objects.get(username=name)
    return Principal(user, request.headers.get("X-Client", ""))


def listening(
    application: Any, wish: dict[str, Any], *, id: Any = None, **headers: str
) -> Answering:
    """Send ``subscriptions/listen`` and read what comes."""
    return StatelessClient(application, **headers).listen(id=id, **wish)


def told(message: dict[str, Any]) -> str:
    """Return what a notification tells of: its URI, or its method."""
    return message.get("params", {}).get("uri") or message["method"]


@contextmanager
def own_signals() -> Iterator[None]:
    """Forget which models are watched, at the end."""
    before = [(signal, list(signal.receivers)) for signal in (post_save, post_delete)]
    try:
        yield
    finally:
        for signal, receivers in before:
            signal.receivers = receivers
            signal.sender_receivers_cache.clear()


def redis(layer: str) -> dict[str, Any]:
    """Return ``CHANNEL_LAYERS`` with the Redis of the environment; skip without."""
    if "REDIS_URL" not in os.environ:
        pytest.skip("REDIS_URL names the Redis for this test")
    hosts = [os.environ["REDIS_URL"]]
    config = {"hosts": hosts, "prefix": "mcp-changes"}
    return {"default": {"BACKEND": f"channels_redis.{layer}", "CONFIG": config}}
