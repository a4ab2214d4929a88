"""A template, rendered the same for everybody.

Hosts load pages of apps before a tool is called, keep them, and show them to whoever uses the
client. So nothing of a request may get into one, and a template that asks for it is an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NoReturn

from django.conf import settings
from django.template import TemplateDoesNotExist
from django.template.autoreload import reset_loaders
from django.template.loader import get_template

from ..errors import RegistrationError

OF_A_REQUEST: Final = ("csrf_token", "messages", "perms", "request", "session", "user")
"""What context processors put into the context of a page of the site."""


class PageError(Exception):
    """A page that cannot be made; the text says why, and what to do."""


def check_context(context: Mapping[str, Any], label: str) -> None:
    """Refuse what belongs to one request."""
    for name in OF_A_REQUEST:
        if name in context:
            raise RegistrationError(
                f"{label}: context= has {name!r}. The page is the same for everybody, and kept by "
                "hosts: return what belongs to a user from the tool."
            )


def render(template: str, context: Mapping[str, Any]) -> str:
    """Return the document that a template makes of what is the same for everybody.

    Raises :class:`PageError` where there is no such template, and where it asks for something of a
    request.
    """
    if settings.DEBUG:
        # Loaders keep what they have read; who edits a template sees it at the next reading.
        reset_loaders()
    wanted: set[str] = set()
    guarded = {name: _Absent(name, wanted) for name in OF_A_REQUEST}
    with _explained(template, wanted):
        html = get_template(template).render({**guarded, **context})
    _check_nothing_wanted(template, wanted)
    return html


class _Absent:
    """Stands for a variable that is not there, and notes that it was asked for.

    Not every place in a template lets an exception through, so it is noted as well.
    """

    def __init__(self, name: str, wanted: set[str]) -> None:
        self._name = name
        self._wanted = wanted

    def _refuse(self, *arguments: Any) -> NoReturn:
        self._wanted.add(self._name)
        raise _Wanted(self._name)

    # The language of templates calls what it finds; others ask for its truth, text or members.
    __call__ = __bool__ = __str__ = __iter__ = __getattr__ = _refuse


class _Wanted(Exception):
    """Something of a request was asked for."""


@contextmanager
def _explained(template: str, wanted: set[str]) -> Iterator[None]:
    try:
        yield
    except TemplateDoesNotExist as error:
        raise PageError(
            f"There is no template {str(error)!r}, which is asked for by the page of "
            f"{template!r}. Put it into the folder templates of an app, or correct the name."
        ) from error
    except PageError:
        raise
    except _Wanted:
        _check_nothing_wanted(template, wanted)
        raise
    except Exception as error:
        raise PageError(
            f"The template {template!r} cannot be rendered: {type(error).__name__}: {error}"
        ) from error


def _check_nothing_wanted(template: str, wanted: set[str]) -> None:
    if wanted:
        raise PageError(
            f"The template {template!r} uses {' and '.join(sorted(wanted))}. A page of an app is "
            "the same for everybody and kept by hosts, and has no request: return what belongs to "
            "a user from the tool, and show it by a script of the page."
        )
