"""``manage.py mcp list``: whether a tool was found, where it comes from, and who may use it."""

from __future__ import annotations

from io import StringIO

import pytest
from django.contrib.auth.models import Permission
from django.core.management import CommandError, call_command

from django_mcp import MCPServer, endpoint
from tests.support.sites import urlconf

shop = MCPServer("shop")
empty = MCPServer("empty")


@shop.tool
def look() -> str:
    """Look around."""
    return "shelves"


@shop.tool(permission="auth.change_user")
def restock() -> str:
    """Fill the shelves."""
    return "full"


@shop.resource("shelf://{number}", permission=lambda user: user.is_staff)
def shelf(number: int) -> str:
    """Return what is on a shelf."""
    return f"shelf {number}"


@shop.prompt
def advise() -> str:
    """Ask for advice."""
    return "What shall I buy?"


@pytest.fixture(autouse=True)
def _served(settings):
    settings.ROOT_URLCONF = urlconf(endpoint("mcp", server=shop), endpoint("void", server=empty))


def listed(*arguments: str) -> list[list[str]]:
    """Return the words of each line."""
    out = StringIO()
    call_command("mcp", "list", *arguments, stdout=out, no_color=True)
    return [line.split() for line in out.getvalue().splitlines()]


def test_it_shows_each_server_and_what_it_offers():
    here = __name__
    assert listed("--server", "shop") == [
        ["shop", "(/mcp)"],
        ["tool", "look", f"{here}.look"],
        ["tool", "restock", f"{here}.restock", "auth.change_user"],
        ["resource", "shelf://{number}", f"{here}.shelf", "<lambda>(user)"],
        ["prompt", "advise", f"{here}.advise"],
    ]
    assert ["empty", "(/void)"] in listed()
    assert listed("--server", "empty")[1] == ["Nothing."]


@pytest.mark.django_db
def test_it_shows_what_a_user_may_use(django_user_model):
    clerk = django_user_model.objects.create_user("clerk")
    clerk.user_permissions.add(Permission.objects.get(codename="change_user"))

    def keys(name: str) -> list[str]:
        return [line[1] for line in listed("--server", "shop", "--user", name)[1:]]

    assert keys("clerk") == ["look", "restock", "advise"]
    assert keys("") == ["look", "advise"]
    with pytest.raises(CommandError, match='no user "nobody"'):
        keys("nobody")


def test_an_unknown_server_is_named_with_those_that_there_are():
    with pytest.raises(CommandError, match=r"'shpo'.* shop, empty"):
        listed("--server", "shpo")
