"""What a page would load is compared with what its host will let it."""

from __future__ import annotations

from typing import Any

import pytest

from django_mcp import RegistrationError

from .support import found, server_with

CDN = "https://cdn.example.com"
RESOURCE = ("resource_domains", f"{CDN}/x")
LOADS = {
    f'<script src="{CDN}/x"></script>': RESOURCE,
    f'<link rel="stylesheet" href="{CDN}/x">': RESOURCE,
    f'<img src="{CDN}/x" alt="">': RESOURCE,
    f'<img srcset="{CDN}/x 2x, data:,y 1x" alt="">': RESOURCE,
    f'<img srcset="data:,y 1x,{CDN}/x 2x" alt="">': RESOURCE,
    f'<video poster="{CDN}/x"></video>': RESOURCE,
    f'<audio><source src="{CDN}/x"></audio>': RESOURCE,
    f'<svg><use xlink:href="{CDN}/x"/></svg>': RESOURCE,
    f"<style>a {{ background: url({CDN}/x) }}</style>": RESOURCE,
    f"<style>@import '{CDN}/x';</style>": RESOURCE,
    f"<p style=\"background: url('{CDN}/x')\"></p>": RESOURCE,
    f'<script type="module">import a from "{CDN}/x";</script>': RESOURCE,
    f'<script type="module">import "{CDN}/x";</script>': RESOURCE,
    f"<script>import('{CDN}/x').then(run);</script>": RESOURCE,
    f"<script>fetch('{CDN}/x')</script>": ("connect_domains", f"{CDN}/x"),
    "<script>new WebSocket(`wss://live.example.com`)</script>": (
        "connect_domains",
        "wss://live.example.com",
    ),
    f"<script>request.open('GET', '{CDN}/x')</script>": ("connect_domains", f"{CDN}/x"),
    f'<iframe src="{CDN}/x"></iframe>': ("frame_domains", f"{CDN}/x"),
    f'<base href="{CDN}/x">': ("base_uri_domains", f"{CDN}/x"),
    '<script src="/static/board.js"></script>': ("resource_domains", "/static/board.js"),
    '<link rel="stylesheet" href="board.css">': ("resource_domains", "board.css"),
    "<script>fetch('/api/tickets')</script>": ("connect_domains", "/api/tickets"),
}
HARMLESS = [
    "<p>https://cdn.example.com/x</p>",
    f'<a href="{CDN}/x">Elsewhere</a>',
    f'<link rel="canonical" href="{CDN}/x">',
    '<img src="data:image/png;base64,AA==" alt="">',
    '<img srcset=" " alt="">',
    f'<script type="application/json">{{"fetch(": "{CDN}/x"}}</script>',
    f"<script>mcpApp.openLink('{CDN}/x')</script>",
    "<style>a { mask: url(#mask) }</style>",
    "<script>const from = 'here'; fetch(url)</script>",
]


@pytest.mark.parametrize("html", LOADS)
def test_what_would_be_blocked_is_found(write, html: str):
    write({"board.html": html})
    (warning,) = found(server_with())
    key, url = LOADS[html]
    assert warning.id == "django_mcp.W070"
    assert warning.msg.endswith(f"would load {url!r}, which is not in its {key}.")


@pytest.mark.parametrize("html", [each for each in LOADS if "://" in each])
def test_what_is_declared_is_not(write, html: str):
    write({"board.html": html})
    origins = [CDN, "wss://live.example.com"]
    key, _ = LOADS[html]
    assert found(server_with(csp={key: origins})) == []
    others = {"connect_domains", "resource_domains", "frame_domains", "base_uri_domains"} - {key}
    assert len(found(server_with(csp=dict.fromkeys(others, origins)))) == 1


@pytest.mark.parametrize("html", HARMLESS)
def test_what_loads_nothing_is_not_found(write, html: str):
    write({"board.html": html})
    assert found(server_with()) == []


@pytest.mark.parametrize(
    ("origin", "is_covered"),
    [
        ("https://cdn.example.com", True),
        ("https://*.example.com", True),
        ("http://cdn.example.com", True),
        ("https://cdn.example.com:8443", False),
        ("https://cdn.example.com:*", True),
        ("https://*.cdn.example.com", False),
        ("https://example.com", False),
        ("https://evil-cdn.example.com", False),
        ("wss://cdn.example.com", False),
    ],
)
def test_origins_cover_what_a_browser_would_let_through(write, origin: str, is_covered: bool):
    write({"board.html": f'<script src="{CDN}/x"></script>'})
    assert (found(server_with(csp={"resource_domains": [origin]})) == []) is is_covered


def test_each_address_is_named_once(write):
    write({"board.html": f'<img src="{CDN}/x" alt="">' * 3})
    assert len(found(server_with())) == 1


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"csp": {"connect_domains": CDN}}, f'as in ["{CDN}"]'),
        ({"csp": {"connectDomains": [CDN]}}, "it takes connect_domains"),
        ({"csp": {"connect_domains": [f"{CDN}/path"]}}, "no origin"),
        ({"csp": {"connect_domains": ["cdn.example.com"]}}, "no origin"),
        ({"csp": {"connect_domains": ["*"]}}, "no origin"),
        ({"csp": {"connect_domains": [f"{CDN}; script-src *"]}}, "no origin"),
        ({"csp": {"connect_domains": [f"{CDN}\n"]}}, "no origin"),
        ({"csp": {"connect_domains": ["'unsafe-eval'"]}}, "no origin"),
        ({"browser_permissions": ["usb"]}, "it takes camera"),
    ],
)
def test_what_hosts_would_not_understand_is_refused(options: dict[str, Any], complaint: str):
    with pytest.raises(RegistrationError) as caught:
        server_with(**options)
    assert complaint in str(caught.value)


def test_wishes_are_told_as_hosts_read_them():
    server = server_with(
        csp={"frame_domains": ["https://*.example.com:8443"], "base_uri_domains": []},
        browser_permissions=["camera", "clipboard_write"],
        prefers_border=False,
        domain="a904794854a047f6.example.com",
    )
    (resource,) = server.resources
    assert resource.description["_meta"] == {
        "ui": {
            "csp": {"frameDomains": ["https://*.example.com:8443"], "baseUriDomains": []},
            "permissions": {"camera": {}, "clipboardWrite": {}},
            "prefersBorder": False,
            "domain": "a904794854a047f6.example.com",
        }
    }
