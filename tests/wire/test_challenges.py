from __future__ import annotations

import pytest
from django.http import HttpResponse
from hypothesis import given
from hypothesis import strategies as st

from django_mcp.protocol.headers import bearer_challenge


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({}, "Bearer"),
        ({"realm": "shop"}, 'Bearer realm="shop"'),
        ({"error": "invalid_token"}, 'Bearer error="invalid_token"'),
        ({"realm": "shop", "scope": "a b"}, 'Bearer realm="shop", scope="a b"'),
        ({"realm": 'a "shop" \\'}, 'Bearer realm="a \\"shop\\" \\\\"'),
        ({"realm": "a\r\nSet-Cookie: x=1"}, 'Bearer realm="a??Set-Cookie: x=1"'),
        ({"realm": "Käse"}, 'Bearer realm="K?se"'),
    ],
)
def test_a_challenge_says_what_it_is_told_to(parameters, expected):
    assert bearer_challenge(**parameters) == expected


@given(st.text())
def test_any_text_gives_one_header_and_one_parameter(text):
    challenge = bearer_challenge(realm=text)
    response = HttpResponse(headers={"WWW-Authenticate": challenge})
    assert response["WWW-Authenticate"] == challenge
    value = challenge.removeprefix('Bearer realm="').removesuffix('"')
    unescaped = value.replace("\\\\", "").replace('\\"', "")
    assert '"' not in unescaped
    assert "\\" not in unescaped
