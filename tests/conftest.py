"""What every test of the project has."""

from __future__ import annotations

import pytest
from django.utils import translation

from tests.wire.validator import valid_wire

__all__ = ["valid_wire"]


@pytest.fixture(autouse=True)
def own_language():
    """Leave no language behind: LocaleMiddleware activates one for the thread and keeps it."""
    yield
    translation.deactivate()
