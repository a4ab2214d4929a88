"""``token_auth``: the value of ``AUTH`` that admits whoever presents a token.

A refusal never says why: unknown, expired, revoked, another server's, an inactive user's are one
answer, so that nobody learns which guesses were near. The log says it instead.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Final

from django.apps import apps
from django.db import DatabaseError, router, transaction
from django.http import HttpRequest
from django.utils.functional import lazy
from django.views.decorators.debug import sensitive_variables

from django_mcp.auth import Principal, Refusal, without_oauth
from django_mcp.protocol.headers import bearer_token

if not apps.is_installed("django_mcp.contrib.tokens"):
    # Importing the models would fail with a remark on app labels. The system check that tries
    # this import passes the cure on.
    raise ImportError('Add "django_mcp.contrib.tokens" to INSTALLED_APPS.')

from .models import State, Token
from .own_tokens_page import where_to_get
from .secret import is_well_formed

logger = logging.getLogger(__name__)

_CLIENT: Final = "token:"
_MISSING: Final = 'A bearer token is required: send "Authorization: Bearer TOKEN".'
_INVALID: Final = "The bearer token is unknown, has ended, or is not meant for this server."
# Told to few, so found out when it is.
_ADVICE: Final = lazy(where_to_get, str)("a token")


@without_oauth
@sensitive_variables("secret")
def token_auth(request: HttpRequest) -> Principal | Refusal:
    """Return the principal whose token the ``Authorization`` header carries, or the refusal.

    The client id names the token's row, not its secret: sessions are bound to it, outlive a
    rotation of the secret, and are not shared with the other tokens of the same user, each of
    which is another client. Row ids are not reused.
    """
    server = getattr(request, "mcp_server", "")
    secret = bearer_token(request.headers)
    if not secret:
        return Refusal(f"{_MISSING} {_sentence(where_to_get('one'))}")
    token = Token.objects.presented(secret)
    objection = _objection(token, server=server)
    if token is None or objection:
        logger.info("Refused %s at server %r: %s.", token or "a bearer token", server, objection)
        message = f"{_INVALID} {_sentence(where_to_get('another'))}"
        return Refusal(message, recognised=is_well_formed(secret))
    if token.use_due:
        _record_use(token)
    return Principal(
        user=token.user,
        client_id=f"{_CLIENT}{token.pk}",
        scopes=token.granted_scopes,
        recheck=_ended,
        read_only=token.read_only,
        advice=_ADVICE,
    )


def _sentence(phrase: str) -> str:
    return f"{phrase[0].upper()}{phrase[1:]}."


def _ended(principals: Sequence[Principal]) -> Iterable[Principal]:
    """Return those whose tokens have been revoked, have expired, or are gone."""
    by_token = [(int(each.client_id.removeprefix(_CLIENT)), each) for each in principals]
    tokens = Token.objects.using(router.db_for_write(Token)).filter(pk__in=dict(by_token))
    active = set(tokens.in_state(State.ACTIVE).values_list("pk", flat=True))
    return [each for key, each in by_token if key not in active]


def _objection(token: Token | None, *, server: str) -> str:
    """Return what speaks against the token, for the log, or nothing."""
    if token is None:
        return "it is unknown"
    if token.state != State.ACTIVE:
        return f"it is {token.state}"
    # As Django's ModelBackend has it: a user model without the flag is active.
    if not getattr(token.user, "is_active", True):
        return "its user is inactive"
    return "" if token.opens(server) else "it is for other servers"


def _record_use(token: Token) -> None:
    """Record the use if that can be done; a locked or read-only database refuses nobody."""
    try:
        with transaction.atomic(using=router.db_for_write(Token)):
            token.record_use()
    except DatabaseError:
        logger.warning("The use of %s could not be recorded.", token, exc_info=True)
