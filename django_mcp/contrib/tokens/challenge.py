"""The one place that writes a ``WWW-Authenticate`` challenge (RFC 9110, 11.6.1; RFC 6750)."""

from __future__ import annotations

import re

# RFC 9110 section 5.6.4 would allow more in a quoted string, but RFC 6750 section 3 allows its
# own parameters printable ASCII only, and so can no line break split the header.
_UNPRINTABLE = re.compile(r"[^\x20-\x7e]")
_ESCAPED = re.compile(r'(["\\])')


def bearer_challenge(**parameters: str) -> str:
    """Return a ``Bearer`` challenge with these parameters, in this order, quoted and escaped.

    >>> bearer_challenge(error="invalid_token")
    'Bearer error="invalid_token"'
    """
    quoted = [f"{name}={_quote(value)}" for name, value in parameters.items()]
    return " ".join(["Bearer", ", ".join(quoted)]).rstrip()


def _quote(value: str) -> str:
    printable = _UNPRINTABLE.sub("?", value)
    return '"' + _ESCAPED.sub(r"\\\1", printable) + '"'
