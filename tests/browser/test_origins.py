"""MCP clients that are web pages: those of an allowed origin, and all others."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from tests.support.messages import opening, request

from .conftest import named

if TYPE_CHECKING:
    from .chromium import Browser
    from .serving import Site


def story_of(browser: Browser, site: Site, origin: str, **wishes: str) -> dict[str, Any]:
    """Let the page of an origin live through a session, and return what it could read."""
    query = urlencode({"endpoint": site.url, "name": "page", **wishes})
    browser.open(f"{origin}/client.html?{query}")
    told: dict[str, Any] = json.loads(browser.wait(lambda: browser.text("#story")))
    return told


def test_a_page_of_an_allowed_origin_is_a_client(
    browser: Browser, site: Site, friendly_origin: str
) -> None:
    story = story_of(browser, site, friendly_origin)

    assert "error" not in story
    assert len(story["session"]) > 20
    assert (story["opened"], story["server"]) == (200, "support-desk")
    assert (story["confirmed"], story["ended"], story["after"]) == (202, 204, 404)
    assert "search_tickets" in story["tools"]


def test_such_a_page_can_read_why_it_is_refused(
    browser: Browser, site: Site, friendly_origin: str
) -> None:
    story = story_of(browser, site, friendly_origin, token="wrong")

    assert (story["opened"], story["session"]) == (401, None)
    assert story["challenge"] == 'Bearer realm="support-desk", error="invalid_token"'


def test_a_page_of_another_origin_can_do_nothing(
    admin: Browser, site: Site, foreign_origin: str
) -> None:
    story = story_of(admin, site, foreign_origin, name="intruder")

    assert story == {"error": "TypeError: Failed to fetch"}
    assert "Access-Control-Allow-Origin" in " ".join(admin.errors())
    assert sessions_named(admin, site, "intruder") == 0


def test_a_page_of_another_origin_can_do_nothing_without_a_preflight_either(
    admin: Browser, site: Site, foreign_origin: str
) -> None:
    """A form's content type needs no preflight, and the answer need not be readable to do harm."""
    admin.open(f"{foreign_origin}/client.html?endpoint=none")
    params = opening("2025-11-25", clientInfo=named("smuggler"))
    body = json.dumps(request("initialize", **params))

    seen = admin.run(SMUGGLE, site.url, body)

    assert seen == "opaque"
    assert admin.wait(lambda: statuses(admin, site.url)) == [403]
    assert sessions_named(admin, site, "smuggler") == 0


SMUGGLE = """
const [url, body] = arguments;
const wish = { method: "POST", mode: "no-cors", credentials: "include", body };
return fetch(url, wish).then((response) => response.type);
"""


def statuses(browser: Browser, url: str) -> list[int]:
    """Return what the browser's requests to an address were answered."""
    return [each.status for each in browser.exchanges() if each.url == url and each.status]


def sessions_named(admin: Browser, site: Site, name: str) -> int:
    """Count the sessions that clients of a name have opened."""
    admin.open(site.at(f"/admin/django_mcp/session/?q={name}"))
    return len(admin.find_all("#result_list tbody tr"))
