"""What the client keeps for the server, and cannot change unnoticed; and keys for the like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django.conf import settings
from django.core import signing
from django.utils.crypto import salted_hmac

from ..conf import get_settings

_SALT: Final = "django_mcp.requestState.1"
"""To be counted up with the form of the state, so that no other form is taken for it."""


class StateRefused(Exception):
    """A sealed state that was not sealed here, was changed, or has expired; the text says which."""


def keys(purpose: str) -> Sequence[bytes]:
    """Return secret keys that are for ``purpose`` alone, and the same in all processes.

    The first is to be used; what was made with any of them is honoured. They are derived from
    ``SECRET_KEY``, and from ``SECRET_KEY_FALLBACKS``.
    """
    secrets = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    return [
        salted_hmac("django_mcp.keys", purpose, each, algorithm="sha256").digest()
        for each in secrets
    ]


def seal(state: dict[str, Any]) -> str:
    """Return ``state`` as text that is signed with ``SECRET_KEY``, and says when."""
    return signing.dumps(state, salt=_SALT, compress=True)


def unseal(text: str) -> dict[str, Any]:
    """Return a state that was sealed, not long ago; raises :class:`StateRefused`.

    ``SECRET_KEY_FALLBACKS`` are honoured.
    """
    max_age = get_settings().state_max_age_seconds
    try:
        state: dict[str, Any] = signing.loads(text, salt=_SALT, max_age=max_age)
    except signing.BadSignature as error:
        raise StateRefused(str(error)) from error
    return state
