"""What every test of the project has."""

from __future__ import annotations

from tests.wire.validator import valid_wire

__all__ = ["valid_wire"]
