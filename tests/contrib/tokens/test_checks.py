"""Checks of the page for tokens of one's own, and of its settings."""

from __future__ import annotations

import pytest
from django.contrib.auth.middleware import AuthenticationMiddleware

from django_mcp.contrib.tokens.checks import check_own_tokens

from .shop import open_shop


class OwnAuthentication(AuthenticationMiddleware):
    """What a site may have in place of Django's."""


def ids() -> list[str | None]:
    return [each.id for each in check_own_tokens()]


@pytest.fixture(autouse=True)
def site(settings) -> None:
    open_shop(settings)


def test_a_site_in_order_has_no_messages(settings):
    assert ids() == []
    open_shop(settings, OWN_TOKEN_SCOPES=["orders:read", "stock:write", "back-office"])
    assert ids() == []
    settings.DJANGO_MCP = {"NO": "SUCH KEY"}
    assert ids() == []
    settings.DJANGO_MCP = {}
    settings.ROOT_URLCONF = ""
    assert ids() == []


def test_where_nobody_is_logged_in_the_page_is_of_no_use(settings):
    others = [each for each in settings.MIDDLEWARE if "Authentication" not in each]
    settings.MIDDLEWARE = [*others, f"{__name__}.OwnAuthentication"]
    assert ids() == []
    settings.MIDDLEWARE = [*others, "no.such.middleware", f"{__name__}.ids"]
    (message,) = check_own_tokens()
    assert message.id == "django_mcp.E030"
    assert "AuthenticationMiddleware" in message.hint
    open_shop(settings, page=False)
    assert ids() == []


@pytest.mark.parametrize("page", [True, False])
def test_a_scope_that_nothing_needs_is_named(settings, page):
    open_shop(settings, page=page, OWN_TOKEN_SCOPES=["order:read", "back-office"])
    (message,) = check_own_tokens()
    assert message.id == "django_mcp.W030"
    assert message.msg == (
        "Nothing needs 'order:read' of DJANGO_MCP[\"OWN_TOKEN_SCOPES\"]. "
        "Did you mean 'orders:read'?"
    )


def test_a_server_that_such_tokens_never_open_is_named(settings):
    open_shop(settings, OWN_TOKEN_SCOPES=["orders:read"])
    (message,) = check_own_tokens()
    assert message.id == "django_mcp.W031"
    assert "'staff' needs the scope 'back-office'" in message.msg
    wider = {"orders:write": ["orders:read"], "everything": ["back-office"]}
    open_shop(settings, OWN_TOKEN_SCOPES=["everything"], SCOPE_HIERARCHY=wider)
    assert ids() == []
    open_shop(settings, page=False, OWN_TOKEN_SCOPES=["orders:read"])
    assert ids() == []
