"""The workshop, shared by all tests, and what marks them."""

from __future__ import annotations

from pathlib import Path

import pytest

from .workshop import Workshop

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    """Return the place where pages are played."""
    return Workshop(tmp_path_factory.mktemp("docs"))
