"""What the secret of a token looks like: ``mcp_``, 256 random bits, a checksum; all of it base62.

The fixed start and the checksum let secret scanners tell a leaked token from other text without
asking anybody, and let us refuse a mistyped or truncated one without a query. There is nothing
in it that a double click would not select.

A secret has full entropy, so that one round of SHA-256 without salt is enough to store it: there
is no dictionary to try, and the digest can be looked up by an index. That lookup also settles
timing: what an index comparison could leak is the digest of a guess, which helps nobody.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import string
import zlib

from ...partitions import here

SCHEME = "mcp_"
PATTERN = re.compile(r"mcp_[0-9A-Za-z]{49}")  # what to give to a secret scanner
PREFIX_LENGTH = 12  # of 49 characters, 8 are shown: 208 bits stay unknown

_ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
_BITS = 256
_BODY_LENGTH = 43  # 62 ** 43 > 2 ** 256
_CHECKSUM_LENGTH = 6  # 62 ** 6 > 2 ** 32


def generate() -> str:
    """Return a new secret."""
    unsealed = SCHEME + _base62(secrets.randbits(_BITS), length=_BODY_LENGTH)
    return unsealed + _checksum(unsealed)


def is_well_formed(secret: str) -> bool:
    """Tell whether the text could be a secret: right shape, right checksum."""
    if PATTERN.fullmatch(secret) is None:
        return False
    return _checksum(secret[:-_CHECKSUM_LENGTH]) == secret[-_CHECKSUM_LENGTH:]


def digest_of(secret: str) -> str:
    """Return what is stored of a secret: in each partition something else.

    So a token opens the one in which it was issued, also where all share the table.
    """
    if partition := here():
        secret = f"{partition}\0{secret}"
    return hashlib.sha256(secret.encode()).hexdigest()


def prefix_of(secret: str) -> str:
    """Return the part that people may see, to recognise the token by."""
    return secret[:PREFIX_LENGTH]


def _checksum(text: str) -> str:
    return _base62(zlib.crc32(text.encode()), length=_CHECKSUM_LENGTH)


def _base62(number: int, *, length: int) -> str:
    digits = []
    for _ in range(length):
        number, digit = divmod(number, len(_ALPHABET))
        digits.append(_ALPHABET[digit])
    return "".join(reversed(digits))
