"""``include("django_mcp.contrib.oauth.allauth.urls")``: the URLs of allauth's provider.

At the root of the URLconf, instead of ``allauth.idp.urls``: the same, with some views replaced.
"""

from __future__ import annotations

from allauth.idp.oidc import app_settings
from django.urls import include, path

from . import views

_API = "identity/o/api"
_REGISTRATION = [path(f"{_API}/clients", views.client_registration)]

urlpatterns = [
    path(".well-known/oauth-authorization-server", views.server_metadata),
    path(".well-known/openid-configuration", views.configuration),
    path("identity/o/authorize", views.authorization),
    path("identity/o/logout", views.logout),
    path(f"{_API}/token", views.token),
    path(f"{_API}/revoke", views.revoke),
    *(_REGISTRATION if app_settings.DCR_ENABLED else ()),
    path("", include("allauth.idp.urls")),
]
