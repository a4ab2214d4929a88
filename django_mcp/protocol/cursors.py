"""Opaque cursors: a place in an ordered list, named by what came last rather than counted.

A cursor that names the last item stays right when items are added or removed before it, or that
item itself is (2026-07-28, server/utilities/pagination, "Implementation Guidelines": stable
cursors). What came last may be hidden from who gets the cursor. So the name goes out masked: by a
stream of bytes that begins with its own keyed digest (the construction of RFC 5297, without AES),
so that the same place has the same cursor in every process, and no other text is one.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from .errors import MCPError, invalid_params

DIGEST_BYTES: Final = 16
STEP_BYTES: Final = 64
"""Names are made longer by steps of so much, for their length tells something, too."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """The page after ``last``, or the first one, of the source named ``source``."""

    source: str
    last: str | None = None

    def seal(self, key: bytes) -> str:
        """Return the text that goes to the client."""
        name = json.dumps([self.source, self.last], separators=(",", ":")).encode()
        name = name.ljust(-len(name) // STEP_BYTES * -STEP_BYTES)  # JSON overlooks the spaces
        digest = _digest(name, key)
        sealed = digest + _masked(name, key, digest)
        return base64.urlsafe_b64encode(sealed).decode().rstrip("=")


def unseal(text: str, keys: Sequence[bytes]) -> Cursor:
    """Read a cursor that a client sent back; anything else is refused with -32602."""
    try:
        padded = text + "=" * (-len(text) % 4)
        sealed = base64.b64decode(padded, altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        raise invalid_cursor() from None
    digest, masked = sealed[:DIGEST_BYTES], sealed[DIGEST_BYTES:]
    for key in keys:
        name = _masked(masked, key, digest)
        if hmac.compare_digest(_digest(name, key), digest):
            return Cursor(*json.loads(name))
    raise invalid_cursor()


def invalid_cursor() -> MCPError:
    """Return the refusal of what is no cursor, or none any more."""
    return invalid_params("Invalid cursor; start again without one")


def _digest(name: bytes, key: bytes) -> bytes:
    return hmac.digest(key, b"name" + name, "sha256")[:DIGEST_BYTES]


def _masked(name: bytes, key: bytes, digest: bytes) -> bytes:
    size = len(name)
    mask = hashlib.shake_256(hmac.digest(key, b"mask" + digest, "sha256")).digest(size)
    return (int.from_bytes(name) ^ int.from_bytes(mask)).to_bytes(size)
