"""The project's one app: its tools, and the faults that a test plants in it."""

from __future__ import annotations

import os

from django.apps import AppConfig


class ShopConfig(AppConfig):
    """Plants what ``PLANT`` names, before anything runs."""

    name = "shop"

    def ready(self) -> None:
        """See :mod:`shop.faults`."""
        from . import faults  # noqa: PLC0415

        for name in filter(None, os.environ.get("PLANT", "").split(",")):
            getattr(faults, name)()
