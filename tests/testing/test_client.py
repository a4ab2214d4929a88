"""``MCPClient``, by itself: what it reads is what was sent, and it disturbs nobody."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model

from django_mcp import Context, MCPServer, endpoint
from django_mcp.asgi import mount
from django_mcp.auth import public
from django_mcp.testing import MCPClient, MCPFailure
from tests.support.asgi import call
from tests.support.sites import run, urlconf

pytestmark = pytest.mark.django_db
REVISIONS = ["2025-11-25", "2026-07-28"]
ODD = "one\u2028two\u2029three\x85four\x0bfive\rsix\r\nseven"
"""What some take for the ends of lines, and server-sent events do not."""


def chatty() -> MCPServer:
    server = MCPServer("chatty", version="1", auth=public)

    @server.tool
    def echo(ctx: Context, words: str) -> str:
        """Say it in a log message, and return it."""
        ctx.progress(1, 2, words)
        ctx.log("info", words)
        return words

    @server.tool(rate_limit="2/h per process")
    def rare() -> str:
        """Be called twice."""
        return "called"

    return server


@pytest.mark.parametrize("revision", REVISIONS)
def test_what_is_said_is_read_as_it_was_said(revision):
    client = MCPClient(chatty(), revision=revision, log_level="debug")
    answer = client.tool("echo", words=ODD)
    assert answer.text == ODD
    progress, log = (each["params"] for each in answer.said)
    assert (progress["message"], log["data"]) == (ODD, ODD)


def statuses(client: MCPClient, times: int) -> list[int]:
    return [client.tool("rare").http.status_code for _ in range(times)]


def test_a_client_has_counts_of_its_own():
    server = chatty()
    first = MCPClient(server)
    assert statuses(first, 3) == [200, 200, 429]
    second = MCPClient(server)
    assert statuses(first, 1) == [429]
    assert statuses(second, 3) == [200, 200, 429]


def test_users_of_one_client_are_counted_together():
    server, users = chatty(), get_user_model().objects
    anna, ben = (users.create_user(name) for name in ("anna", "ben"))
    client = MCPClient(server)
    assert statuses(client.as_user(anna), 3) == [200, 200, 429]
    assert statuses(client.as_user(anna), 1) == [429]
    assert statuses(client.as_user(ben), 1) == [200]


@pytest.mark.django_db(transaction=True)
def test_the_counts_of_the_process_are_left_alone(settings):
    server = chatty()
    settings.ROOT_URLCONF = urlconf(endpoint("mcp", server=server))

    async def passing(request, receive, send):
        raise AssertionError

    def served() -> int:
        return run(call(mount(passing), "rare")).status

    assert [served(), served(), served()] == [200, 200, 429]
    client = MCPClient(server)
    assert served() == 429
    assert statuses(client, 3) == [200, 200, 429]


def test_outside_of_tests_it_says_how_its_host_is_allowed(settings):
    settings.ALLOWED_HOSTS = ["shop.example.com"]
    with pytest.raises(MCPFailure, match=r"testserver.*ALLOWED_HOSTS.*setup_test_environment\(\)"):
        MCPClient(chatty()).tool("rare")
    client = MCPClient(chatty())
    client.headers["Host"] = "shop.example.com"
    client.tool("rare").assert_contains("called")
    client.headers["Host"] = "shop.example.org"
    assert client.request("ping").http.status_code == 400
