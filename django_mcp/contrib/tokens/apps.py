"""The app, for ``INSTALLED_APPS``."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class TokensConfig(AppConfig):
    """Bearer tokens of users."""

    name = "django_mcp.contrib.tokens"
    # The last part of the name is too common a word to claim as a label and as a table prefix.
    label = "django_mcp_tokens"
    verbose_name = _("MCP tokens")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the system checks."""
        from . import checks  # noqa: F401, PLC0415
