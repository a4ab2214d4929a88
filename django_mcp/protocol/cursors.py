"""Opaque cursors: a place in an ordered list, named by what came last rather than counted.

A cursor that names the last item stays right when items are added or removed before it
(2026-07-28, server/utilities/pagination, "Implementation Guidelines": stable cursors).
"""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass

from .errors import MCPError, invalid_params


@dataclass(frozen=True, slots=True)
class Cursor:
    """The page after ``last``, or the first one, of the source named ``source``."""

    source: str
    last: str | None = None

    def encode(self) -> str:
        """Return the text that goes to the client."""
        text = json.dumps([self.source, self.last], separators=(",", ":"))
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode(text: str) -> Cursor:
    """Read a cursor that a client sent back; anything else is refused with -32602."""
    try:
        padded = text + "=" * (-len(text) % 4)
        source, last = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (ValueError, TypeError, binascii.Error, RecursionError):
        raise _invalid() from None
    if not isinstance(source, str) or not isinstance(last, str | None):
        raise _invalid()
    return Cursor(source, last)


def _invalid() -> MCPError:
    return invalid_params("Invalid cursor; start again without one")
