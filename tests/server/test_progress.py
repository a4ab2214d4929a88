"""What of a call's progress is sent."""

from __future__ import annotations

from typing import Any

from django_mcp.server import progress
from django_mcp.server.progress import Progress


def test_a_value_that_is_not_larger_is_not_sent(monkeypatch):
    monkeypatch.setattr(progress, "INTERVAL_SECONDS", 0)
    sent: list[Any] = []
    told = Progress("token", lambda method, params: sent.append(params["progress"]))
    for value in (0, 1, 1, 0.5, 1.5):
        told.report(value, None, None)
    assert sent == [0, 1, 1.5]
