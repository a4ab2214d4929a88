"""`manage.py seed_support`: fill the desk with invented tickets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction
from django.utils import timezone

from example_project.support.demo_data.accounts import Accounts, ensure_accounts
from example_project.support.demo_data.seeding import Seeded, clear, is_empty, seed_desk

if TYPE_CHECKING:
    from datetime import datetime

DEFAULT_TICKETS = 3000
DEFAULT_SEED = 1


class Command(BaseCommand):
    """Does nothing where the desk is not empty, unless it is told to begin anew."""

    help = "Create demo users and fill the support desk with invented tickets."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--tickets", type=int, default=DEFAULT_TICKETS, help="how many")
        parser.add_argument("--seed", type=int, default=DEFAULT_SEED, help="another one, others")
        parser.add_argument("--reset", action="store_true", help="delete the old ones first")

    @transaction.atomic
    def handle(self, *, tickets: int, seed: int, reset: bool, **options: Any) -> None:
        if tickets < 1:
            raise CommandError("--tickets must be at least 1.")
        accounts = ensure_accounts()
        if accounts.password:
            self._report_accounts(accounts)
        if reset:
            clear()
        if not is_empty():
            self.stdout.write("The desk is not empty; use --reset to begin anew.")
            return
        seeded = seed_desk(tickets=tickets, seed=seed, accounts=accounts, until=this_hour())
        self._report(seeded)

    def _report_accounts(self, accounts: Accounts) -> None:
        users = [accounts.admin, *accounts.agents, *accounts.customers]
        names = ", ".join(user.username for user in users)
        self.stdout.write(f"Users: {names}; password: {accounts.password}")

    def _report(self, seeded: Seeded) -> None:
        self.stdout.write(
            self.style.SUCCESS(
                f"Wrote {seeded.tickets} tickets of {seeded.customers} customers, "
                f"{seeded.comments} comments and {seeded.articles} articles."
            )
        )


def this_hour() -> datetime:
    """The moment at which the invented history ends."""
    return timezone.now().replace(minute=0, second=0, microsecond=0)
