"""``python -m bazaar.rows``: what calls have left, and what has no end yet, as JSON."""

from __future__ import annotations

import json
import sys

import django
from django.db.models import Count
from django.utils import timezone


def main() -> None:
    """Print the rows."""
    django.setup()
    from django_mcp.models import PendingRequest, Stream  # noqa: PLC0415  after setup

    from .models import Effect  # noqa: PLC0415

    effects = Effect.objects.values_list("nonce").annotate(Count("pk")).order_by()
    running = PendingRequest.objects.filter(state="running")
    left = [
        f"request {row.request_id} {row}, begun {row.created}, leased until {row.lease_until}, "
        f"looked for at {timezone.now()}"
        for row in running
    ]
    streams = Stream.objects.filter(own=None, closed=None)
    left += [f"stream {row.pk} created {row.created}" for row in streams]
    json.dump({"effects": dict(effects), "left": left}, sys.stdout)


if __name__ == "__main__":
    main()
