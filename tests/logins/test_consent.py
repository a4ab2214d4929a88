"""The page on which people agree: what it says, and to whom."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from django_mcp.contrib.oauth.dot.models import Application
from tests.logins.visitor import CALLBACK, RESOURCE, Visitor

pytestmark = pytest.mark.django_db


@pytest.fixture
def registered(editor):
    assert editor.register(client_name="Editor <b>", redirect_uris=CALLBACKS).status_code == 201
    return editor


CALLBACKS = [
    CALLBACK,
    "http://localhost/callback",
    "http://127.0.0.1/callback",
    "cursor://anysphere.cursor-mcp/callback",
]


def text_of(page):
    text = re.sub(r"<(style|script|head).*?</\1>", " ", page.content.decode(), flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]*>", " ", text).split())


def test_it_says_who_asks_where_the_answer_goes_and_for_what(registered):
    text = text_of(registered.ask(scope="orders:read orders:write"))
    for said in (
        "Let Editor &lt;b&gt; act for you?",
        "You are logged in as anna",
        "nobody has checked it",
        "Sends you back to editor.example",
        f"For The shop {RESOURCE}",
        "It will be able to see Your orders",
        "It will be able to change Your orders: cancel and pay them",
    ):
        assert said in text, text
    assert "on your computer" not in text


@pytest.mark.parametrize(
    ("uri", "place"),
    [
        ("http://localhost:4000/callback", "localhost:4000"),
        ("http://127.0.0.1:4000/callback", "127.0.0.1:4000"),
        ("cursor://anysphere.cursor-mcp/callback", "cursor:"),
    ],
)
def test_it_warns_where_the_answer_goes_to_the_own_machine(registered, uri, place):
    text = text_of(registered.ask(redirect_uri=uri))
    assert f"Sends you back to {place}" in text
    assert "This leads to a program on your computer." in text


def test_scopes_that_all_change_are_not_told_apart(registered):
    text = text_of(registered.ask(scope="orders:write"))
    assert "It will be able to Your orders" in text
    assert "to see" not in text


def test_a_client_that_the_site_has_registered_is_not_suspected(anna):
    application = Application.objects.create(
        name="Our own",
        redirect_uris=CALLBACK,
        client_type="public",
        authorization_grant_type="authorization-code",
    )
    text = text_of(Visitor(anna, application.client_id).ask())
    assert "nobody has checked it" not in text


def test_nobody_else_can_show_it_in_a_frame_or_keep_it(registered):
    page = registered.ask()
    assert page.headers["X-Frame-Options"] == "DENY"
    assert page.headers["Cache-Control"] == "no-store"
    assert page.headers["Referrer-Policy"] == "same-origin"


def test_another_site_cannot_agree_for_people(registered):
    registered.browser.handler.enforce_csrf_checks = True
    page = registered.ask()
    response = registered.browser.post(registered.url, {"allow": "1", "client_id": "x"})
    assert page.status_code == 200
    assert response.status_code == 403


class Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.attributes = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]


def test_it_needs_nothing_that_a_strict_policy_forbids(registered):
    html = registered.ask().content.decode()
    page = Page()
    page.feed(html)
    assert "script" not in page.tags
    assert "style" not in page.tags
    assert not [each for each in page.attributes if each == "style" or each.startswith("on")]
    (style,) = re.findall(r'<link rel="stylesheet" href="([^"]*)"', html)
    found = registered.machine.get(style)
    assert found.headers["Content-Type"].startswith("text/css")
    assert b"prefers-color-scheme: dark" in found.content


def test_it_can_be_read_by_all(registered):
    html = registered.ask().content.decode()
    assert '<html lang="en-us">' in html
    assert 'name="viewport" content="width=device-width, initial-scale=1"' in html
    assert re.findall(r"<(h\d)", html) == ["h1", "h2"]
    assert html.count("<main>") == 1
    assert "<title>Let Editor &lt;b&gt; act for you?</title>" in html


def test_a_site_can_have_a_page_of_its_own(registered, settings, tmp_path):
    place = tmp_path / "django_mcp" / "oauth"
    place.mkdir(parents=True)
    (place / "authorize.html").write_text("{{ client }} at {{ place }}: {{ reading.0 }}")
    settings.TEMPLATES = [{**settings.TEMPLATES[0], "DIRS": [tmp_path]}]
    assert text_of(registered.ask()) == "Editor &lt;b&gt; at editor.example: Your orders"
