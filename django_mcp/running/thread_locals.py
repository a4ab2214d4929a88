"""What belongs to a request's context, from the event loop into a worker thread and back.

Context variables come along by themselves. Django's own locals (the language, the time zone, the
script prefix) are context variables, too, but asgiref marks what is in them with the thread that
they belong to, so that nothing but a move on purpose, such as this one, takes them elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context
from threading import get_ident
from typing import Any, Final, TypeVar

import asgiref.local

T = TypeVar("T")

_MISSING: Final = object()
_marked: Final[Any] = getattr(asgiref.local, "_Storage", None)
"""What asgiref keeps in the variables; before it marked them, they needed nothing."""


def adopt_locals(context: Context, function: Callable[..., T], /, *args: Any) -> T:
    """Call ``function`` within ``context``, which has come to the present thread."""
    if _marked is not None:
        for variable, value in context.items():
            if type(value) is _marked:
                variable.set(_marked(get_ident(), value.data))
    return function(*args)


def restore_context(context: Context) -> None:
    """Set here what was set in ``context``, in another thread that has come to its end."""
    for variable, value in context.items():
        if variable.get(_MISSING) is not value:
            is_marked = _marked is not None and type(value) is _marked
            variable.set(_marked(get_ident(), value.data) if is_marked else value)
