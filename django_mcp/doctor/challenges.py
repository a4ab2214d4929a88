"""Reads ``WWW-Authenticate``, which may hold several challenges (RFC 9110, section 11.6.1)."""

from __future__ import annotations

import re
from typing import Final

_PART: Final = re.compile(
    r"""[\s,]*(?:
        (?P<name>[\w.~+*^!-]+)\s*=\s*(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<plain>[^\s,"]*))
        |(?P<scheme>[\w.~+*^!-]+)
    )""",
    re.VERBOSE,
)
_ESCAPED: Final = re.compile(r"\\(.)")
CHALLENGE_CHARACTERS: Final = 8_000


def challenges(value: str) -> list[tuple[str, dict[str, str]]]:
    """Return each scheme, in lower case, with its parameters.

    What cannot be read ends the list.

    >>> challenges('Basic realm="a", Bearer scope="b c", error=no')
    [('basic', {'realm': 'a'}), ('bearer', {'scope': 'b c', 'error': 'no'})]
    """
    found: list[tuple[str, dict[str, str]]] = []
    value, position = value[:CHALLENGE_CHARACTERS], 0
    while part := _PART.match(value, position):
        position = part.end()
        if part["scheme"]:
            found.append((part["scheme"].lower(), {}))
        elif found:
            quoted = part["quoted"]
            plain = part["plain"] if quoted is None else _ESCAPED.sub(r"\1", quoted)
            found[-1][1][part["name"].lower()] = plain
    return found
