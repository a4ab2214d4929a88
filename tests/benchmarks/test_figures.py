from __future__ import annotations

import pytest

from benchmarks.figures import Spread, percentile, ratios


def test_a_spread_has_median_and_extremes():
    assert Spread.of([3, 1, 10]) == Spread(3, 1, 10)
    assert Spread.of([1, 2]) == Spread(1.5, 1, 2)
    assert Spread.of([90, 100, 110]).relative == pytest.approx(0.2)
    assert Spread.of([0]).relative == 0


@pytest.mark.parametrize(("share", "expected"), [(0, 1), (0.5, 51), (0.99, 100), (1, 100)])
def test_a_percentile_is_one_of_the_values(share: float, expected: int):
    assert percentile(list(range(100, 0, -1)), share) == expected
    assert percentile([7], share) == 7


def test_ratios_are_taken_within_a_round():
    # The machine was twice as slow in the second one; nobody's ratio may show it.
    assert ratios([100, 50], [200, 100]) == [0.5, 0.5]
    with pytest.raises(ValueError, match="shorter"):
        ratios([1, 2], [1])
