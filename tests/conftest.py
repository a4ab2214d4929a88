"""What every test of the project has."""

from __future__ import annotations

import pytest
from django.utils import translation

from django_mcp.store.ledger import close_ledger
from tests.wire.validator import valid_wire

__all__ = ["valid_wire"]


@pytest.fixture(autouse=True)
def own_ledger():
    """Leave no thread of the bookkeeping behind."""
    yield
    close_ledger()


@pytest.fixture(autouse=True)
def own_language():
    """Leave no language behind: LocaleMiddleware activates one for the thread and keeps it."""
    yield
    translation.deactivate()
