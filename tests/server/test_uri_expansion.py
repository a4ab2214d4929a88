"""URI templates (RFC 6570), forwards; and the one spelling by which URIs are compared."""

from __future__ import annotations

from datetime import UTC, date, datetime
from enum import Enum
from uuid import UUID

import pytest

from django_mcp.protocol.uri_template import URITemplate, canonical

VALUES = {
    "var": "value",
    "hello": "Hello World!",
    "half": "50%",
    "path": "/foo/bar",
    "x": "1024",
    "y": "768",
    "empty": "",
    "undef": None,
    "base": "http://example.com/home/",
}


# RFC 6570, section 3.2, but for the modifiers.
@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{var}", "value"),
        ("{hello}", "Hello%20World%21"),
        ("{half}", "50%25"),
        ("O{empty}X", "OX"),
        ("O{undef}X", "OX"),
        ("{x,y}", "1024,768"),
        ("{x,hello,y}", "1024,Hello%20World%21,768"),
        ("?{x,undef}", "?1024"),
        ("{+var}", "value"),
        ("{+hello}", "Hello%20World!"),
        ("{+half}", "50%25"),
        ("{+path}/here", "/foo/bar/here"),
        ("{+base}index", "http://example.com/home/index"),
        ("{#path}/here", "#/foo/bar/here"),
        ("{#undef}", ""),
        ("X{.var}", "X.value"),
        ("X{.x,y}", "X.1024.768"),
        ("{/var}", "/value"),
        ("{/var,x}/here", "/value/1024/here"),
        ("{/path}", "/%2Ffoo%2Fbar"),
        ("{?x,y}", "?x=1024&y=768"),
        ("{?x,y,empty}", "?x=1024&y=768&empty="),
        ("{?x,undef}", "?x=1024"),
        ("?fixed=yes{&x}", "?fixed=yes&x=1024"),
    ],
)
def test_expansion_is_that_of_the_rfc(template, expected):
    assert URITemplate(f"x:{template}").expand(VALUES) == f"x:{expected}"


class Tone(Enum):
    CALM = "calm down"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (7, "7"),
        (True, "true"),
        (Tone.CALM, "calm%20down"),
        (date(2026, 7, 28), "2026-07-28"),
        (datetime(2026, 7, 28, 12, tzinfo=UTC), "2026-07-28T12%3A00%3A00%2B00%3A00"),
        (UUID(int=5), str(UUID(int=5))),
        ("größe", "gr%C3%B6%C3%9Fe"),
    ],
)
def test_values_are_written_as_clients_send_them(value, expected):
    assert URITemplate("x://{it}").expand({"it": value, "other": object()}) == f"x://{expected}"


@pytest.mark.parametrize("value", ["plain", "a/b?c#d", "größe", "100%", "a b", "bob@example.com"])
def test_what_is_expanded_is_matched_again(value):
    template = URITemplate("x://{it}/y{?q}")
    assert template.match(template.expand({"it": value, "q": value})) == {"it": value, "q": value}


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("note://a%2fb", "note://a%2Fb"),
        ("note://%41%7e", "note://A~"),
        ("note://%2d%2E%30%39%41%5a%5f%61%7A%7E", "note://-.09AZ_az~"),
        ("note://%2f%3A%40%5b%60%7B%fF", "note://%2F%3A%40%5B%60%7B%FF"),
        ("note://é", "note://%C3%A9"),
        ("note://a b", "note://a%20b"),
        ("note://a?b=c&d#e", "note://a?b=c&d#e"),
        ("note://100%", "note://100%"),
        ("note://\ud800", "note://%ED%A0%80"),
    ],
)
def test_uris_are_compared_in_one_spelling(uri, expected):
    assert canonical(uri) == expected
    assert canonical(expected) == expected
