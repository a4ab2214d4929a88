"""Lists what nobody has looked after for long."""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from example_project.support.models import Article


class Command(BaseCommand):
    help = "List the articles of the knowledge base that have not been changed for long."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--days", type=int, default=180, help="For how many days, 180 if it is left out"
        )

    def handle(self, *args: Any, days: int, **options: Any) -> None:
        if not 0 <= days <= 36_500:
            raise CommandError("Between 0 and 36500 days, please.")
        before = timezone.now() - timedelta(days=days)
        stale = Article.objects.filter(updated__lt=before).order_by("updated", "slug")
        for article in stale:
            self.stdout.write(f"{article.slug}: {article.title}, {article.updated:%Y-%m-%d}")
        self.stdout.write(f"{len(stale)} articles in all")
