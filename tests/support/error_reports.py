"""Reports of errors, as Django makes them for people and other services."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.signals import got_request_exception
from django.test import override_settings
from django.views.debug import ExceptionReporter


@contextmanager
def reporting() -> Iterator[list[str]]:
    """Collect what a report of each error would show, as text and as a page."""
    found: list[str] = []

    def report(sender: Any, request: Any, **more: Any) -> None:
        made = ExceptionReporter(request, *sys.exc_info())
        found.append(made.get_traceback_text() + made.get_traceback_html())

    with override_settings(DEBUG=False):
        got_request_exception.connect(report)
        try:
            yield found
        finally:
            got_request_exception.disconnect(report)
