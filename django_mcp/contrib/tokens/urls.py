"""``path("tokens/", include("django_mcp.contrib.tokens.urls"))``: people make their own tokens."""

from __future__ import annotations

from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from django.urls import path

if not apps.is_installed("django_mcp.contrib.tokens"):
    raise ImproperlyConfigured('Add "django_mcp.contrib.tokens" to INSTALLED_APPS.')

from .views import own_tokens, revoke

app_name = "django_mcp_tokens"
urlpatterns = [
    path("", own_tokens, name="own_tokens"),
    path("<int:key>/revoke/", revoke, name="revoke"),
]
