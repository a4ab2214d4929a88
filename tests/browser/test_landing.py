"""The landing page of the example, as a visitor finds it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .chromium import Browser
    from .serving import Site


def test_shows_where_the_endpoint_is(browser: Browser, site: Site) -> None:
    browser.open(site.at("/"))

    assert browser.text(".endpoint pre") == site.url
    assert f"claude mcp add --transport http support {site.url}" in browser.text("main")


def test_loads_nothing_but_itself_and_without_errors(browser: Browser, site: Site) -> None:
    browser.open(site.at("/"))

    exchanges = [(each.url, each.status) for each in browser.exchanges()]
    assert [pair for pair in exchanges if pair[0] != "data:,"] == [(site.at("/"), 200)]
    assert browser.errors() == []


def test_leads_to_the_admin(browser: Browser, site: Site) -> None:
    browser.open(site.at("/"))
    browser.follow("main a")

    assert browser.text("#site-name") == "Harbour support desk"
    assert browser.find("[name=password]").is_displayed()


@pytest.mark.parametrize("width", [320, 390])
def test_fits_a_narrow_screen(browser: Browser, site: Site, width: int) -> None:
    browser.resize(width=width)
    browser.open(site.at("/"))

    assert browser.run("return window.innerWidth") == width
    assert browser.run("return document.documentElement.scrollWidth") == width
    # Nor is anything cut off: what a box cannot hold sticks out of it.
    boxes = browser.find_all("main, main *:not(a, b, code, span)")
    assert boxes
    assert [box.text for box in boxes if browser.run(STICKS_OUT, box)] == []


STICKS_OUT = "return arguments[0].scrollWidth > arguments[0].clientWidth"
