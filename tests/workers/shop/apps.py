"""The project's one app: its tools, a record of its statements, and the faults of a test."""

from __future__ import annotations

import os

from django.apps import AppConfig


class ShopConfig(AppConfig):
    """Records, and plants what ``PLANT`` names, before anything runs."""

    name = "shop"

    def ready(self) -> None:
        """See :mod:`shop.statements` and :mod:`shop.faults`."""
        from . import faults, statements  # noqa: PLC0415

        statements.statements.install()
        for name in filter(None, os.environ.get("PLANT", "").split(",")):
            getattr(faults, name)()
