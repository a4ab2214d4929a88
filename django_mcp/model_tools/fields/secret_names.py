"""Fields that look as if they held a secret, by their names and types."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from itertools import pairwise
from typing import Any, Final

from ...server.errors import RegistrationError

WORDS: Final = frozenset(
    {
        "credential",
        "credentials",
        "cvc",
        "cvv",
        "hash",
        "hashed",
        "otp",
        "passphrase",
        "passwd",
        "password",
        "pin",
        "pwd",
        "salt",
        "secret",
        "secrets",
        "ssn",
        "token",
        "tokens",
        "totp",
    }
)
"""Parts of names that say so by themselves."""
PAIRS: Final = frozenset({"api_key", "access_key", "private_key", "session_key", "signing_key"})
"""Parts of names that do so together."""
TYPES: Final = re.compile(r"encrypt|fernet|secret|password|hash(ed)?field", re.IGNORECASE)
"""What the names of the classes of such fields have."""


def looks_secret(name: str, field: Any = None) -> bool:
    """Return whether a field's name, or its class, says that it holds a secret."""
    parts = [part.lower() for part in _PARTS.findall(name)]
    pairs = {f"{one}_{two}" for one, two in pairwise(parts)}
    if not WORDS.isdisjoint(parts) or not PAIRS.isdisjoint(pairs):
        return True
    if field is None:
        return False
    related = getattr(field, "related_model", None)
    # The text of a token, which a foreign key shows, may well be the token.
    return any(TYPES.search(kind.__name__) for kind in type(field).__mro__) or (
        isinstance(related, type) and looks_secret(related.__name__)
    )


def check_secrets(
    label: str, path: str, names: Iterable[tuple[str, Any]], allowed: Collection[str]
) -> None:
    """Refuse a ``path`` of fields of which one looks secret, and none is ``allowed``.

    ``names`` are the names on the path, each with its field, if it is one. Raises
    :class:`RegistrationError`.
    """
    if path in allowed:
        return
    for name, field in names:
        if looks_secret(name, field):
            raise RegistrationError(
                f"{label}: {path!r} looks as if it held a secret, and whatever is in fields is "
                f'read by a model. Leave it out; or, if it is none, say allow_secret = ["{path}"].'
            )


_PARTS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
