"""Says that something has changed, knowing nothing of tenants."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from tests.tenants.offers import desk


class Command(BaseCommand):
    def handle(self, *args: Any, **options: Any) -> None:
        desk.notify_resource_updated("desk://one")
