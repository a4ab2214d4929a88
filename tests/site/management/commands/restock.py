"""A command that has an argument of every kind."""

from __future__ import annotations

import argparse
import sys
from datetime import date
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser


class Command(BaseCommand):
    """Writes what it was given."""

    help = "Order what is out of stock."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("supplier", help="Who delivers (as %(prog)s has it).")
        parser.add_argument("items", nargs="*")
        parser.add_argument("--since", type=date.fromisoformat)
        parser.add_argument("--most", type=int, default=10)
        parser.add_argument("--size", choices=["small", "large"])
        parser.add_argument("--dry-run", action="store_true")
        parser.add_argument("--no-mail", action="store_false", dest="mail")
        parser.add_argument("--tag", action="append")
        parser.add_argument("--noinput", action="store_false", dest="interactive")
        parser.add_argument("--constant", action="store_const", const=3)
        parser.add_argument("--secret", default="kept")

    def handle(self, *args: Any, **options: Any) -> None:
        names = ["supplier", "items", "since", "most", "size", "dry_run", "mail", "tag"]
        for name in [*names, "interactive", "secret", "settings"]:
            self.stdout.write(f"{name}={options[name]!r}")
        self.stderr.write("nearly done")
        match options["supplier"]:
            case "nobody":
                raise CommandError("Nobody delivers.")
            case "exit":
                sys.exit(3)
            case "crash":
                raise argparse.ArgumentError(None, "out of the blue")
            case "dots":
                for _ in range(1_000):
                    self.stdout.write(".", ending="")
                self.stdout.write("done")
            case "much":
                self.stdout.write("x" * 30_000)
