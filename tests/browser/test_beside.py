"""What the site serves beside the endpoint, through the same mount."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .chromium import Browser
    from .serving import Site


def test_static_files_arrive(admin: Browser, site: Site) -> None:
    admin.open(site.at("/admin/django_mcp/session/"))

    files = {each.url: each.status for each in admin.exchanges() if "/static/" in each.url}
    assert set(files.values()) == {200}
    for path in ("admin/css/base.css", "django_mcp/admin.css"):
        assert site.at(f"/static/{path}") in files


def test_the_style_sheet_of_the_admin_takes_effect(admin: Browser, site: Site) -> None:
    admin.open(site.at("/admin/django_mcp/session/"))

    badge = admin.find(".mcp-badge")
    assert badge.value_of_css_property("display") == "inline-block"
    assert badge.value_of_css_property("background-color") != "rgba(0, 0, 0, 0)"


def test_websockets_pass_by(browser: Browser, site: Site) -> None:
    browser.open(site.at("/"))

    # The address is the endpoint's: only the protocol tells them apart.
    assert browser.run(ECHO, site.url.replace("http", "ws", 1)) == "hello"


ECHO = """
const [url] = arguments;
return new Promise((resolve, reject) => {
  const socket = new WebSocket(url);
  socket.onopen = () => socket.send("hello");
  socket.onmessage = (event) => { resolve(event.data); socket.close(); };
  socket.onerror = reject;
});
"""
