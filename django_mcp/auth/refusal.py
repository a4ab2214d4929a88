"""The answer to whoever may not use an endpoint."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Refusal:
    """The answer to a request that may not pass.

    ``status`` is 401 where credentials are missing or wrong, 403 where they do not suffice.
    ``message`` reaches the person in front of most clients, so it says what to do. ``challenge``
    becomes the ``WWW-Authenticate`` header; empty, it asks for a bearer token, and says whether one
    was shown that does not hold.
    """

    message: str = (
        'Authentication required: send credentials, such as "Authorization: Bearer TOKEN". '
        "Whoever runs this site issues them."
    )
    status: int = 401
    challenge: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    """More headers for the response."""
    more_challenges: tuple[str, ...] = ()
    """More challenges of the same kind, for other ways to come in."""
    recognised: bool = field(default=False, compare=False)
    """Whether the credential is of the kind that is looked for, and does not hold: then
    :func:`any_of` asks nobody else about it. Clients are not told."""
