"""`manage.py prepare_site`: a small desk, and requests in flight as a client would leave them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import BaseCommand
from django.utils import timezone

from django_mcp.models import PendingRequest, Session

PLANTED = "planted-client"
TICKETS = 50


class Command(BaseCommand):
    """Everything that a visit needs, in one process."""

    requires_system_checks = []

    def handle(self, **options: Any) -> None:
        call_command("migrate", verbosity=0)
        call_command("seed_support", tickets=TICKETS)
        plant_requests()


def plant_requests() -> None:
    """Insert a session that waits for two things: a tool of ours and an answer of its client."""
    principal = {"user": User.objects.get(username="agent"), "client_id": "demo"}
    session = Session.objects.create(
        **principal,
        key_digest="0" * 64,
        server="support-desk",
        revision="2025-11-25",
        client_name=PLANTED,
        state=Session.State.READY,
        expires=timezone.now() + timedelta(days=1),
    )
    common = {**principal, "session": session, "server": session.server}
    PendingRequest.objects.create(
        **common,
        request_id="7",
        method="tools/call",
        name="search_tickets",
        deadline=timezone.now() + timedelta(hours=2),
    )
    PendingRequest.objects.create(
        **common,
        request_id="8",
        method="elicitation/create",
        direction=PendingRequest.Direction.TO_CLIENT,
    )
