"""Rows to look at, in any number, and where they are listed."""

from __future__ import annotations

import secrets
from datetime import timedelta
from typing import Any

from django.utils import timezone

from django_mcp.models import PendingRequest, Session

SESSIONS = "/admin/django_mcp/session/"
REQUESTS = "/admin/django_mcp/pendingrequest/"


def plant_sessions(
    number: int = 1, *, idle: timedelta = timedelta(), **values: Any
) -> list[Session]:
    """Insert sessions, each a second older than the one before, the first idle for ``idle``."""
    newest = timezone.now() - idle
    defaults = {
        "server": "support-desk",
        "revision": "2025-11-25",
        "client_name": "claude-code",
        "state": Session.State.READY,
    }
    rows = []
    for index in range(number):
        moment = newest - timedelta(seconds=index)
        times = {"created": moment, "last_active": moment, "expires": moment + timedelta(days=30)}
        times["used_hour"] = int(moment.timestamp()) // 3600
        rows.append(Session(key_digest=secrets.token_hex(32), **{**defaults, **times, **values}))
    return Session.objects.bulk_create(rows, batch_size=1_000)


def plant_requests(number: int = 1, **values: Any) -> list[PendingRequest]:
    """Insert requests and return them, the newest first."""
    defaults = {"server": "support-desk", "method": "tools/call", "name": "find_orders"}
    values = {**defaults, "request_id": "1", "created": timezone.now(), **values}
    rows = [PendingRequest(**values) for _ in range(number)]
    PendingRequest.objects.bulk_create(rows, batch_size=1_000)
    return rows[::-1]
