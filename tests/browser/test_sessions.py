"""Sessions in the admin: real clients are seen, and ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import anyio.from_thread
import pytest
from mcp import Client, MCPError
from mcp_types import Implementation

from django_mcp.store.sessions.finding import digest
from tests.support.caller import Caller
from tests.support.messages import INITIALIZED

from .conftest import named

if TYPE_CHECKING:
    from .chromium import Browser
    from .serving import Site

SESSIONS = "/admin/django_mcp/session/"
Enter = Callable[[str], Caller]


def list_sessions(admin: Browser, site: Site, name: str = "") -> None:
    """Open the list, of all sessions or of those of a client."""
    admin.open(site.at(f"{SESSIONS}?q={name}"))


def show_session(admin: Browser, site: Site, name: str) -> None:
    """Open the page of a client's session, by way of the list."""
    list_sessions(admin, site)
    admin.follow(admin.in_row(name, "th a"))


def is_ended(caller: Caller) -> bool:
    """Tell whether the next request meets the answer for a session that is no more."""
    answer = caller.call("tools/list", 4711)
    return answer.status == 404 and answer.message["id"] == 4711


def test_the_admin_leads_to_the_list(admin: Browser, site: Site, enter: Enter) -> None:
    enter("found-by-links")

    admin.follow(".model-session th a")

    assert admin.driver.current_url == site.at(SESSIONS)
    assert "ready" in admin.row("found-by-links").text
    assert admin.errors() == []


def test_the_list_shows_a_client_and_follows_its_state(
    admin: Browser, site: Site, caller: Caller
) -> None:
    opened = caller.initialize("2025-11-25", clientInfo=named("newcomer"))
    list_sessions(admin, site)
    row = admin.row("newcomer").text
    assert all(text in row for text in ("2025-11-25", "agent", "support-desk"))
    assert admin.in_row("newcomer", ".mcp-badge").text == "opened"

    session = opened.header("Mcp-Session-Id")
    assert session
    assert caller.in_session(session).post(INITIALIZED).status == 202
    list_sessions(admin, site)
    assert admin.in_row("newcomer", ".mcp-badge").text == "ready"


def test_the_list_is_searched_by_client(admin: Browser, site: Site, enter: Enter) -> None:
    enter("needle-1")
    enter("haystack-1")
    list_sessions(admin, site)

    admin.fill(q="needle")
    admin.follow("#changelist-search [type=submit]")

    (row,) = admin.find_all("#result_list tbody tr")
    assert "needle-1" in row.text


def test_the_page_shows_all_but_the_secret(admin: Browser, site: Site, enter: Enter) -> None:
    assert enter("detailed").call("tools/list").status == 200

    def has_been_counted() -> bool:
        """What is used is written down a moment later, in one piece with others."""
        show_session(admin, site, "detailed")
        return admin.text(".field-request_count .readonly") == "2"

    assert admin.wait(has_been_counted)
    assert admin.text(".mcp-badge") == "ready"
    page = admin.text("#content")
    for fact in ("detailed", "2025-11-25", "agent", "support-desk", '"version": "1.0"'):
        assert fact in page
    assert admin.errors() == []


def test_no_page_has_the_secret(admin: Browser, site: Site, enter: Enter) -> None:
    session = enter("discreet").session
    assert session

    for show in (list_sessions, show_session):
        show(admin, site, "discreet")
        assert "discreet" in admin.source
        assert session not in admin.source
        assert digest(session) not in admin.source


def test_the_button_ends_a_session(admin: Browser, site: Site, enter: Enter) -> None:
    ended, other = enter("unwanted"), enter("welcome")
    show_session(admin, site, "unwanted")

    admin.follow(".mcp-end")

    assert admin.text(".messagelist .success") == "1 session was ended."
    assert admin.text(".mcp-badge") == "ended"
    assert admin.find_all(".mcp-end") == []
    assert is_ended(ended)
    assert not is_ended(other)


def test_the_action_ends_the_selected_sessions(admin: Browser, site: Site, enter: Enter) -> None:
    names = ("selected-1", "selected-2", "spared")
    callers = [enter(name) for name in names]
    list_sessions(admin, site)

    for name in names[:2]:
        admin.in_row(name, ".action-select").click()
    admin.choose("action", "End selected sessions")
    admin.follow(".actions [type=submit]")

    assert admin.text(".messagelist .success") == "2 sessions were ended."
    states = [admin.in_row(name, ".mcp-badge").text for name in names]
    assert states == ["ended", "ended", "ready"]
    assert [is_ended(each) for each in callers] == [True, True, False]


def test_the_official_client_learns_that_its_session_has_ended(admin: Browser, site: Site) -> None:
    info = Implementation(name="official-client", version="2.0")
    client = Client(site.url, mode="legacy", client_info=info, read_timeout_seconds=15)
    with (
        anyio.from_thread.start_blocking_portal() as portal,
        portal.wrap_async_context_manager(client) as connected,
    ):
        assert portal.call(connected.list_tools).tools
        show_session(admin, site, "official-client")
        admin.follow(".mcp-end")

        with pytest.raises(MCPError, match="Session"):
            portal.call(connected.list_tools)
