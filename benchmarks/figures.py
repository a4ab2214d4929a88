"""Medians, spreads and ratios."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spread:
    """What several rounds came to."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Sum up values, of which there is at least one."""
        return cls(statistics.median(values), min(values), max(values))

    @property
    def relative(self) -> float:
        """How far the extremes lie apart, as a share of the median."""
        return (self.most - self.least) / self.median if self.median else 0.0


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which a share of them lies: one of them, none in between."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


def ratios(values: Sequence[float], references: Sequence[float]) -> list[float]:
    """Divide round by round: what disturbed a round disturbed both."""
    return [
        value / reference for value, reference in zip(values, references, strict=True) if reference
    ]
