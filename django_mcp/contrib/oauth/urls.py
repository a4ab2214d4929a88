"""``path("", include("django_mcp.contrib.oauth.urls"))``: the site's own authorization server.

At the root of the URLconf, in front of ``django_mcp.urls``. It takes the place of
``oauth2_provider.urls``, whose views would go round what is decided here; names of URLs are the
same.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from django.urls import URLPattern, include, path
from django.urls.resolvers import RegexPattern

from ...http.views import outside_the_site
from .dot.consent import AuthorizationView, stylesheet
from .dot.cors import open_to_pages
from .dot.registration import RegistrationView
from .dot.site import configured_issuer, knowing_host
from .dot.views import MetadataView, RevokeTokenView, TokenView

_DOCUMENT = ".well-known/oauth-authorization-server"


class IssuerPattern(RegexPattern):
    """Matches the document about the site's issuer (RFC 8414, section 3.1), and no other."""

    def match(self, path: str) -> tuple[str, tuple[Any, ...], dict[str, Any]] | None:
        """Return what Django asks of a pattern, or nothing."""
        behind = urlsplit(configured_issuer()).path.rstrip("/")
        # The latter where a proxy has taken the path away.
        return ("", (), {}) if path in (f"{_DOCUMENT}{behind}", _DOCUMENT) else None


def _open(view: Any, *methods: str) -> Any:
    return outside_the_site(open_to_pages(knowing_host(view.as_view()), *methods))


endpoints = [
    # It asks for a login and looks at its form itself.
    path(
        "authorize/",
        outside_the_site(knowing_host(AuthorizationView.as_view())),
        name="authorize",
    ),
    path("consent.css", stylesheet, name="consent-style"),
    path("token/", _open(TokenView, "POST"), name="token"),
    path("revoke_token/", _open(RevokeTokenView, "POST"), name="revoke-token"),
    path("register/", _open(RegistrationView, "POST"), name="dcr-register"),
]

urlpatterns = [
    URLPattern(
        IssuerPattern(rf"^{_DOCUMENT}(?:/.*)?$", is_endpoint=True),
        _open(MetadataView, "GET"),
        name="mcp-oauth-metadata",
    ),
    path("o/", include((endpoints, "oauth2_provider"))),
]
