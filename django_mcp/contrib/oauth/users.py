"""From the claims of a token to a user of the site."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.contrib.auth.hashers import make_password
from django.db import IntegrityError

from ...protocol.values import can_be_stored

logger = logging.getLogger("django_mcp.contrib.oauth")

MAX_CLAIM_CHARACTERS: Final = 254


class UserFromClaim:
    """Finds the user that a token is about: a value for ``DJANGO_MCP["OAUTH_USER"]``.

    ``claim`` is what names the user, ``field`` the field of the user model that has the same, by
    default the one that people log in with. With ``create=True`` a user who is not there is made,
    without a password. Choose a claim that nobody can change at the issuer, and that is no other
    person's later, such as ``sub``: whoever has its value is that user. An ``email`` counts only
    where the issuer says that it was verified.

    ``issuer`` is the only issuer whose claims count, where there are several.
    """

    def __init__(
        self, claim: str = "sub", *, field: str = "", create: bool = False, issuer: str = ""
    ) -> None:
        self.claim = claim
        self.field = field
        self.create = create
        self.issuer = issuer

    def __call__(self, claims: Mapping[str, Any]) -> Any:
        """Return the user, or ``None`` where there is none."""
        value = claims.get(self.claim)
        if (
            not isinstance(value, str)
            or not 0 < len(value) <= MAX_CLAIM_CHARACTERS
            or not can_be_stored(value)
        ):
            return None
        if self.issuer and claims.get("iss") != self.issuer:
            return None
        if self.claim == "email" and claims.get("email_verified") is not True:
            return None
        model: Any = get_user_model()
        field = self.field or model.USERNAME_FIELD
        found = [
            # Some databases take letters for others, which issuers tell apart.
            each
            for each in model._default_manager.filter(**{field: value})[:10]
            if model._meta.get_field(field).value_to_string(each) == value
        ]
        if found:
            return found[0] if len(found) == 1 else None
        return self._created(model, field, value) if self.create else None

    def _created(self, model: Any, field: str, value: str) -> Any:
        defaults = {model.USERNAME_FIELD: value, "password": make_password(None)}
        defaults.pop(field, None)
        try:
            user, is_new = model._default_manager.get_or_create(**{field: value}, defaults=defaults)
        except IntegrityError:
            logger.warning("No user can be made for a token: another one has the name already.")
            return None
        is_same = model._meta.get_field(field).value_to_string(user) == value
        return user if is_new or is_same else None
