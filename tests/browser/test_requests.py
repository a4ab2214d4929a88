"""Requests in flight in the admin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .site.management.commands.prepare_site import PLANTED

if TYPE_CHECKING:
    from .chromium import Browser
    from .serving import Site

REQUESTS = "/admin/django_mcp/pendingrequest/"


def test_the_list_shows_who_waits_for_whom(admin: Browser, site: Site) -> None:
    admin.open(site.at(REQUESTS))

    call = admin.row("tools/call search_tickets").text
    assert all(text in call for text in ("from the client", "running", "agent", "due in"))
    assert "to the client" in admin.row("elicitation/create").text
    assert admin.errors() == []


def test_a_request_leads_to_its_page_and_to_its_session(admin: Browser, site: Site) -> None:
    admin.open(site.at(REQUESTS))
    admin.follow(admin.in_row("search_tickets", "th a"))
    assert admin.text(".mcp-badge") == "running"
    assert "search_tickets" in admin.text("#content")

    admin.follow(".field-session .readonly a")
    assert PLANTED in admin.text("#content h2")
    assert "tools/call search_tickets" in admin.text(".inline-group")
    assert admin.errors() == []
