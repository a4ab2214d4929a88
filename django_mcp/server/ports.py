"""What the server needs of the world above it: protocols that store and transport implement."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ..protocol.lifecycle import Sender
from ..protocol.versions import Revision

if TYPE_CHECKING:
    from .calling import Call, Outcome

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Principal:
    """Who is calling: a user of the site, and the client that acts for them.

    Sessions are bound to this pair, never to the bytes of a token, so that a refreshed token keeps
    its session. ``user`` is a Django user or ``AnonymousUser``.
    """

    user: Any
    client_id: str = ""
    scopes: frozenset[str] = frozenset()

    @property
    def user_id(self) -> str:
        """The user's primary key as text; empty for anonymous users."""
        key = getattr(self.user, "pk", None)
        return "" if key is None else str(key)


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """A legacy session as user code sees it. The secret ``Mcp-Session-Id`` is not part of it."""

    id: str
    revision: Revision
    sender: Sender
    initialized: bool
    log_level: str
    """The least severe level that the client wants, from ``logging/setLevel``."""


class Sessions(Protocol):
    """Sessions of one server; every method may touch the database."""

    def open(
        self, principal: Principal, revision: Revision, sender: Sender
    ) -> tuple[SessionInfo, str]:
        """Open a session; return it with its secret id, which is nowhere else to be had."""

    def mark_initialized(self, session: SessionInfo) -> None:
        """Note that the client has sent ``notifications/initialized``."""

    def set_log_level(self, session: SessionInfo, level: str) -> None:
        """Note the log level that the client asked for."""


class Bridge(Protocol):
    """What user code needs of the framework around it."""

    not_found: tuple[type[Exception], ...]
    """Exceptions by which user code says that something does not exist."""

    def scope(self, *, atomic: bool) -> AbstractContextManager[None]:
        """Return the context in which one synchronous user function runs.

        Where a transaction is open, or the site asked for one, ``atomic`` puts the function in a
        savepoint, so that what a failing function wrote is rolled back.
        """

    def available(self) -> AbstractContextManager[None]:
        """Return the context of code that needs the database: :class:`Unavailable` if it fails."""

    def jsonable(self, value: Any) -> Any:
        """Return a JSON form of a framework object, or raise ``TypeError`` with the cure."""


class Runner(Protocol):
    """The only place where synchronous and asynchronous code meet; one implementation per door."""

    async def blocking(self, function: Callable[..., T], /, *args: Any) -> T:
        """Run code that may touch the database."""

    async def ask(self, function: Callable[..., Any], /, *args: Any) -> Any:
        """Run a function of the site's that may be of either colour."""

    async def call(self, call: Call) -> Outcome:
        """Make a call to user code, synchronous or not."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The settings that shape answers, read once per request."""

    page_size: int = 100
    strict_arguments: bool = True
    list_ttl_ms: int = 0
    public: bool = False
    """Whether the endpoint is open to everyone, so that nothing depends on who asks."""


@dataclass(frozen=True, slots=True)
class Ports:
    """Everything that a dispatch needs of the world, in one value."""

    sessions: Sessions
    bridge: Bridge
    policy: Policy = field(default_factory=Policy)
