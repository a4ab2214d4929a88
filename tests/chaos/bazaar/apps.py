"""The site's one app. Plants what ``PLANT`` names, before anything runs."""

from __future__ import annotations

import os

from django.apps import AppConfig


class BazaarConfig(AppConfig):
    """See :mod:`bazaar.faults`."""

    name = "bazaar"

    def ready(self) -> None:
        """Plant the faults."""
        from . import faults  # noqa: PLC0415

        for name in filter(None, os.environ.get("PLANT", "").split(",")):
            getattr(faults, name)()
