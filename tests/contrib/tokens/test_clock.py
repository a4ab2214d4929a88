"""The database's clock agrees with stored values, whatever zone the server or the site is in."""

from __future__ import annotations

import datetime as dt

import pytest
from django.db import connection
from django.utils import timezone

from django_mcp.clock import DatabaseNow
from django_mcp.contrib.tokens.models import State, Token

SOON = dt.timedelta(minutes=5)

pytestmark = pytest.mark.django_db


def assert_the_clock_agrees(user) -> None:
    """Compare with moments that Python writes: minutes apart are right, hours are wrong."""
    now = timezone.now()
    past, _ = Token.objects.issue(user, expires=now - SOON)
    future, _ = Token.objects.issue(user, expires=now + SOON)
    states = dict(Token.objects.with_state().values_list("pk", "state"))
    assert states == {past.pk: State.EXPIRED, future.pk: State.ACTIVE}
    assert abs(future.created - now) < SOON
    assert future.record_use()
    future.refresh_from_db()
    assert abs(future.last_used - now) < SOON
    assert not future.record_use()


def test_it_is_utc_by_default(anna):
    assert_the_clock_agrees(anna)


@pytest.mark.parametrize("zone", ["Asia/Kolkata", "America/New_York"])
def test_it_is_local_time_without_time_zone_support(anna, settings, zone):
    settings.USE_TZ = False
    settings.TIME_ZONE = zone
    assert_the_clock_agrees(anna)


@pytest.mark.skipif(connection.vendor != "mysql", reason="MySQL and MariaDB have a session zone")
@pytest.mark.parametrize("zone", ["+05:30", "-08:00"])
def test_the_zone_of_the_servers_session_does_not_matter(anna, zone):
    with connection.cursor() as cursor:
        cursor.execute("SET time_zone = %s", [zone])
        try:
            assert_the_clock_agrees(anna)
        finally:
            cursor.execute("SET time_zone = @@global.time_zone")


def test_spans_are_counted_by_it(anna):
    token, _ = Token.objects.issue(anna, expires=dt.timedelta(days=2))
    assert token.expires - token.created == pytest.approx(
        dt.timedelta(days=2), abs=dt.timedelta(milliseconds=2)
    )
    ahead = Token.objects.filter(expires__gt=DatabaseNow() + dt.timedelta(days=1))
    assert ahead.get() == token
