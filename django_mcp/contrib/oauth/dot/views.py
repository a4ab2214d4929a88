"""The URLs of the authorization server, but for the page that asks people and for registration."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlsplit

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse
from django.views import View
from oauth2_provider.settings import oauth2_settings
from oauth2_provider.views import RevokeTokenView as DOTRevokeTokenView
from oauth2_provider.views import TokenView as DOTTokenView

from ..reports import hide_secrets
from .guarding import Guarded
from .models import AccessToken
from .registration import METHODS
from .site import issuer, sentences
from .validator import Validator

GRANT_TYPES: Final = ("authorization_code", "refresh_token", "client_credentials")


def validator_class() -> Any:
    """Return the site's class, if it is one of ours; else ours, whatever the settings say."""
    chosen = oauth2_settings.OAUTH2_VALIDATOR_CLASS
    return chosen if issubclass(chosen, Validator) else Validator


class WithValidator:
    """Decides by our rules at any URL of ours."""

    @classmethod
    def get_validator_class(cls) -> Any:
        """Return who decides."""
        return validator_class()

    @classmethod
    def get_oauthlib_core(cls) -> Any:
        """Return what answers requests, made once for each class.

        DOT would take one that was made for the class above, where the site uses that as well.
        """
        if "_oauthlib_core" not in vars(cls) or oauth2_settings.ALWAYS_RELOAD_OAUTHLIB_CORE:
            cls._oauthlib_core = cls.get_oauthlib_backend_class()(cls.get_server())  # type: ignore[attr-defined]
        return cls._oauthlib_core  # type: ignore[attr-defined]


class TokenView(Guarded, WithValidator, DOTTokenView):  # type: ignore[misc]  # DOT has no type hints
    """Gives tokens for codes and for refresh tokens."""

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Answer what is known here; devices, for one, have no page on which to be admitted."""
        hide_secrets(request)
        if request.POST.get("grant_type") not in GRANT_TYPES:
            return JsonResponse({"error": "unsupported_grant_type"}, status=400)
        try:
            response: HttpResponse = super().post(request, *args, **kwargs)
        except AccessToken.DoesNotExist:
            # Whoever sent the same code meanwhile has ended what it had given.
            return JsonResponse({"error": "invalid_grant"}, status=400)
        # DOT calls some of its errors HTML.
        response.headers["Content-Type"] = "application/json"
        return response


class RevokeTokenView(Guarded, WithValidator, DOTRevokeTokenView):  # type: ignore[misc]
    """Revokes tokens (RFC 7009)."""

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Revoke a token."""
        hide_secrets(request)
        response: HttpResponse = super().post(request, *args, **kwargs)
        return response


class MetadataView(View):
    """What the authorization server says of itself (RFC 8414, section 2)."""

    def get(self, request: HttpRequest, **kwargs: Any) -> JsonResponse:
        """Show what holds, and nothing else that DOT could do."""
        said = {
            "issuer": issuer(),
            "authorization_endpoint": _url("authorize"),
            "token_endpoint": _url("token"),
            "revocation_endpoint": _url("revoke-token"),
            "scopes_supported": list(sentences()),
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            # Without "none" Codex does not take the way by documents.
            "token_endpoint_auth_methods_supported": list(METHODS),
            "revocation_endpoint_auth_methods_supported": list(METHODS),
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
            "client_id_metadata_document_supported": bool(oauth2_settings.CIMD_ENABLED),
        }
        if oauth2_settings.DCR_ENABLED:
            said["registration_endpoint"] = _url("dcr-register")
        return JsonResponse(said)


def _url(name: str) -> str:
    parts = urlsplit(issuer())
    return f"{parts.scheme}://{parts.netloc}{reverse(f'oauth2_provider:{name}')}"
