"""What a call of the client can end in, beside a result.

Whoever decides whether to try again needs to know one thing: whether the request may have run.
:class:`NotProcessed` says that it has not, :class:`OutcomeUnknown` and :class:`CallTimedOut` that
nobody can tell.
"""

from __future__ import annotations

from typing import Any


class ClientError(Exception):
    """Base of all errors of the client. They can be pickled, as task queues do."""

    def __str__(self) -> str:
        return str(self.args[0])


class RemoteError(ClientError):
    """The server answered with a JSON-RPC error: ``code``, ``message`` and ``data`` are its own."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(code, message, data)
        self.code = code
        self.message = message
        self.data = data

    def __str__(self) -> str:
        return f"{self.message} ({self.code})"


class CallTimedOut(ClientError, TimeoutError):
    """The time for the call has passed; it was cancelled, and may have run all the same.

    ``method`` is that of JSON-RPC, and ``seconds`` how long the client has waited.
    """

    def __init__(self, method: str, seconds: float) -> None:
        super().__init__(method, seconds)
        self.method = method
        self.seconds = seconds

    def __str__(self) -> str:
        return f"No answer to {self.method} within {self.seconds:g} seconds"


class OutcomeUnknown(ClientError):
    """The request was sent, and its answer is lost: it may have run, in part or wholly.

    The client repeats by itself only what is safe to repeat. Look at the server's state before you
    repeat anything else.
    """


class NotProcessed(ClientError):
    """The server did not take the request up, so that repeating it is safe.

    ``retry_after`` is in seconds, ``None`` where the server did not say.
    """

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ConnectionFailed(NotProcessed):
    """The server could not be reached."""


class ServerBusy(NotProcessed):
    """The server said 429 or 503, and when to come back."""


class SessionLost(NotProcessed):
    """The server forgot the session, and a new one could not be opened, or was refused as well."""


class ClientClosed(ClientError):
    """The client is not open, or was closed while the call ran; in that case it may have run."""


class AuthenticationFailed(ClientError):
    """The server refused the credentials, or their lack: ``status`` is 401 or 403.

    ``scope`` has the scopes that the server asks for, separated by spaces, or is ``None`` if it
    names none (RFC 6750, section 3). What was refused has not run.
    """

    def __init__(self, message: str, status: int, scope: str | None = None) -> None:
        super().__init__(message, status, scope)
        self.status = status
        self.scope = scope


class UnexpectedAnswer(ClientError):
    """What came is not MCP: a proxy's page, a wrong content type, a result of the wrong shape.

    ``status`` is that of HTTP.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message, status)
        self.status = status


class MessageTooLarge(UnexpectedAnswer):
    """A message, or a list, is larger than the client's ``Limits`` allow."""


class UnsupportedServer(ClientError):
    """Server and client have no revision in common, or the server lacks what was asked for."""


class TooManyQuestions(ClientError):
    """The server asked more often than ``Limits.rounds``, or more than ``Limits.questions``."""


class SessionGone(Exception):
    """HTTP 404 for a request with a session's id: it was refused, and nothing of it has run.

    It does not leave the package: a caller gets :class:`SessionLost`, if no other session helps.
    """
