"""Pages: every row once and in order, whatever the values; and cursors that tell nothing."""

from __future__ import annotations

import base64
import json
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from django_mcp import ModelTools
from django_mcp.model_tools.finding import pages

from .desk.models import Customer, Device
from .support import client_for, found, ids, ticket, user_with, viewer, walk

pytestmark = pytest.mark.django_db

VALUES = ["name", "rank", "weight", "length", "seen", "day", "hour", "lasted", "owner__name"]


class DeviceTools(ModelTools):
    fields = ["id", *VALUES]
    ordering_fields = VALUES


class TicketTools(ModelTools):
    fields = ["id", "number", "subject", "status"]
    search_fields = ["subject"]
    filters = {"status": ["exact"], "id": ["in"]}
    ordering_fields = ["subject"]


# Few values, so that there are ties, and some that are next to each other.
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "name": st.sampled_from([None, "", "a", "A", "ä", "b", "a ", "\U0001f600", "%"]),
            "rank": st.sampled_from([None, 0, -1, 2**31 - 1, -(2**31)]),
            "weight": st.sampled_from([None, 0.0, 0.1, 0.30000000000000004, 0.3, 1e300, -5e-324]),
            "length": st.sampled_from(
                [
                    None,
                    Decimal(0),
                    # SQLite keeps fifteen digits of them.
                    *map(Decimal, ("12345678901234.567891", "12345678901234.567892")),
                    *map(Decimal, ("0.000001", "0.1", "0.3", "999999.999999")),
                ]
            ),
            "seen": st.sampled_from(
                [
                    None,
                    datetime(2026, 1, 1, tzinfo=UTC),
                    datetime(2026, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
                    datetime(2026, 1, 1, 0, 0, 0, 999999, tzinfo=UTC),
                    datetime(1000, 1, 2, tzinfo=UTC),
                ]
            ),
            "day": st.sampled_from([None, date(2026, 1, 1), date(1999, 12, 31)]),
            "hour": st.sampled_from([None, time(0), time(0, 0, 0, 1), time(23, 59, 59, 999999)]),
            "lasted": st.sampled_from(
                [None, timedelta(0), timedelta(microseconds=1), timedelta(days=-3, microseconds=7)]
            ),
            "owner": st.sampled_from([None, "Ada", "Bob", ""]),
        }
    ),
    max_size=12,
)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(rows=ROWS, limit=st.integers(1, 4), data=st.data())
def test_every_row_comes_once_and_in_order(db, rows, limit, data):
    Device.objects.all().delete()
    owners = {name: Customer.objects.create(name=name) for name in ("Ada", "Bob", "")}
    Device.objects.bulk_create(Device(**{**row, "owner": owners.get(row["owner"])}) for row in rows)
    ordering = data.draw(st.sampled_from([sign + name for name in VALUES for sign in ("", "-")]))
    admin = user_with(is_superuser=True)
    client = client_for(DeviceTools, admin, Device)
    shown = [item["id"] for item in walk(client, "find_devices", ordering=ordering, limit=limit)]
    name = ordering.removeprefix("-")
    filled = Device.objects.exclude(**{f"{name}__isnull": True})
    by = (ordering, "-pk" if ordering.startswith("-") else "pk")
    expected = [str(key) for key in filled.order_by(*by).values_list("pk", flat=True)]
    empty = Device.objects.filter(**{f"{name}__isnull": True}).order_by(by[1])
    assert shown == expected + [str(key) for key in empty.values_list("pk", flat=True)]
    Customer.objects.all().delete()
    admin.delete()


def test_rows_that_come_and_go_move_nothing():
    client = client_for(TicketTools, viewer())
    made = [ticket(number, subject=f"S{number:02}") for number in range(10)]
    first = found(client, ordering="subject", limit=4)
    made[0].delete()
    made[3].delete()  # it is the place
    ticket(50, subject="A")
    rest = found(client, ordering="subject", limit=50, next=first["next"])
    assert [item["subject"] for item in rest["items"]] == [
        f"S{number:02}" for number in range(4, 10)
    ]


def test_the_default_order_is_the_models_if_it_can_be_seen():
    class Ordered(TicketTools):
        ordering = ["-subject", "id"]

    user = viewer()
    first, second, third = ticket(1, subject="b"), ticket(2, subject="a"), ticket(3, subject="b")
    assert ids(client_for(TicketTools, user)) == [first.pk, second.pk, third.pk]
    assert ids(client_for(Ordered, user)) == [first.pk, third.pk, second.pk]
    shown = [item["id"] for item in walk(client_for(Ordered, user), limit=1)]
    assert shown == [first.pk, third.pk, second.pk]


def test_a_cursor_is_for_its_caller_its_arguments_and_its_server():
    user, other = viewer(), viewer()
    for number in range(3):
        ticket(number, subject="same")
    client = client_for(TicketTools, user)
    arguments: dict[str, Any] = {"search": "same", "status": "open", "limit": 1}
    cursor = found(client, **arguments)["next"]
    assert len(found(client, **{**arguments, "limit": 2}, next=cursor)["items"]) == 2
    told = "`next` goes on with a search of your own"
    for changed in (
        {"search": "sam"},
        {"status": "closed"},
        {"ordering": "subject"},
        {"next": cursor[:-1]},
        {"next": cursor[::-1]},
        {"next": ""},
        {"next": "ä" * 40},
        {"next": cursor + "A" * 64},
    ):
        wanted = {**arguments, "next": cursor, **changed}
        client.tool("find_tickets", **wanted).assert_failed(told)
    wanted = {**arguments, "next": cursor}
    client_for(TicketTools, other).tool("find_tickets", **wanted).assert_failed(told)


def test_a_cursor_tells_nothing():
    client = client_for(TicketTools, viewer())
    for number in range(3):
        ticket(number, subject=f"visible {number}")
    cursor = found(client, ordering="subject", limit=1)["next"]
    data = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    assert b"visible" not in data
    assert "visible" not in cursor
    longer = found(client, ordering="-subject", limit=1)["next"]
    assert len(longer) == len(cursor)


class SomeTools(ModelTools):
    fields = ["id", "number"]
    search_fields = ["number"]
    object_permissions = True
    hidden: frozenset[str] = frozenset()

    def has_view_permission(self, user, obj=None):
        return obj is None or obj.number not in self.hidden


def test_hidden_rows_leave_no_hole_in_a_page():
    class Tools(SomeTools):
        hidden = frozenset(f"T-{number}" for number in range(20) if number % 3)

    client = client_for(Tools, viewer())
    for number in range(20):
        ticket(number)
    page = found(client, limit=5)
    assert [item["number"] for item in page["items"]] == ["T-0", "T-3", "T-6", "T-9", "T-12"]
    rest = found(client, limit=5, next=page["next"])
    assert rest == {
        "items": [{"id": each["id"], "number": each["number"]} for each in rest["items"]]
    }
    assert [each["number"] for each in rest["items"]] == ["T-15", "T-18"]


def test_whether_a_hidden_row_would_fit_cannot_be_found_out(monkeypatch):
    class Tools(SomeTools):
        hidden = frozenset(["T-1", "T-2", "T-3"])

    client = client_for(Tools, viewer())
    for number in range(1, 4):
        ticket(number)
    assert found(client, search="T-1", limit=1) == {"items": []}
    assert found(client, search="T-9", limit=1) == {"items": []}
    client.tool("find_tickets", count=True).assert_failed("count: unknown argument")
    client.tool("get_ticket", id=1).assert_failed("No Ticket matches the given query.")
    monkeypatch.setattr(pages, "MAX_LOOKED_AT", 2)
    client.tool("find_tickets", limit=1).assert_failed("Narrow the search.")


def test_purposes_are_json():
    """What a cursor is bound to has values of every type that filters take."""

    class Typed(ModelTools):
        fields = ["id", "seen", "length", "hour", "lasted"]
        filters = {name: ["gte"] for name in ("seen", "length", "hour", "lasted")}
        ordering = ["id"]

    client = client_for(Typed, user_with("view_device"), Device)
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    for _ in range(2):
        Device.objects.create(
            seen=moment, length=Decimal(2), hour=time(3), lasted=timedelta(seconds=4)
        )
    wanted = json.loads(
        '{"seen__gte": "2026-01-01T00:00:00Z", "length__gte": "1.5", "hour__gte": "02:00",'
        ' "lasted__gte": "PT3S", "limit": 1}'
    )
    assert len(list(walk(client, "find_devices", **wanted))) == 2
