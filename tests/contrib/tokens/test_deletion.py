from __future__ import annotations

import datetime as dt

import pytest
from django.utils import timezone

from django_mcp.contrib.tokens.deletion import delete_expired
from django_mcp.contrib.tokens.models import Token

DAY = dt.timedelta(days=1)


def test_what_has_ended_is_deleted_and_the_rest_kept(anna):
    kept = [
        Token.objects.issue(anna)[0],
        Token.objects.issue(anna, expires=DAY)[0],
    ]
    Token.objects.issue(anna, expires=-DAY)
    Token.objects.issue(anna)[0].revoke()
    assert delete_expired() == 2
    assert list(Token.objects.order_by("pk")) == kept


@pytest.mark.parametrize("as_moment", [True, False])
def test_what_ended_lately_may_be_kept(anna, as_moment):
    Token.objects.issue(anna, expires=-3 * DAY)
    lately, _ = Token.objects.issue(anna, expires=-DAY)
    before = timezone.now() - 2 * DAY if as_moment else 2 * DAY
    assert delete_expired(before=before) == 1
    assert Token.objects.get() == lately


def test_batches_are_worked_off_to_the_end(anna, django_assert_max_num_queries):
    for _ in range(5):
        Token.objects.issue(anna, expires=-DAY)
    kept, _ = Token.objects.issue(anna)
    assert delete_expired(batch_size=2) == 5
    assert Token.objects.get() == kept


def test_nothing_to_delete_is_no_error(db):
    assert delete_expired() == 0
