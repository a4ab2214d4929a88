from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_mcp.contrib.tokens import secret as secrets


def test_a_secret_is_recognisable_and_well_formed():
    secret = secrets.generate()
    assert secret.startswith("mcp_")
    assert len(secret) == 53
    assert secrets.PATTERN.fullmatch(secret)
    assert secrets.is_well_formed(secret)


def test_secrets_are_found_in_text_whole():
    secret = secrets.generate()
    found = secrets.PATTERN.findall(f'{{"Authorization": "Bearer {secret}"}}')
    assert found == [secret]


def test_no_secret_is_made_twice():
    assert len({secrets.generate() for _ in range(100)}) == 100


def test_the_body_has_room_for_256_bits():
    assert 62**secrets._BODY_LENGTH > 2**256
    assert 62**secrets._CHECKSUM_LENGTH > 2**32


@pytest.mark.parametrize("position", range(53))
def test_any_single_typo_is_noticed(position):
    secret = secrets.generate()
    other = "Z" if secret[position] != "Z" else "Y"
    assert not secrets.is_well_formed(secret[:position] + other + secret[position + 1 :])


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda secret: secret[:-1], id="truncated"),
        pytest.param(lambda secret: secret + "0", id="longer"),
        pytest.param(lambda secret: secret + "\n", id="line break"),
        pytest.param(lambda secret: secret.swapcase(), id="case"),
        pytest.param(lambda secret: secret[4:], id="without scheme"),
        pytest.param(lambda secret: f"{secret},Bearer {secret}", id="header sent twice"),
    ],
)
def test_what_is_not_a_secret_is_noticed(spoil):
    assert not secrets.is_well_formed(spoil(secrets.generate()))


@given(st.text())
def test_other_text_is_never_a_secret_and_never_an_error(text):
    assert not secrets.is_well_formed(text)


def test_the_digest_is_sha256_in_hex_and_says_nothing_of_the_secret():
    secret = secrets.generate()
    digest = secrets.digest_of(secret)
    assert re.fullmatch(r"[0-9a-f]{64}", digest)
    assert digest == secrets.digest_of(secret) != secrets.digest_of(secrets.generate())


def test_the_prefix_leaves_most_of_the_secret_unknown():
    secret = secrets.generate()
    assert secret.startswith(secrets.prefix_of(secret))
    assert len(secrets.prefix_of(secret)) == 12
