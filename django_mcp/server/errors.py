"""Exceptions that user code raises or meets."""

from __future__ import annotations

from typing import Any


class ToolError(Exception):
    """Raise it in a tool to tell the model what went wrong; its text reaches the model verbatim.

    Given the errors of a form or formset, it tells each with its field.
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

    ``required`` are the capabilities that it would have to declare, ``wanted`` is what it was to be
    asked, in words.
    """

    def __init__(self, message: str, required: dict[str, Any], wanted: str = "") -> None:
        super().__init__(message)
        self.required = required
        self.wanted = wanted


class QuestionMisplaced(RuntimeError):
    """A question where none may be asked; the message has the cure."""


class ResourceNotFound(Exception):
    """Raise it in a resource function when the URI names nothing."""


class Unserializable(Exception):
    """What a function returned cannot be sent; the text says why, and repeats no value of it."""


class RegistrationError(TypeError):
    """A tool, resource, prompt or completion that cannot be offered; the message has the cure."""
