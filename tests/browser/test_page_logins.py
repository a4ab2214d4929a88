"""MCP clients that are web pages log in: any may begin, and those of allowed origins may call."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

if TYPE_CHECKING:
    from .chromium import Browser
    from .serving import Site

ENDPOINT = "/login/mcp"


def story_of(admin: Browser, site: Site, origin: str) -> dict[str, Any]:
    """Let the page of an origin log in and call a tool; return what it could read."""
    wishes = urlencode({"endpoint": site.at(ENDPOINT), "tool": "ticket_statistics"})
    admin.open(f"{origin}/login.html?{wishes}")
    told: list[Any] = admin.wait(
        lambda: admin.find_all("#story:not(:empty), button.yes"), "nobody is asked to agree"
    )
    assert told[0].tag_name == "button", told[0].text
    assert f"Sends you back to\n{origin.removeprefix('http://')}" in admin.text("main")
    admin.follow("button.yes")
    story: dict[str, Any] = json.loads(admin.wait(lambda: admin.text("#story")))
    return story


def test_a_page_of_an_allowed_origin_logs_in_and_calls(
    admin: Browser, site: Site, friendly_origin: str
) -> None:
    story = story_of(admin, site, friendly_origin)

    assert "error" not in story, story
    # What it was refused with says where to go on.
    assert story["refused"] == 401
    assert (story["resource"], story["server"], story["registered"]) == (200, 200, 201)
    assert story["issuer"] is True
    assert (story["exchanged"], story["refreshed"], story["revoked"]) == (200, 200, 200)
    assert (story["called"], story["result"]) == (200, True)


def test_a_page_of_another_origin_logs_in_and_cannot_call(
    admin: Browser, site: Site, foreign_origin: str
) -> None:
    """What anybody may ask for is open to it, and so are tokens that somebody has agreed to."""
    story = story_of(admin, site, foreign_origin)

    assert "error" not in story, story
    assert (story["resource"], story["server"], story["registered"]) == (200, 200, 201)
    assert (story["exchanged"], story["refreshed"], story["revoked"]) == (200, 200, 200)
    # The endpoint tells it nothing, with a token or without.
    refused = "TypeError: Failed to fetch"
    assert (story["endpoint"], story["call"]) == (refused, refused)
    assert not story.keys() & {"refused", "called", "result"}
    errors = [each for each in admin.errors() if "Access-Control-Allow-Origin" in each]
    assert len(errors) == 2
    assert all(site.at(ENDPOINT) in each for each in errors)


def test_no_page_is_let_through_by_the_cookies_of_who_is_logged_in(
    admin: Browser, site: Site, foreign_origin: str
) -> None:
    """It cannot read the page on which people agree, nor answer in their place."""
    admin.open(f"{foreign_origin}/back.html")

    for wish in ({}, {"method": "POST", "body": "allow=1"}):
        seen = admin.run(READ, site.at("/o/authorize/?client_id=x"), {**WITH_COOKIES, **wish})
        assert seen == "TypeError: Failed to fetch"
    seen = admin.run(READ, site.at("/o/token/"), {**WITH_COOKIES, "method": "POST"})
    assert seen == "TypeError: Failed to fetch"
    # Without cookies it may: it is nobody then.
    seen = admin.run(READ, site.at("/o/token/"), {"method": "POST"})
    assert seen == 400


WITH_COOKIES = {"credentials": "include"}
READ = """
const [url, wish] = arguments;
if (wish.body) wish.headers = { "Content-Type": "application/x-www-form-urlencoded" };
return fetch(url, wish).then((response) => response.status).catch(String);
"""
