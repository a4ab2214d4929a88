"""The app, for ``INSTALLED_APPS``."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class AllauthConfig(AppConfig):
    """Logins by the provider of django-allauth."""

    name = "django_mcp.contrib.oauth.allauth"
    # The last part of the name is allauth's own.
    label = "django_mcp_allauth"
    verbose_name = _("MCP logins by allauth")

    def ready(self) -> None:
        """Have the configuration checked."""
        from . import checks  # noqa: F401, PLC0415 - once all apps are there
