"""The app, for ``INSTALLED_APPS``."""

from __future__ import annotations

from django.apps import AppConfig
from django.core.exceptions import ImproperlyConfigured
from django.utils.translation import gettext_lazy as _


class OTelConfig(AppConfig):
    """Records calls with OpenTelemetry."""

    name = "django_mcp.contrib.otel"
    label = "django_mcp_otel"
    verbose_name = _("MCP with OpenTelemetry")

    def ready(self) -> None:
        """Watch calls and sessions, and have clients send the trace that they belong to."""
        try:
            from .call_span import CallSpan, record_session  # noqa: PLC0415
            from .trace_context import send_trace_context  # noqa: PLC0415
        except ModuleNotFoundError as error:
            raise ImproperlyConfigured(
                "django_mcp.contrib.otel needs OpenTelemetry's API: "
                "pip install 'django-mcp-endpoints[otel]'"
            ) from error
        from ...running.call_observers import register  # noqa: PLC0415
        from ...store.sessions.ended import watchers  # noqa: PLC0415

        register(CallSpan)
        if record_session not in watchers:
            watchers.append(record_session)
        send_trace_context()
