"""Who is calling."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils.functional import Promise

from ..current_partition import current_partition

Guard = Callable[[Any], bool]
"""Says whether a user may go on with what was begun. May touch the database."""


@dataclass(frozen=True, slots=True)
class Principal:
    """Who is calling: a user of the site, and the client that acts for them.

    Sessions are bound to this pair, never to the bytes of a token, so that a refreshed token keeps
    its session. ``user`` is a Django user or ``AnonymousUser``.
    """

    user: Any
    client_id: str = ""
    scopes: frozenset[str] | None = frozenset()
    """What the credentials are good for; ``None`` where no scopes limit them, as with the user's
    own login."""
    recheck: Callable[[Sequence[Principal]], Iterable[Principal]] | None = field(
        default=None, compare=False, repr=False
    )
    """Returns those of the given callers who may stay no longer. It is asked about twice a second
    while they have requests or streams open, for all of them together, in a thread of its own.
    Users that are deactivated or deleted are found without it.
    """
    limited_as: str = field(default="", compare=False)
    """Whom limits take the caller for, where that is not the user with the client."""
    read_only: bool = False
    """Whether the credentials are good for nothing but reading, whatever their scopes."""
    credential: Any = field(default=None, compare=False, repr=False)
    """What ``recheck`` needs to know of how the caller came in; kept while something is open."""
    advice: str | Promise = field(default="", compare=False, repr=False)
    """What people do for other credentials, where it does not help that their client logs in again:
    the beginning of a sentence such as "ask the shop for a token", which goes on with what that
    must be good for. It is told to callers whose credentials do not suffice."""
    on_insufficient_scope: Callable[[Principal], None] | None = field(
        default=None, compare=False, repr=False
    )
    """Called with the principal before a request is refused for want of scopes, where it may wait
    for a database. It must not raise."""
    comes_back: bool = field(default=False, compare=False, repr=False)
    """Whether the caller is to show credentials anew from time to time, since nobody tells when
    these end. Else ``subscriptions/listen`` would go on for ever with a token that has expired."""

    @property
    def user_id(self) -> str:
        """The user's primary key as text; empty for anonymous users."""
        key = getattr(self.user, "pk", None)
        return "" if key is None else str(key)

    @property
    def is_anonymous(self) -> bool:
        """Whether nothing is known of the caller: neither a user nor a client."""
        return not (self.user_id or self.client_id)

    @property
    def limit_key(self) -> str:
        """Whom limits take the caller for; empty for callers of whom nothing is known.

        In each partition it is somebody else.
        """
        partition = current_partition()
        if self.limited_as:
            return f"{partition}\n{self.limited_as}" if partition else self.limited_as
        key = getattr(self.user, "pk", None)
        if not self.client_id and (key is None or key == ""):
            return ""
        known = f"{'' if key is None else key}\n{self.client_id}"
        return f"{partition}\n{known}" if partition else known
