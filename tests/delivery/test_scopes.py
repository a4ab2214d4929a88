"""Whoever answers a question needs the scopes of the call that has asked, in sessions too."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.http import HttpRequest

from django_mcp import Context, MCPServer, endpoint
from django_mcp.auth import Principal
from tests.support.client import Client
from tests.support.sites import urlconf

from .conftest import at_the_mount

server = MCPServer("scopes", scopes=["mcp"])
ACCEPTED = {"action": "accept", "content": {"value": True}}


@server.tool(scopes=["refunds"])
def refund(ctx: Context) -> str:
    """Ask before acting."""
    return "Refunded." if ctx.elicit("Refund?", bool) else "Nothing done."


@server.prompt(scopes=["refunds"])
def letter(ctx: Context) -> str:
    """Ask before writing."""
    return "Refunded." if ctx.elicit("Refund?", bool) else "Nothing done."


@server.resource("refund://{id}", scopes=["refunds"])
def refund_of(ctx: Context, id: str) -> str:
    """Ask before reading."""
    return "Refunded." if ctx.elicit("Refund?", bool) else "Nothing done."


@server.resource("salary://all", scopes=["salaries"])
def salaries() -> str:
    """Need what nobody here has."""
    return ""


def by_header(request: HttpRequest) -> Principal:
    """Let everybody in as one user, with the scopes that he names."""
    user, _ = get_user_model().objects.get_or_create(username="anna")
    return Principal(user, "client", frozenset(request.headers["X-Scopes"].split()))


@pytest.fixture(autouse=True)
def _scopes(settings: Any) -> None:
    settings.ROOT_URLCONF = urlconf(endpoint("mcp", server=server, auth=by_header))


@at_the_mount
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "refund", "arguments": {}}),
        ("prompts/get", {"name": "letter"}),
        ("resources/read", {"uri": "refund://7"}),
        ("resources/read", {"uri": f"refund://{'7' * 400}"}),
    ],
    ids=["tool", "prompt", "resource", "long URI"],
)
def test_narrower_credentials_answer_nothing(application, on_loop, method, params):
    async def main():
        client = await Client(application, X_Scopes="mcp refunds").open(elicitation={})
        async with client.post(method, id=1, **params) as connection:
            question = await connection.message()
            client.headers["X-Scopes"] = "mcp"
            refused = await client.answer(question, ACCEPTED)
            assert await connection.is_silent()
            client.headers["X-Scopes"] = "mcp refunds"
            taken = await client.answer(question, ACCEPTED)
            return refused, taken, await connection.messages()

    refused, taken, (last,) = on_loop(main())
    assert (refused, taken) == (403, 202)
    assert "Refunded." in str(last["result"])
