"""What the scopes of a token, its servers, and reading alone are good for at real endpoints."""

from __future__ import annotations

from dataclasses import replace

import pytest

from django_mcp.auth import any_of
from django_mcp.contrib.tokens.auth import token_auth
from django_mcp.contrib.tokens.models import Token
from django_mcp.protocol.errors import ErrorCode
from tests.support.answers import HTTPAnswer
from tests.support.caller import Caller
from tests.support.entrances import open_entrance
from tests.support.messages import MODERN

from .shop import SETTINGS, open_shop

REVISIONS = ["2025-11-25", MODERN]


@pytest.fixture(autouse=True)
def site(settings) -> None:
    open_shop(settings, page=False)


def holder(user, path: str = "/mcp", **limits) -> Caller:
    """Return a client with a new token."""
    _, secret = Token.objects.issue(user, **limits)
    caller = Caller(open_entrance("wsgi")).with_headers(Authorization=f"Bearer {secret}")
    return replace(caller, path=path)


def refused(answer: HTTPAnswer, *scopes: str) -> str:
    """Assert the challenge for these scopes, and return what people are told."""
    assert answer.status == 403, answer
    assert answer.error["code"] == ErrorCode.INSUFFICIENT_SCOPE
    scope = f', scope="{" ".join(scopes)}"' if scopes else ""
    challenge = f'Bearer realm="shop", error="insufficient_scope"{scope}'
    assert answer.header("WWW-Authenticate") == challenge
    return answer.error["message"]


def is_ok(answer: HTTPAnswer) -> bool:
    return answer.status == 200 and not answer.result.get("isError")


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_token_without_scopes_is_limited_by_none(anna, revision):
    caller = holder(anna).in_revision(revision)
    for tool in ("count_orders", "ship_order", "restock", "ring"):
        assert is_ok(caller.tool(tool))


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_token_with_scopes_has_these_and_what_they_include(anna, revision):
    caller = holder(anna, scopes=["orders:write"]).in_revision(revision)
    for tool in ("count_orders", "ship_order", "ring"):
        assert is_ok(caller.tool(tool))
    message = refused(caller.tool("restock"), "orders:write", "stock:write")
    assert message == (
        "This needs the scope orders:write stock:write: ask whoever runs this site for a token "
        "that has them."
    )


def test_a_token_may_have_no_scopes_at_all(anna):
    caller = holder(anna, scopes=[])
    assert is_ok(caller.tool("ring"))
    assert refused(caller.tool("count_orders"), "orders:read").endswith("a token that has it.")


def test_what_stands_in_the_column_and_is_no_list_gives_nothing(anna):
    caller = holder(anna, scopes=["orders:read"])
    assert is_ok(caller.tool("count_orders"))
    Token.objects.update(scopes={"orders:read": True})
    refused(caller.tool("count_orders"), "orders:read")
    assert is_ok(caller.tool("ring"))


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_token_for_reading_calls_what_only_reads(anna, revision):
    caller = holder(anna, read_only=True).in_revision(revision)
    assert is_ok(caller.tool("count_orders"))
    assert refused(caller.tool("ring")) == (
        "The credentials are for reading only, and ring may change something: ask whoever runs "
        "this site for a token that is for more than reading."
    )
    refused(caller.tool("ship_order"), "orders:write")


def test_scopes_for_reading_alone_count_for_tokens_as_for_others(anna, settings):
    settings.DJANGO_MCP = {**SETTINGS, "READ_ONLY_SCOPES": ["orders:read"]}
    caller = holder(anna, scopes=["orders:read"])
    assert is_ok(caller.tool("count_orders"))
    refused(caller.tool("ring"), "orders:write")
    assert is_ok(holder(anna, scopes=["orders:write"]).tool("ring"))


def test_scopes_of_a_server_are_needed_for_everything_there(anna):
    assert is_ok(holder(anna, "/staff", scopes=["back-office"]).tool("figures"))
    answer = holder(anna, "/staff", scopes=["orders:write"]).call("tools/list")
    assert answer.status == 403
    assert 'scope="back-office"' in answer.header("WWW-Authenticate")


def test_a_token_opens_its_servers_and_is_refused_elsewhere(anna):
    limits = {"servers": ["staff"], "scopes": ["back-office", "orders:write"]}
    assert is_ok(holder(anna, "/staff", **limits).tool("figures"))
    answer = holder(anna, "/mcp", **limits).tool("ring")
    assert answer.status == 401
    assert answer.header("WWW-Authenticate") == 'Bearer realm="shop", error="invalid_token"'
    both = {**limits, "servers": ["staff", "shop"]}
    assert is_ok(holder(anna, "/staff", **both).tool("figures"))
    assert is_ok(holder(anna, "/mcp", **both).tool("ring"))


def test_a_session_asks_the_token_of_each_request(anna):
    """Not that by which it was opened: the secret may be another one of the same token."""
    member = holder(anna, scopes=["orders:write"]).opened()
    assert is_ok(member.tool("ship_order"))
    Token.objects.update(scopes=["orders:read"])
    refused(member.tool("ship_order"), "orders:write")


def test_rotation_keeps_the_limits(anna):
    caller = holder(anna, scopes=["orders:read"], read_only=True)
    secret = Token.objects.get().rotate()
    fresh = caller.with_headers(Authorization=f"Bearer {secret}")
    assert is_ok(fresh.tool("count_orders"))
    refused(fresh.tool("ring"))


def test_with_the_page_people_are_told_where_they_make_tokens(anna, settings):
    open_shop(settings)
    message = refused(holder(anna, scopes=[]).tool("count_orders"), "orders:read")
    assert message.endswith(": go to /tokens/ here for a token that has it.")
    open_shop(settings, BASE_URL="https://shop.example.com")
    message = refused(holder(anna, scopes=[]).tool("count_orders"), "orders:read")
    assert message.endswith(": go to https://shop.example.com/tokens/ for a token that has it.")
    nobody = Caller(open_entrance("wsgi"))
    assert nobody.tool("ring").error["message"] == (
        'A bearer token is required: send "Authorization: Bearer TOKEN". Go to '
        "https://shop.example.com/tokens/ for one."
    )


def test_beside_an_authorization_server_the_token_is_not_told_to_log_in(anna, settings):
    """Its client may do so, by the document that the challenge names; people are told of tokens."""
    open_shop(
        settings,
        page=False,
        AUTH=any_of(token_auth, lambda request: None),
        AUTHORIZATION_SERVERS=["https://id.example.com"],
    )
    answer = holder(anna, scopes=[]).tool("count_orders")
    assert answer.status == 403
    assert 'scope="orders:read", resource_metadata="http://testserver/' in answer.header(
        "WWW-Authenticate"
    )
    assert "ask whoever runs this site for a token that has it" in answer.error["message"]
    assert "log in" not in answer.error["message"]
