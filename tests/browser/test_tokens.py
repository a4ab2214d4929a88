"""Tokens in the admin: issued, shown once, used, revoked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .speaking import Speaker

if TYPE_CHECKING:
    from .chromium import Browser
    from .serving import Site

TOKENS = "/admin/django_mcp_tokens/token/"


def issue(admin: Browser, site: Site, name: str) -> str:
    """Add a token and return its secret, as the page shows it."""
    admin.open(site.at(TOKENS))
    admin.follow(".object-tools .addlink")
    admin.fill(name=name)
    admin.follow("[name=_save]")
    return admin.text(".messagelist code")


def test_the_secret_is_shown_once_and_opens_the_endpoint(
    admin: Browser, site: Site, speaker: Speaker
) -> None:
    secret = issue(admin, site, "laptop")
    assert secret.startswith("mcp_")
    assert admin.source.count(secret) == 1

    speaker.headers["Authorization"] = f"Bearer {secret}"
    speaker.enter("holder-of-a-token")
    assert speaker.ask("tools/list")["tools"]
    admin.open(site.at("/admin/django_mcp/session/"))
    principal = admin.in_row("holder-of-a-token", ".field-belongs_to").text
    assert principal.startswith("admin\n")  # not the demo's agent

    admin.open(site.at(TOKENS))
    assert "laptop" in admin.source
    assert secret not in admin.source
    admin.follow(admin.in_row("laptop", "th a"))
    assert secret not in admin.source
    assert admin.errors() == []


def test_a_revoked_token_is_refused(admin: Browser, site: Site, speaker: Speaker) -> None:
    speaker.headers["Authorization"] = f"Bearer {issue(admin, site, 'lost phone')}"
    speaker.enter("thief")

    admin.in_row("lost phone", ".action-select").click()
    admin.choose("action", "Revoke selected tokens")
    admin.follow(".actions [type=submit]")

    assert admin.text(".messagelist .success") == "1 token was revoked."
    assert "revoked" in admin.row("lost phone").text
    response = speaker.send("tools/list", id=1)
    assert response.status_code == 401
    assert response.headers["WWW-Authenticate"] == 'Bearer error="invalid_token"'
