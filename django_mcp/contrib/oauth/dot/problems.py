"""What people read where a login stops, in place of the page that asks them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from django.utils.translation import gettext_lazy as _
from oauthlib.oauth2.rfc6749 import errors

_STOPPED: Final = _("This login cannot go on")
_UNKNOWN: Final = _("This site does not know the application, or no longer.")
_ELSEWHERE: Final = _(
    "The application wants the answer sent to an address that this site does not know as its own."
)
_OTHERWISE: Final = _("The application has asked for something that this site cannot answer.")
_TEXTS: Final = {
    errors.InvalidClientIdError: _UNKNOWN,
    errors.MissingClientIdError: _UNKNOWN,
    errors.InvalidRedirectURIError: _ELSEWHERE,
    errors.MismatchingRedirectURIError: _ELSEWHERE,
    errors.MissingRedirectURIError: _ELSEWHERE,
}


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a login stops; texts are in the language of whoever reads them."""

    title: Any
    text: Any
    detail: str = ""
    """For whoever runs the site."""
    can_be_repeated: bool = False
    """Whether the same page may work the next time."""


FORGED: Final = Problem(
    _("Please look at it once more"),
    _(
        "Your answer was not taken: you have logged in again since the page was shown, or your "
        "browser keeps no cookies of this site."
    ),
    can_be_repeated=True,
)
"""An answer that has not come from the page that was shown."""
AWAY: Final = Problem(
    _("Try again in a moment"),
    _("This site cannot reach its database at the moment. The application was told nothing."),
    can_be_repeated=True,
)
FORBIDDEN_PLACE: Final = Problem(_STOPPED, _ELSEWHERE)


def problem_of(error: errors.OAuth2Error) -> Problem:
    """Return what people read of an error that the client is not told."""
    text = _TEXTS.get(type(error), _OTHERWISE)
    return Problem(_STOPPED, text, error.description or error.error or "")


def problem_named(error: str, description: str) -> Problem:
    """Return what people read of an error by its code."""
    if error == "temporarily_unavailable":
        return AWAY
    return Problem(_STOPPED, _UNKNOWN if error == "invalid_client" else _OTHERWISE, description)
