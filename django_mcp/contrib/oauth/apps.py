"""The app, for ``INSTALLED_APPS``: it makes a site that has django-oauth-toolkit log clients in."""

from __future__ import annotations

from django.apps import AppConfig, apps
from django.utils.translation import gettext_lazy as _


class OAuthConfig(AppConfig):
    """Logins of MCP clients, beside ``oauth2_provider``."""

    name = "django_mcp.contrib.oauth"
    label = "django_mcp_oauth"
    verbose_name = _("MCP logins")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the system checks, where there is what they check."""
        if apps.is_installed("oauth2_provider"):
            from .dot import checks  # noqa: F401, PLC0415  they need the models
