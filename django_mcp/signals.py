"""Signals of this package, and what the receivers of Django's signals have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.db.models import Model
from django.dispatch import Signal

call_started = Signal()
"""Sent before a request of a client is dispatched: ``sender`` is the server, ``call`` a
:class:`CallInfo`."""
call_finished = Signal()
"""Sent when a request has its answer, or has come to an end without one."""


@dataclass(slots=True, eq=False, kw_only=True)
class CallInfo:
    """A request of a client: who sends it, and how it has ended, once it has."""

    server: str
    """The name of the server."""
    method: str
    """The method of the protocol, such as ``tools/call``; 100 characters at most."""
    name: str
    """The name or URI of what it asks for; empty where it says none. 200 characters at most."""
    user: Any
    """Who calls, as ``AUTH`` said: a user or ``AnonymousUser``."""
    user_id: str
    """The user's primary key as text; empty for anonymous users."""
    client_id: str
    """The client that acts for the user; empty where ``AUTH`` knows none."""
    session_id: str | None
    """The public id of the session, which the admin shows too; never the ``Mcp-Session-Id``."""
    era: str
    """``legacy`` or ``modern``."""
    revision: str
    """The revision of the protocol, such as ``2026-07-28``."""
    request_id: int | str
    """The request's ``id``, as its client has chosen it."""
    duration: float = 0.0
    """Seconds from its beginning until the answer was there."""
    outcome: str = ""
    """``ok``, ``tool_error`` (the model reads what went wrong), ``input_required`` (the client is
    asked first), ``error`` (of the protocol) or ``cancelled``; empty while it runs."""
    error: str = ""
    """The class of the exception that the function raised, or what precedes it, such as a
    permission, with its module; else empty."""
    error_code: int | None = None
    """The code of the error that it is answered with, if it is."""
    answer_bytes: int = 0
    """Bytes of the JSON-RPC message that answers it; 0 where nobody was left to answer."""


def senders(model: type[Model]) -> list[type[Model]]:
    """Return the model and what inherits from it: signals name the class that was saved."""
    concrete = model._meta.concrete_model or model
    related = [each for each in apps.get_models() if issubclass(each, concrete)]
    return list(dict.fromkeys((model, *related)))
