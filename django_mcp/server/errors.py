"""Exceptions that user code raises or meets."""

from __future__ import annotations


class ToolError(Exception):
    """Raise it in a tool to tell the model what went wrong; its text reaches the model verbatim.

    Every other exception is a bug: it is logged with its traceback and answered by a fixed
    sentence, so that nothing internal leaks.
    """


class ResourceNotFound(Exception):
    """Raise it in a resource function when the URI names nothing."""


class RegistrationError(TypeError):
    """A tool, resource, prompt or completion that cannot be offered; the message has the cure."""
