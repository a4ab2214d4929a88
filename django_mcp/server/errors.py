"""Exceptions that the site's functions raise or meet, and those that end a call of one."""

from __future__ import annotations

from typing import Any


class ToolError(Exception):
    """Raise it in a tool to tell the model what went wrong; its text reaches the model verbatim.

    Given the errors of a form or formset, it lists each with its field.
    """


class QuestionError(ToolError):
    """The client was asked something, and there is no answer to go on with.

    Leave it, and the model reads why; catch it, and go on without the answer.
    """


class QuestionDeclined(QuestionError):
    """The user has said no to a question."""


class QuestionCancelled(QuestionError):
    """The user has dismissed a question without an answer."""


class QuestionTimedOut(QuestionError):
    """No answer came in time. Legacy revisions only: later ones do not wait."""


class QuestionFailed(QuestionError):
    """The client answered with an error, or never with something that fits."""


class QuestionUnsupported(QuestionError):
    """The client cannot be asked this: it has not declared so, or cannot be reached.

    ``required`` are the capabilities that it would have to declare, ``question`` is what it was to
    be asked, in words.
    """

    def __init__(self, message: str, required: dict[str, Any], question: str = "") -> None:
        super().__init__(message)
        self.required = required
        self.question = question


class QuestionMisplaced(RuntimeError):
    """A question where none may be asked; the message has the cure."""


class ResourceNotFound(Exception):
    """Raise it in a resource function when the URI names nothing."""


class Unserializable(Exception):
    """What a function returned cannot be sent; the text says why, and repeats no value of it."""


class RegistrationError(TypeError):
    """A tool, resource, prompt or completion that cannot be offered; the message has the cure."""


class AnswerTimedOut(Exception):
    """The client has not answered a question in time."""


class ToolTimedOut(Exception):
    """A call took longer than it may; not to be confused with a time-out inside the function."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"The tool did not finish within {seconds:g} seconds.")


class UnexpectedExit(Exception):
    """A function has raised what would end its thread or task, though nobody stopped the call."""

    def __init__(self, raised: BaseException) -> None:
        super().__init__(f"the function raised {type(raised).__name__}")
        self.__cause__ = raised


class NoThreadFree(RuntimeError):
    """No worker thread was free in time for the database of an asynchronous function.

    It is a failure of the function like any other. A 503 would say that nothing has run.
    """


class CallStopped(BaseException):
    """A call must end: it was cancelled, or took too long, or its session has ended.

    It is raised when the call next reports progress, logs or asks. User code that catches every
    ``Exception`` does not swallow it, and what a savepoint covers is rolled back.
    """


class InputRequired(BaseException):
    """The call cannot go on before the client has answered.

    Control flow, like ``KeyboardInterrupt``: user code that catches every ``Exception`` does not
    swallow it, and it leaves through the savepoint, so that what the function wrote is rolled back
    before it runs again.
    """
