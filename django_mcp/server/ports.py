"""What the server needs of whoever runs it: two protocols, each with several implementations."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ..principal import Guard
from ..protocol.messages import Notification
from ..protocol.topics import Topic

if TYPE_CHECKING:
    from .calling import Call, Outcome

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


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
