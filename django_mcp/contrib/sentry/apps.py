"""The app, for ``INSTALLED_APPS``."""

from __future__ import annotations

from django.apps import AppConfig
from django.core.exceptions import ImproperlyConfigured
from django.utils.translation import gettext_lazy as _


class SentryConfig(AppConfig):
    """Tells Sentry of calls."""

    name = "django_mcp.contrib.sentry"
    label = "django_mcp_sentry"
    verbose_name = _("MCP with Sentry")

    def ready(self) -> None:
        """Watch calls, and hide what is secret in all that is sent."""
        try:
            from .call_scope import CallScope, install  # noqa: PLC0415
        except ModuleNotFoundError as error:
            raise ImproperlyConfigured(
                "django_mcp.contrib.sentry needs Sentry's SDK: pip install sentry-sdk"
            ) from error
        from ...running.call_observers import register  # noqa: PLC0415

        install()
        register(CallScope)
