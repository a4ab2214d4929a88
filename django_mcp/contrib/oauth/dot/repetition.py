"""What comes twice: a refresh, which may be a retry, and a code, which never is one.

Of tokens the database has checksums only, so a token that was issued cannot be issued again from
there. But it can be made again: the tokens that follow a refresh token are derived from it, from
its family, which only the database knows, and from ``SECRET_KEY``. Whoever has a refresh token
cannot derive them, and a refresh that is repeated is answered as it was the first time, whichever
process it reaches.

The family of a login is derived from its code, so that a code that comes again leads to what was
issued for it, although its row is gone.
"""

from __future__ import annotations

import base64
import hashlib
import uuid
from datetime import timedelta
from typing import Any, Final

from django.utils import timezone
from django.utils.crypto import salted_hmac
from django.views.decorators.debug import sensitive_variables
from oauth2_provider.settings import oauth2_settings

from ....conf import get_settings
from .models import AccessToken, RefreshToken

_SALT: Final = "django_mcp.contrib.oauth"


@sensitive_variables("refresh_token", "access", "refresh")
def successors(refresh_token: str, row: Any) -> tuple[str, str] | None:
    """Return the access and the refresh token that follow one, whose row is given.

    ``None`` where the site makes tokens by functions of its own, or the row is older than families.
    """
    own = oauth2_settings.ACCESS_TOKEN_GENERATOR or oauth2_settings.REFRESH_TOKEN_GENERATOR
    if own is not None or row.token_family is None:
        return None
    access = _derived("access token", str(row.token_family), refresh_token)
    refresh = _derived("refresh token", str(row.token_family), refresh_token)
    return access, refresh


@sensitive_variables("refresh_token", "following")
def is_retry(refresh_token: str, row: Any) -> bool:
    """Return whether a refresh token that was used may be answered as it was the first time.

    That is so within ``REFRESH_GRACE_SECONDS``, as long as nothing that followed it was used or
    revoked. Clients refresh twice at once where two of their requests find that a token has
    expired, and once more where an answer was lost; RFC 9700, section 4.14.2, has no time for that.
    """
    grace = timedelta(seconds=get_settings().refresh_grace_seconds)
    if row.revoked is None or row.revoked <= timezone.now() - grace:
        return False
    following = successors(refresh_token, row)
    if following is None:
        return False
    access = AccessToken.objects.filter(
        source_refresh_token=row, token_checksum=checksum(following[0])
    ).first()
    return (
        access is not None
        and RefreshToken.objects.filter(
            access_token=access, token_checksum=checksum(following[1]), revoked__isnull=True
        ).exists()
    )


@sensitive_variables("code")
def family_of(code: str) -> uuid.UUID:
    """Return the family of the refresh tokens that follow from a code."""
    digest = salted_hmac(_SALT, f"family\n{code}", algorithm="sha256").digest()
    return uuid.UUID(bytes=digest[:16], version=4)


@sensitive_variables("code")
def revoke_issued(code: str, application: Any) -> None:
    """Revoke what was issued for a code that has come again (RFC 6749, section 4.1.2)."""
    family = family_of(code)
    if RefreshToken.objects.filter(token_family=family, application=application).exists():
        RefreshToken.revoke_family(family)


@sensitive_variables("token")
def checksum(token: str) -> str:
    """Return by what the database knows a token."""
    return hashlib.sha256(token.encode()).hexdigest()


@sensitive_variables("refresh_token")
def _derived(what: str, family: str, refresh_token: str) -> str:
    text = f"{what}\n{family}\n{refresh_token}"
    digest = salted_hmac(_SALT, text, algorithm="sha256").digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")
