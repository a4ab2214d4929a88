"""Tools that name an app, and the app that is to be there."""

from __future__ import annotations

from django_mcp import MCPServer
from django_mcp.checks.apps import check_apps

from .support import BOARD, PLAIN, server_with


def test_a_tool_that_names_an_app_which_is_not_there_is_an_error(write):
    write({"board.html": PLAIN})
    server = server_with()
    server.tool(name="right", app=BOARD)(lambda: "")
    server.tool(name="wrong", app="ui://tickets/bord")(lambda: "")
    (error,) = check_apps([server])
    assert error.id == "django_mcp.E071"
    assert "the tool 'wrong'" in error.msg
    assert "'ui://tickets/bord'" in error.msg
    assert f"{BOARD!r}" in error.msg


def test_a_server_without_apps_says_so(write):
    server = MCPServer("test")
    server.tool(name="wrong", app=BOARD)(lambda: "")
    (error,) = check_apps([server])
    assert error.msg.endswith("the apps of the server: none.")


def test_pages_are_checked_as_well(write):
    write({"board.html": '<img src="x.png">'})
    assert [each.id for each in check_apps([server_with()])] == ["django_mcp.W070"]


def test_a_tool_for_apps_that_shows_none_is_fine():
    server = MCPServer("test")
    server.tool(name="it", visibility=["app"])(lambda: "")
    assert list(check_apps([server])) == []
