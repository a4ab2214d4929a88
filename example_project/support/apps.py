"""The app's configuration."""

from __future__ import annotations

from django.apps import AppConfig


class SupportConfig(AppConfig):
    """The support desk; django_mcp finds its `mcp` package as the admin finds `admin.py`."""

    name = "example_project.support"
    label = "support"
    verbose_name = "Support desk"

    def ready(self) -> None:
        """Connect the signals."""
        from example_project.support import signals  # noqa: F401, PLC0415  models must be loaded
