"""The Django app."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules
from django.utils.translation import gettext_lazy as _

from .server import changes


class DjangoMCPConfig(AppConfig):
    """Loads every app's ``mcp.py``, as the admin does with ``admin.py``."""

    name = "django_mcp"
    verbose_name = _("Model Context Protocol")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the system checks and what the apps offer."""
        # Both need the app registry.
        from . import checks  # noqa: F401, PLC0415
        from .store.announcing import Announcer  # noqa: PLC0415

        changes.install(Announcer())
        autodiscover_modules("mcp")
