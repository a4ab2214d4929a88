"""Tokens of one's own: made, copied, used, revoked, without the admin."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.caller import Caller

from .conftest import named
from .test_landing import STICKS_OUT
from .test_tokens import READABLE, contrast

if TYPE_CHECKING:
    from .chromium import Browser
    from .serving import Site

TOKENS = "/tokens/"
LEGIBLE = 4.5
"""The contrast that WCAG 2.2, section 1.4.3, asks of text."""


def make(browser: Browser, site: Site, name: str, *boxes: str) -> str:
    """Make a token, with boxes ticked, and return its secret as the page shows it."""
    browser.open(site.at(TOKENS))
    browser.fill(name=name)
    for box in boxes:
        browser.find(box).click()
    browser.follow("#mcp-new ~ .mcp-buttons button")
    return browser.text("#mcp-secret")


def test_made_copied_used_and_revoked(admin: Browser, site: Site, caller: Caller) -> None:
    secret = make(admin, site, "my notebook")
    assert secret.startswith("mcp_")
    assert admin.source.count(secret) == 1

    admin.find("[data-mcp-copies]").click()
    admin.wait(lambda: admin.text("[data-mcp-status]") == "Copied", "nothing is copied")
    admin.follow(".mcp-buttons a")
    assert secret not in admin.source
    assert secret not in str(admin.driver.get_cookies())
    admin.find("[name=name]").click()
    admin.press("CONTROL", "v")
    pasted = admin.run("return document.querySelector('[name=name]').value")
    assert pasted == secret

    holder = caller.with_headers(Authorization=f"Bearer {pasted}")
    member = holder.opened(clientInfo=named("my-own-client"))
    assert member.call("tools/list").result["tools"]
    admin.open(site.at(TOKENS))
    assert "Last used\njust now" in admin.text(".mcp-list li")

    admin.find(".mcp-list summary").click()
    admin.follow(".mcp-danger")
    assert admin.text(".mcp-list .mcp-ended .mcp-state") == "revoked"
    answer = member.call("tools/list")
    assert answer.status == 401
    assert answer.error["message"].endswith("/tokens/ for another.")
    # The policy of the page has let style and script through, and there was nothing inline.
    assert admin.errors() == []


def test_one_for_reading_changes_nothing(admin: Browser, site: Site, caller: Caller) -> None:
    secret = make(admin, site, "reader", "[name=read_only]", "[value='desk:read']")
    reader = caller.with_headers(Authorization=f"Bearer {secret}")
    assert reader.tool("search_tickets", query="refund").status == 200
    note = {"ticket_id": 1, "body": "I am on it.", "internal": True}
    refused = reader.tool("reply_to_ticket", **note)
    assert refused.status == 403
    assert "for reading only" in refused.error["message"]
    admin.follow(".mcp-buttons a")
    shown = admin.text(".mcp-list li")
    assert "Tickets, customers and articles; only what changes nothing" in shown


def test_the_way_back_through_history_shows_no_secret(admin: Browser, site: Site) -> None:
    secret = make(admin, site, "forgotten")
    admin.follow(".mcp-buttons a")
    admin.driver.back()
    assert secret not in admin.source


def test_everything_is_done_by_keyboard(admin: Browser, site: Site) -> None:
    admin.open(site.at(TOKENS))
    focus_by_tab(admin, "[name=name]")
    admin.press(*"typed")
    focus_by_tab(admin, "#mcp-new ~ .mcp-buttons button")
    admin.press("ENTER")
    admin.wait(lambda: admin.find_all("#mcp-secret"), "no token is made")
    assert focused(admin) == "mcp-secret"
    focus_by_tab(admin, "[data-mcp-copies]")
    assert admin.find("[data-mcp-copies]").value_of_css_property("outline-style") == "solid"
    admin.press("ENTER")
    admin.wait(lambda: admin.text("[data-mcp-status]") == "Copied", "nothing is copied")
    focus_by_tab(admin, ".mcp-buttons a")
    admin.press("ENTER")
    admin.wait(lambda: admin.find_all("[name=name]"), "the page has no form")
    focus_by_tab(admin, ".mcp-list li:first-child summary")
    admin.press("ENTER")
    focus_by_tab(admin, ".mcp-list li:first-child .mcp-danger")
    admin.press("ENTER")
    revoked = "return location.hash.startsWith('#mcp-token-')"
    admin.wait(lambda: admin.run(revoked), "no token is revoked")
    assert admin.run("return document.querySelector(':target .mcp-state').innerText") == "revoked"


def test_every_field_has_a_name(admin: Browser, site: Site) -> None:
    admin.open(site.at(TOKENS))
    fields = admin.find_all(".mcp-tokens input:not([type=hidden]), .mcp-tokens select")
    assert len(fields) == 5
    assert all(field.accessible_name for field in fields)
    groups = admin.find_all(".mcp-tokens fieldset")
    assert [group.accessible_name for group in groups] == ["What it may do:"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_easy_to_read(admin: Browser, site: Site, scheme: str) -> None:
    admin.prefer(scheme)
    make(admin, site, f"{scheme} page")
    code = admin.find("#mcp-secret")
    ink, paper = (code.value_of_css_property(name) for name in ("color", "background-color"))
    assert contrast(ink, paper) > READABLE
    is_dark = contrast(paper, "rgb(0, 0, 0, 1)") < LEGIBLE
    assert is_dark is (scheme == "dark")
    admin.follow(".mcp-buttons a")
    admin.find(".mcp-list summary").click()
    for part in (".mcp-danger", ".mcp-tokens h1", ".mcp-state", ".mcp-field label"):
        assert contrast(admin.find(part).value_of_css_property("color"), paper) > LEGIBLE


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_nothing_sticks_out(admin: Browser, site: Site, width: int) -> None:
    admin.resize(width=width)
    make(admin, site, "a-name-without-any-space-in-it-that-goes-on-and-on-and-on")
    for _ in ("the page with the secret", "the page with the form"):
        assert admin.run("return document.documentElement.scrollWidth") == width
        boxes = admin.find_all("main, main *:not(a, b, code, span, option, input, em)")
        assert boxes
        assert [box.text for box in boxes if admin.run(STICKS_OUT, box)] == []
        if buttons := admin.find_all(".mcp-buttons a"):
            admin.follow(buttons[0])


def focused(browser: Browser) -> str:
    """Return the id of what has the focus."""
    return str(browser.run("return document.activeElement.id"))


def focus_by_tab(browser: Browser, selector: str) -> None:
    """Press the tab key until an element has the focus."""
    has_it = "return document.activeElement === document.querySelector(arguments[0])"
    for _ in range(60):
        browser.press("TAB")
        if browser.run(has_it, selector):
            return
    raise AssertionError(f"the focus never reaches {selector}")
