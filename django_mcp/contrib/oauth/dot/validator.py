"""What is decided at authorization and token requests: ``OAUTH2_VALIDATOR_CLASS`` of DOT.

Everything that would make a site less safe is refused here, whatever else its settings say.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from typing import Any, Final

from django.db.models import F
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables
from oauth2_provider.models import refresh_token_expire_timedelta
from oauth2_provider.oauth2_validators import OAuth2Validator
from oauth2_provider.settings import oauth2_settings
from oauthlib.oauth2.rfc6749 import errors

from ....conf import get_settings
from ....protocol.scopes import NOT_OURS
from .models import Grant, RefreshToken, is_active
from .redirects import objection_to
from .repetition import checksum, family_of, is_retry, revoke_issued, successors
from .site import ResourceError, choose_target, has_scope_of_ours
from .step_up import forget_challenge, was_challenged

logger = logging.getLogger("django_mcp.contrib.oauth")

GRANT_TYPES: Final = ("authorization_code", "refresh_token")
"""What clients may do that have registered themselves."""

_NONCE_CHARACTERS: Final = 255
"""As many as DOT has room for."""
_CHALLENGE: Final = re.compile(r"[A-Za-z0-9_-]{43}")
"""A digest by SHA-256 (RFC 7636, section 4.2)."""


class Validator(OAuth2Validator):  # type: ignore[misc]  # DOT has no type hints
    """django-oauth-toolkit's rules, and those of MCP and RFC 9700 beside them."""

    def _load_application(self, client_id: str, request: Any) -> Any:
        # For which PostgreSQL cannot be asked; Basic credentials may have it as well.
        return None if "\0" in (client_id or "") else super()._load_application(client_id, request)

    # At the authorization endpoint

    def is_pkce_required(self, client_id: str, request: Any) -> bool:
        """Require PKCE of everybody, by S256 (RFC 9700, section 2.1.1)."""
        challenge = request.code_challenge
        if challenge is not None and request.code_challenge_method != "S256":
            description = "Send a code_challenge with the code_challenge_method S256."
            raise errors.InvalidRequestError(description=description, request=request)
        if challenge is not None and not _CHALLENGE.fullmatch(challenge):
            description = "A code_challenge by S256 has 43 characters, those of base64url."
            raise errors.InvalidRequestError(description=description, request=request)
        return True

    def validate_response_type(
        self, client_id: str, response_type: str, client: Any, request: Any, *args: Any, **kw: Any
    ) -> bool:
        """Refuse what would put a token into a URL (RFC 9700, section 2.1.2).

        A code has its place in the query: a fragment goes along wherever the client's page leads.
        """
        if (request.response_mode or "query") != "query":
            request.response_mode = "query"  # for the error
            description = "The response_mode is query."
            raise errors.InvalidRequestError(description=description, request=request)
        if len(request.nonce or "") > _NONCE_CHARACTERS:
            description = f"A nonce has {_NONCE_CHARACTERS} characters at most."
            raise errors.InvalidRequestError(description=description, request=request)
        return response_type == "code" and super().validate_response_type(
            client_id, response_type, client, request, *args, **kw
        )

    def validate_redirect_uri(
        self, client_id: str, redirect_uri: str, request: Any, *args: Any, **kwargs: Any
    ) -> bool:
        """Take those that are registered; of clients that did it themselves only safe ones."""
        if _is_own(request.client) and objection_to(redirect_uri):
            return False
        return bool(super().validate_redirect_uri(client_id, redirect_uri, request))

    def validate_scopes(
        self,
        client_id: str,
        scopes: Sequence[str],
        client: Any,
        request: Any,
        *args: Any,
        **kw: Any,
    ) -> bool:
        """Leave out what means nothing here; every client gets refresh tokens anyway."""
        wanted = [each for each in scopes if each not in NOT_OURS]
        request.scopes = wanted or self.get_default_scopes(client_id, request)
        return bool(
            super().validate_scopes(client_id, request.scopes, client, request, *args, **kw)
        )

    def save_authorization_code(
        self, client_id: str, code: Any, request: Any, *args: Any, **kwargs: Any
    ) -> None:
        """Keep the code, for the one resource to which it leads."""
        request.resource = self.resources_of(request)
        super().save_authorization_code(client_id, code, request, *args, **kwargs)
        forget_challenge(request.user, client_id)

    def resources_of(self, request: Any) -> list[str]:
        """Return for what a token is that is asked for; raises an error of OAuth.

        A client that has registered itself gets none but for an endpoint.
        """
        asked = request.resource or []
        asked = [asked] if isinstance(asked, str) else list(asked)
        try:
            target = choose_target(asked, request.scopes)
        except ResourceError as error:
            raise _error("invalid_target", f"{error}.", request) from error
        if target is None and not _is_own(request.client):
            return []
        if target is None or not has_scope_of_ours(request.scopes):
            description = "Ask for a scope of the endpoint."
            raise errors.InvalidScopeError(description=description, request=request)
        return [target.url]

    # At the token endpoint

    def validate_grant_type(
        self, client_id: str, grant_type: str, client: Any, request: Any, *args: Any, **kw: Any
    ) -> bool:
        """Refuse passwords (RFC 9700, section 2.4), and all but codes to unknown clients."""
        known_only = grant_type == "client_credentials" and not _is_own(request.client)
        if grant_type not in GRANT_TYPES and not known_only:
            return False
        return bool(
            super().validate_grant_type(client_id, grant_type, client, request, *args, **kw)
        )

    @sensitive_variables("code")
    def validate_code(
        self, client_id: str, code: str, client: Any, request: Any, *args: Any, **kwargs: Any
    ) -> bool:
        """Take a code once, of a user who is active, for the resource that he was shown."""
        request.grant = grant = Grant.objects.filter(code=code, application=client).first()
        if grant is None or not super().validate_code(
            client_id, code, client, request, *args, **kwargs
        ):
            if not Grant.objects.filter(code=code).exists():
                revoke_issued(code, client)
            return False
        if not is_active(request.user):
            return False
        _check_resources(request, grant.resource)
        return True

    # DOT would look for the row each time, which another request may have taken meanwhile.

    def get_code_challenge(self, code: str, request: Any) -> str | None:
        """Return what a verifier must fit."""
        return request.grant.code_challenge or None

    def get_code_challenge_method(self, code: str, request: Any) -> str | None:
        """Return how it must fit."""
        return request.grant.code_challenge_method or None

    def confirm_redirect_uri(
        self, client_id: str, code: str, redirect_uri: str, client: Any, request: Any
    ) -> bool:
        """Return whether the code was sent to this URI."""
        return bool(request.grant.redirect_uri_allowed(redirect_uri))

    @sensitive_variables("code")
    def invalidate_authorization_code(
        self, client_id: str, code: str, request: Any, *args: Any, **kwargs: Any
    ) -> None:
        """Let nobody have anything of a code that came twice at once."""
        try:
            super().invalidate_authorization_code(client_id, code, request, *args, **kwargs)
        except errors.InvalidGrantError:
            revoke_issued(code, request.client)
            raise

    @sensitive_variables("refresh_token")
    def validate_refresh_token(
        self, refresh_token: str, client: Any, request: Any, *args: Any, **kwargs: Any
    ) -> bool:
        """Take a refresh token of an active user, for the resource that he was shown."""
        row = (
            RefreshToken.objects.filter(token_checksum=checksum(refresh_token), application=client)
            .select_related("access_token", "user")
            .order_by(F("revoked").desc(nulls_first=True))
            .first()
        )
        # DOT would look at the tokens of all clients, and revoke another's that comes twice; and it
        # would look at the row again, which a refresh at the same time may have used meanwhile.
        if row is None or not is_active(row.user) or not _is_good(refresh_token, row):
            return False
        request.user, request.refresh_token = row.user, refresh_token
        request.refresh_token_instance = row
        _check_resources(request, row.resource)
        if get_settings().step_up_help and was_challenged(row.user, client.client_id):
            raise _error(*_ASK_FIRST, request)
        return True

    def rotate_refresh_token(self, request: Any) -> bool:
        """Give another one each time (OAuth 2.1, section 4.3.1, for public clients)."""
        return True

    @sensitive_variables("token", "following")
    def _save_bearer_token(self, token: Any, request: Any, *args: Any, **kwargs: Any) -> None:
        # The method that DOT's documentation names for this.
        row = getattr(request, "refresh_token_instance", None)
        following = None if row is None else successors(request.refresh_token, row)
        if following is not None:
            token["access_token"], token["refresh_token"] = following
        super()._save_bearer_token(token, request, *args, **kwargs)
        if following is not None:
            # Of a retry DOT takes what is stored, which is nothing but checksums.
            token["access_token"], token["refresh_token"] = following

    @sensitive_variables("refresh_token_code")
    def _create_refresh_token(
        self, request: Any, refresh_token_code: str, access_token: Any, previous: Any
    ) -> Any:
        row = super()._create_refresh_token(request, refresh_token_code, access_token, previous)
        if previous is None and request.grant_type == "authorization_code":
            row.token_family = family_of(request.code)
            row.save(update_fields=["token_family"])
        return row


_ASK_FIRST: Final = (
    "server_error",
    "This login lacks a scope that was just asked for: log in again and ask for it.",
)


def _is_good(refresh_token: str, row: Any) -> bool:
    """Return whether a refresh token may be used; revoke the login's, where it was stolen."""
    if row.revoked is not None:
        is_good = is_retry(refresh_token, row)
        if not is_good and oauth2_settings.REFRESH_TOKEN_REUSE_PROTECTION:
            RefreshToken.revoke_family(row.token_family)
        return is_good
    if row.access_token is None:
        # Somebody has deleted it, and meant to end the login.
        return False
    lifetime = refresh_token_expire_timedelta()
    return not lifetime or row.access_token.expires + lifetime > timezone.now()


def _is_own(application: Any) -> bool:
    """Return whether nobody of the site has registered a client."""
    return bool(application.registration_source != "manual")


def _check_resources(request: Any, granted: Sequence[str]) -> None:
    """Check that a token is asked for nothing that its user was not shown.

    DOT looks at it only where he was shown something.
    """
    asked = [value for name, value in request.decoded_body or () if name == "resource" and value]
    if not set(asked).issubset(granted or ()):
        raise _error("invalid_target", "That is not what the login was for.", request)


def _error(code: str, description: str, request: Any) -> errors.OAuth2Error:
    return errors.CustomOAuth2Error(error=code, description=description, request=request)
