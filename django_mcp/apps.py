"""The Django app."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules
from django.utils.translation import gettext_lazy as _


class DjangoMCPConfig(AppConfig):
    """Loads every app's ``mcp.py``, as the admin does with ``admin.py``."""

    name = "django_mcp"
    verbose_name = _("Model Context Protocol")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the system checks, what ends with users, and what the apps offer."""
        # These need the app registry.
        from . import checks  # noqa: F401, PLC0415
        from .server import model_signals  # noqa: PLC0415
        from .store.access.user_deletion import watch_users  # noqa: PLC0415
        from .store.ledger import install, ledger  # noqa: PLC0415
        from .store.partitioned_ledger import make_ledger  # noqa: PLC0415
        from .store.sessions import session_cache  # noqa: PLC0415

        model_signals.connect_deferred()
        install(make_ledger)
        session_cache.install(lambda: ledger().clear_session_caches())
        watch_users()
        autodiscover_modules("mcp")
