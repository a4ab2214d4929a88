"""Tokens in the admin: issued, shown once, used, revoked."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.support.caller import Caller

from .conftest import named

if TYPE_CHECKING:
    from .chromium import Browser
    from .serving import Site

TOKENS = "/admin/django_mcp_tokens/token/"
READABLE = 7
"""The contrast that WCAG 2.2, section 1.4.6, asks of text."""


def issue(admin: Browser, site: Site, name: str) -> str:
    """Add a token and return its secret, as the page shows it."""
    admin.open(site.at(TOKENS))
    admin.follow(".object-tools .addlink")
    admin.fill(name=name)
    admin.follow("[name=_save]")
    return admin.text(".mcp-secret")


def test_the_secret_is_shown_once_and_opens_the_endpoint(
    admin: Browser, site: Site, caller: Caller
) -> None:
    secret = issue(admin, site, "laptop")
    assert secret.startswith("mcp_")
    assert admin.source.count(secret) == 1
    assert secret not in str(admin.driver.get_cookies())

    holder = caller.with_headers(Authorization=f"Bearer {secret}")
    member = holder.opened(clientInfo=named("holder-of-a-token"))
    assert member.call("tools/list").result["tools"]
    admin.open(site.at("/admin/django_mcp/session/"))
    principal = admin.in_row("holder-of-a-token", ".field-belongs_to").text
    assert principal.startswith("admin\n")  # not the demo's agent

    admin.open(site.at(TOKENS))
    assert "laptop" in admin.source
    assert secret not in admin.source
    admin.follow(admin.in_row("laptop", "th a"))
    assert secret not in admin.source
    assert admin.errors() == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_secret_is_easy_to_read_and_to_select(admin: Browser, site: Site, scheme: str) -> None:
    admin.prefer(scheme)
    secret = issue(admin, site, f"{scheme} reading")
    code = admin.find(".mcp-secret")
    ink, paper = (code.value_of_css_property(name) for name in ("color", "background-color"))
    assert contrast(ink, paper) > READABLE

    code.click()
    assert admin.run("return getSelection().toString()") == secret


@pytest.mark.parametrize("width", [600, 1280])
def test_the_list_shows_state_and_expiry_at_any_width(
    admin: Browser, site: Site, width: int
) -> None:
    issue(admin, site, f"seen at {width}")
    admin.open(site.at(TOKENS))
    admin.resize(width=width)
    for column in ("badge", "remaining"):
        cell = admin.in_row(f"seen at {width}", f".field-{column}").rect
        assert cell["x"] + cell["width"] <= width


def test_the_button_revokes_a_token(admin: Browser, site: Site, caller: Caller) -> None:
    borrower = caller.with_headers(Authorization=f"Bearer {issue(admin, site, 'borrowed')}")
    member = borrower.opened(clientInfo=named("borrower"))
    admin.open(site.at(TOKENS))
    admin.follow(admin.in_row("borrowed", "th a"))
    assert admin.text(".mcp-badge") == "active"
    assert admin.find_all(".deletelink") == []

    admin.follow(".mcp-end")

    assert admin.text(".messagelist .success") == "1 token was revoked."
    assert admin.text(".mcp-badge") == "revoked"
    assert admin.find_all(".mcp-end") == []
    assert member.call("tools/list").status == 401
    admin.follow(".deletelink")
    admin.follow("#content form [type=submit]")
    assert admin.text(".messagelist .success").endswith("was deleted successfully.")
    assert admin.errors() == []


def test_a_revoked_token_is_refused(admin: Browser, site: Site, caller: Caller) -> None:
    thief = caller.with_headers(Authorization=f"Bearer {issue(admin, site, 'lost phone')}")
    member = thief.opened(clientInfo=named("thief"))

    admin.open(site.at(TOKENS))
    admin.in_row("lost phone", ".action-select").click()
    admin.choose("action", "Revoke selected tokens")
    admin.follow(".actions [type=submit]")

    assert admin.text(".messagelist .success") == "1 token was revoked."
    assert "revoked" in admin.row("lost phone").text
    answer = member.call("tools/list")
    assert answer.status == 401
    assert answer.headers["www-authenticate"].endswith('error="invalid_token"')


def test_the_user_is_picked_by_search(admin: Browser, site: Site) -> None:
    admin.open(site.at(f"{TOKENS}add/"))
    assert admin.text(".field-user .select2-selection__rendered") == "admin"
    admin.find(".field-user .select2-selection").click()
    admin.find(".select2-search__field").send_keys("AGENT2")
    found = "[...document.querySelectorAll('.select2-results__option')].map(each => each.innerText)"
    admin.wait(lambda: admin.run(f"return {found}") == ["agent2"], "nobody is found")
    admin.find(".select2-results__option").click()
    admin.fill(name="for somebody else")
    admin.follow("[name=_save]")
    admin.follow(".mcp-buttons .button")  # back to the list
    assert admin.in_row("for somebody else", ".field-user").text == "agent2"
    assert admin.errors() == []


@pytest.mark.parametrize("width", [360, 1280])
def test_the_page_with_the_secret_fits(admin: Browser, site: Site, width: int) -> None:
    admin.resize(width=width)
    issue(admin, site, f"issued at {width}")
    for each in admin.find_all(".mcp-secret, .mcp-buttons .button"):
        assert each.rect["x"] + each.rect["width"] <= width


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours, as WCAG defines it."""
    darker, lighter = sorted(map(luminance, (one, other)))
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour such as rgba(255, 255, 255, 1)."""
    red, green, blue, opacity = map(float, re.findall(r"[\d.]+", colour))
    assert opacity == 1
    parts = [linear(part / 255) for part in (red, green, blue)]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), parts, strict=True))


def linear(part: float) -> float:
    return part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
