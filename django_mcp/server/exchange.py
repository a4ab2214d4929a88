"""The request being answered: who sent it, and how the client can be reached while it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from django.http import HttpRequest

from ..auth import Guard, Principal, ProtectedResource
from ..conf import Settings
from ..protocol.headers import Headers
from ..protocol.lifecycle import Sender, SessionInfo
from ..protocol.messages import Notification, Request
from ..protocol.topics import Topic
from ..protocol.versions import Revision
from ..signals import CallInfo
from .progress import Progress

WantedTools = tuple[str, str | None, str | None, str | None]
"""What a client says of the tools that it wants: what comes after the endpoint's path, and the
headers ``X-MCP-Toolsets``, ``X-MCP-Tools`` and ``X-MCP-Readonly``; ``None`` where one was not sent.
"""

ALL_TOOLS: Final[WantedTools] = ("", None, None, None)


class HTTPRequest(Protocol):
    """The HTTP request that a message has come in."""

    wanted_tools: WantedTools
    """What the client says of the tools that it wants."""

    @property
    def headers(self) -> Headers:
        """All headers of the request."""

    def django(self) -> HttpRequest:
        """Return the request as Django's, which costs something at the mount."""


class Caller(Protocol):
    """Who sends a request to a server, as far as whoever answers it needs to know."""

    @property
    def server_name(self) -> str:
        """What the server is called."""

    @property
    def principal(self) -> Principal:
        """Who it is."""

    @property
    def is_public(self) -> bool:
        """Whether the endpoint is open to everyone, so that nothing depends on who asks."""

    @property
    def settings(self) -> Settings:
        """As they were when the request came in."""

    @property
    def request(self) -> HTTPRequest:
        """The HTTP request that it has come in."""

    @property
    def resource(self) -> ProtectedResource | None:
        """What tokens for the endpoint are issued for, where others issue some."""

    @property
    def checks_scopes(self) -> bool:
        """Whether it depends on scopes, or on reading alone, what somebody here may do."""

    def can_stream(self) -> bool:
        """Return whether the answer can be a stream; if so, there is room for it from now on."""

    def can_be_asked(self) -> bool:
        """Return whether the client can answer something while its request is answered."""


class Peer(Protocol):
    """The client, as a running call can reach it. Safe to use from any thread."""

    @property
    def can_notify(self) -> bool:
        """Whether notifications reach the client, at the latest together with the answer."""

    @property
    def can_request(self) -> bool:
        """Whether the client can be sent a request while the call runs, and answer it."""

    def stop(self) -> None:
        """Send nothing more, and let nobody wait for an answer: the call is to end."""

    def notify(self, method: str, params: dict[str, Any]) -> None:
        """Send a notification on the call's own stream; returns at once.

        Raises :class:`~django_mcp.server.errors.CallStopped` if the call is to end.
        """

    def request(self, method: str, params: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Send a request on the call's own stream and wait for its ``result``.

        Raises :class:`~django_mcp.server.errors.AnswerTimedOut` after ``seconds``, and
        :class:`MCPError` with what the client answered if that was an error. Only for threads that
        may wait.
        """

    async def arequest(self, method: str, params: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Do as :meth:`request`, without a thread that waits."""

    async def listen(self, opening: Notification, wanted: Mapping[Topic, Notification]) -> None:
        """Send ``opening``; from then on, until the stream is to end, send the notification of a
        topic whenever that changes. Returns when that has begun.
        """

    def release(self) -> bool:
        """End the connection, not the call: the client comes back for the result.

        Return whether it can; where it cannot, nothing happens.
        """


class Exchange:
    """A request, who sends it, in which revision, and what is needed to answer it.

    The peer and the progress, which only some calls need, are made when they are first used.
    """

    __slots__ = (
        "_peer",
        "caller",
        "guard",
        "http",
        "is_public",
        "make_peer",
        "observed",
        "principal",
        "raised",
        "reported_progress",
        "request",
        "revision",
        "sender",
        "server_name",
        "session",
        "settings",
        "stopped",
    )

    def __init__(
        self,
        request: Request,
        revision: Revision,
        sender: Sender,
        session: SessionInfo | None,
        caller: Caller,
    ) -> None:
        """Note what is known before the request's method is looked up."""
        self.request = request
        self.revision = revision
        self.sender = sender
        self.session = session
        self.server_name = caller.server_name
        self.principal = caller.principal
        self.settings = caller.settings
        """As they were when the request came in."""
        self.is_public = caller.is_public
        """Whether the endpoint is open to everyone, so that nothing depends on who asks."""
        self.http = caller.request
        """The HTTP request that it has come in."""
        self.caller = caller
        """Who sends the request."""
        self.guard: Guard | None = None
        """Says whether a user may go on with what is asked for, where not everybody may. Nobody
        loses what he never had: there is none until the caller has been found to be allowed it.
        """
        self.stopped = False
        """Whether the call is to end: nobody waits for its result any more."""
        self.observed: CallInfo | None = None
        """What whoever watches the call knows of it; ``None`` where nobody does, and until then."""
        self.raised = ""
        """The class of what was raised in it, with its module; empty where nothing was."""
        self.make_peer: Callable[[], Peer] | None = None
        """Makes :attr:`peer`, when it is first used."""
        self._peer: Peer | None = None
        self.reported_progress: Progress | None = None
        """The progress of the call; ``None`` until it has reported some."""

    @property
    def peer(self) -> Peer:
        """The client, as the call can reach it."""
        if self._peer is None:
            assert self.make_peer is not None
            self._peer = self.make_peer()
            if self.stopped:
                self._peer.stop()
        return self._peer

    @property
    def can_request(self) -> bool:
        """Whether its client can be sent a request while it is answered, and answer that."""
        return self.session is not None and self.caller.can_be_asked()

    @property
    def can_listen(self) -> bool:
        """Whether its connection can be kept open for notifications of later changes."""
        return self.caller.can_stream()

    @property
    def progress(self) -> Progress:
        """The progress of the call, to report more of it."""
        if self.reported_progress is None:
            self.reported_progress = Progress(
                self.request.meta.get("progressToken"), self.peer.notify
            )
        return self.reported_progress

    @property
    def label(self) -> str:
        """What the log calls it."""
        params = self.request.params
        name = params.get("name") or params.get("uri") or ""
        return f"{self.request.method} {str(name)[:100]!r}"

    def note_raised(self, error: BaseException) -> None:
        """Tell whoever watches the call what was raised in it."""
        kind = type(error)
        self.raised = f"{kind.__module__}.{kind.__qualname__}"
        if self.observed is not None:
            self.observed.error = self.raised

    def stop(self) -> None:
        """Let the call end. From any thread, and more than once."""
        self.stopped = True
        if self._peer is not None:
            self._peer.stop()

    def flush(self) -> None:
        """Send the progress that is still unsent. Called from time to time while the call runs."""
        if self.reported_progress is not None:
            self.reported_progress.flush_if_running()
