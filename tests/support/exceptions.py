"""Hears of the exceptions that Django's signal tells of."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.signals import got_request_exception


@pytest.fixture
def announced() -> Iterator[list[tuple[Any, Any, BaseException | None]]]:
    """Senders, requests and the exceptions that were being handled."""
    heard: list[tuple[Any, Any, BaseException | None]] = []

    def hear(sender: Any, request: Any, **_: Any) -> None:
        heard.append((sender, request, sys.exc_info()[1]))

    got_request_exception.connect(hear)
    yield heard
    got_request_exception.disconnect(hear)
