"""The Django app."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

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
        from .server import model_signals, site_offers  # noqa: PLC0415
        from .store.access.user_deletion import watch_users  # noqa: PLC0415
        from .store.ledger import install, ledger  # noqa: PLC0415
        from .store.partitioned_ledger import make_ledger  # noqa: PLC0415
        from .store.sessions import session_cache  # noqa: PLC0415

        model_signals.connect_deferred()
        site_offers.install_admin(admin=tools_of_admin, admin_site=tools_of_admin_site)
        install(make_ledger)
        session_cache.install(lambda: ledger().clear_session_caches())
        watch_users()
        autodiscover_modules("mcp")


def tools_of_admin(*args: Any, **options: Any) -> Iterable[Any]:
    """Return the tools of an admin. Who offers none does not import Django's admin."""
    from .model_tools.admin.admin_tools import tools_of  # noqa: PLC0415

    return tools_of(*args, **options)


def tools_of_admin_site(*args: Any, **options: Any) -> Iterable[Any]:
    """Return the tools of an admin site."""
    from .model_tools.generic.admin_sites import tools_of  # noqa: PLC0415

    return tools_of(*args, **options)
