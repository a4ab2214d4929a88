from __future__ import annotations

import itertools

from django_mcp.ids import new_id
from django_mcp.models import PendingRequest


def test_ids_are_of_version_7_and_in_the_order_of_their_making():
    # The resolution is a quarter of a microsecond, which is less than the making of a row takes.
    rows = [PendingRequest() for _ in range(500)]
    assert {(row.pk.version, row.pk.variant) for row in rows} == {(7, "specified in RFC 4122")}
    assert all(older.pk < newer.pk for older, newer in itertools.pairwise(rows))


def test_ids_differ_in_more_than_their_time():
    chance = [new_id().int & (1 << 62) - 1 for _ in range(100)]
    assert len(set(chance)) == 100
