"""The official SDK of MCP Apps: as a host of our pages, and in a page that our server offers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conformance import nodejs

from .app_view import AppView
from .serving import OFFICIAL_APP, Site

if TYPE_CHECKING:
    from .chromium import Browser

pytestmark = pytest.mark.node

PROJECT = Path(__file__).resolve().parent / "official"


@pytest.fixture(scope="module")
def _built(pages: Path, site: Site) -> None:
    """Have host and app where they are served."""
    try:
        nodejs.install(PROJECT)
        for source, target in (
            ("host.mjs", pages / "official.js"),
            ("app.mjs", site.log.parent / OFFICIAL_APP),
        ):
            kind = "esm" if source == "host.mjs" else "iife"
            options = ["--bundle", "--minify", f"--format={kind}", "--platform=browser"]
            bundler = PROJECT / "node_modules" / ".bin" / "esbuild"
            nodejs.run([str(bundler), source, *options, f"--outfile={target}"], PROJECT)
    except nodejs.NodeError as error:
        if os.environ.get("CI"):
            pytest.fail(f"CI must have it: {error}")
        pytest.skip(str(error))


@pytest.fixture
def official(
    _built: None, browser: Browser, site: Site, friendly_origin: str, foreign_origin: str
) -> AppView:
    """The official host."""
    return AppView(browser, site, friendly_origin, foreign_origin, page="official.html")


@pytest.fixture
def own(
    _built: None, browser: Browser, site: Site, friendly_origin: str, foreign_origin: str
) -> AppView:
    """The host of these tests."""
    return AppView(browser, site, friendly_origin, foreign_origin)


def test_the_official_host_shows_a_page_of_ours(official: AppView, browser: Browser) -> None:
    official.show("show_board", theme="dark")
    browser.wait(lambda: browser.find_all(".board li"))
    seen = official.seen()
    assert seen["app"] == {"name": "desk/board", "version": "1.0"}
    assert browser.run("return document.documentElement.dataset.theme") == "dark"
    assert browser.run("return mcpApp.host.info.name") == "official-host"
    browser.wait(lambda: official.seen()["sizes"])

    button = browser.find(".board button")
    number, status = button.get_attribute("data-key").split(" ")
    button.click()
    browser.find(f'[data-status="{status}"] button[data-key="{number} reply"]').click()
    browser.fill(body="Dear [name]")
    browser.find("form [type=submit]").click()
    browser.wait(lambda: "Fill in [name]" in browser.text(".errorlist"))
    browser.fill(body="Dear Anna")
    browser.find("form [type=submit]").click()
    browser.wait(lambda: "has been answered" in browser.text("#said"))

    browser.run("mcpApp.log('info', 'done'); return mcpApp.openLink('https://example.com/')")
    browser.wait(lambda: official.seen()["logs"])
    official.in_host("bridge.setHostContext({ theme: 'light' })")
    theme = "return document.documentElement.dataset.theme"
    browser.wait(lambda: browser.run(theme) == "light")
    browser.run("mcpApp.on('teardown', () => { window.isClosed = true; });")
    assert official.in_host("return bridge.teardownResource({})") == {}
    assert browser.run("return window.isClosed") is True
    seen = official.seen()
    assert (seen["faults"], seen["links"]) == ([], ["https://example.com/"])
    assert seen["logs"][0]["data"] == "done"
    assert browser.errors() == []


@pytest.mark.parametrize("host", ["own", "official"])
def test_a_page_of_ours_may_be_an_official_app(
    host: str, request: pytest.FixtureRequest, browser: Browser
) -> None:
    view: AppView = request.getfixturevalue(host)
    view.show("show_official")
    browser.wait(lambda: browser.find_all("li"))
    assert "host" in browser.text("output")
    browser.run("const first = document.querySelector('li'); first.textContent = ''")
    first = browser.find("li").get_attribute("data-id")
    browser.find("button").click()
    browser.wait(lambda: f"solved #{first}" in browser.text("ul"))
    assert view.seen()["faults"] == []
    assert browser.errors() == []
