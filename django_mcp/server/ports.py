"""What the server needs of the world above it: protocols that store and transport implement."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from uuid import UUID

from ..principal import Guard, Principal
from ..protocol.lifecycle import Sender, SessionInfo
from ..protocol.messages import Notification, RequestId, Response
from ..protocol.versions import Revision

if TYPE_CHECKING:
    from ..protocol.topics import Topic
    from .calling import Call, Outcome
    from .failures import Told
    from .questions.fields import Form

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


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


class Subscriptions(Protocol):
    """What sessions want to hear of; every method may touch the database."""

    def subscribe(self, session: SessionInfo, resource: Topic) -> None:
        """Tell the session from now on when a resource changes."""

    def unsubscribe(self, session: SessionInfo, resource: Topic) -> None:
        """Tell the session no more of a resource."""


class Inbox(Protocol):
    """What a client sends for requests in flight; every method may touch the database."""

    def answer(self, session: SessionInfo, response: Response) -> None:
        """Take the answer to a request to the client."""

    def cancel(self, session: SessionInfo, request_id: RequestId, reason: str) -> None:
        """Cancel a request from the client."""


class Peer(Protocol):
    """The client, as a call that runs for it can reach it. Safe to use from any thread."""

    @property
    def listens(self) -> bool:
        """Whether notifications reach the client, at the latest together with the answer."""

    @property
    def answers(self) -> bool:
        """Whether the client can be sent a request while the call runs, and answer it."""

    @property
    def stays(self) -> bool:
        """Whether the connection can be kept open for what happens later."""

    @property
    def stopped(self) -> bool:
        """Whether the call is to end: nobody waits for its result any more."""

    def stop(self) -> None:
        """Tell the call to end, because it takes too long."""

    def tell(self, method: str, params: dict[str, Any]) -> None:
        """Send a notification on the call's own stream; returns at once.

        Raises :class:`~django_mcp.server.calling.CallStopped` if the call is to end.
        """

    def ask(self, method: str, params: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Send a request on the call's own stream and wait for its ``result``.

        Raises :class:`AnswerTimedOut` after ``seconds``, and :class:`MCPError` with what the client
        answered if that was an error. Only for threads that may wait.
        """

    async def aask(self, method: str, params: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Do as :meth:`ask`, without a thread that waits."""

    async def listen(
        self, opening: Notification, wanted: Mapping[Topic, Notification], guard: Guard | None
    ) -> None:
        """Send ``opening``; from then on, until the stream is to end, send what belongs to a topic
        whenever that changes. Returns when that has begun. ``guard`` says who may go on with it.
        """

    def release(self) -> bool:
        """End the connection, not the call: the client comes back for the result.

        Return whether it can; where it cannot, nothing happens.
        """


class AnswerTimedOut(Exception):
    """The client has not answered a question in time."""


class StateRefused(Exception):
    """A sealed state that was not sealed here, was changed, or has expired; the text says which."""


class Bridge(Protocol):
    """What user code needs of the framework around it."""

    @property
    def debug(self) -> bool:
        """Whether clients may be told everything."""

    def told(self) -> Mapping[type[BaseException], Told]:
        """Return the exceptions that say something which a client may read."""

    def announce(self, error: BaseException, request: Any) -> None:
        """Tell the site of an exception that nobody had foreseen, as of one out of a view.

        ``request`` is what :attr:`Exchange.http_request` gives. Returns at once on an event loop.
        """

    def scope(self, *, atomic: bool) -> AbstractContextManager[None]:
        """Return the context in which one synchronous user function runs.

        Where a transaction is open, or the site asked for one, ``atomic`` puts the function in a
        savepoint, so that what a failing function wrote is rolled back.
        """

    def available(self) -> AbstractContextManager[None]:
        """Return the context of code that needs the database: :class:`Unavailable` if it fails."""

    def jsonable(self, value: Any) -> Any:
        """Return a JSON form of a framework object, or raise ``TypeError`` with the cure."""

    async def blocking(self, function: Callable[..., T], /, *args: Any) -> T:
        """Run code of an asynchronous function where it may touch the database."""

    def check_may_wait(self) -> None:
        """Refuse to wait for the client while a transaction is open.

        Raises :class:`~django_mcp.server.errors.QuestionMisplaced` with the cure.
        """

    def form(self, value: Any) -> Form | None:
        """Return what the framework calls a form as one to be asked; ``None`` for other values."""

    def keys(self, purpose: str) -> Sequence[bytes]:
        """Return secret keys that are for ``purpose`` alone, and the same in all processes.

        The first is to be used; what was made with any of them is honoured.
        """

    def seal(self, state: dict[str, Any]) -> str:
        """Return ``state`` as text that the client keeps, and cannot change unnoticed."""

    def unseal(self, text: str) -> dict[str, Any]:
        """Return a state that was sealed, not long ago; raises :class:`StateRefused`."""

    def redeem(self, state: UUID) -> bool:
        """Note that a state which counts once has been used; return whether it had not been.

        May touch the database.
        """


class Runner(Protocol):
    """The only place where synchronous and asynchronous code meet; one implementation per door."""

    async def blocking(self, function: Callable[..., T], /, *args: Any) -> T:
        """Run code of this package that may touch the database."""

    async def gathered(self, find: Callable[[Sequence[K]], Mapping[K, T]], key: K, /) -> T | None:
        """Return what ``find`` has for ``key``: perhaps asked together with others, never early."""

    async def ask(self, function: Callable[..., Any], /, *args: Any) -> Any:
        """Run a function of the site, of either colour, or one of ours that leads to such."""

    async def call(self, call: Call) -> Outcome:
        """Make a call to user code, synchronous or not."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The settings that shape answers, read once per request."""

    page_size: int = 100
    strict_arguments: bool = True
    list_ttl_ms: int = 0
    question_seconds: float = 300
    """How long a call waits for an answer of its client."""
    version: str = ""
    """The site's, for a server that has none of its own."""
    max_subscriptions: int = 1000
    """Most resources that one request may listen to."""
    public: bool = False
    """Whether the endpoint is open to everyone, so that nothing depends on who asks."""


@dataclass(frozen=True, slots=True)
class Ports:
    """Everything that a dispatch needs of the world, in one value."""

    sessions: Sessions
    inbox: Inbox
    subscriptions: Subscriptions
    bridge: Bridge
    policy: Policy = field(default_factory=Policy)
