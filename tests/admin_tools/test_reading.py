"""``find`` and ``get``: what the admin's pages show to whoever asks, and never a secret."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.contrib import admin
from django.db.models import Count, F
from django.db.models.functions import Lower
from django.utils import timezone

from django_mcp import MCPServer
from django_mcp.testing import MCPClient
from tests.model_tools.desk.models import Comment, Company, Device, Tag, Ticket
from tests.model_tools.support import (
    assert_fits,
    counted,
    customer,
    described,
    found,
    ids,
    ticket,
    tickets,
    walk,
)

from .support import OwnAdmin, PlainAdmin, boss, client_for, site_with, staff

pytestmark = pytest.mark.django_db


def test_find_has_the_columns_and_get_the_page():
    user = staff("view_ticket", "view_comment")
    one = ticket(subject="Loud & clear", body="Text", secret_note="hush")
    Comment.objects.create(ticket=one, author=user, text="First")
    one.tags.add(Tag.objects.create(name="red"))
    client = client_for(PlainAdmin, user)
    assert found(client)["items"] == [
        {
            "id": one.pk,
            "number": "T-1",
            "subject": "Loud & clear",
            "status": "open",
            "customer": {"id": one.customer_id, "text": "Ada"},
            "shout": "LOUD & CLEAR",
            "is_late": False,
        }
    ]
    row = found(client, "get_ticket", id=one.pk)
    assert_fits(client, "get_ticket", row)
    assert (row["body"], row["shout"], row["priority"]) == (
        "Text",
        "LOUD & CLEAR",
        {"id": 1, "text": "Low"},
    )
    assert [each["text"] for each in row["tags"]] == ["red"]
    assert [each["text"] for each in row["comments"]] == ["First"]
    assert "hush" not in json.dumps(row)
    assert not {"secret_note", "vault", "row_version"} & row.keys()
    client.tool("get_ticket", id=99).assert_failed("No Ticket matches the given query.")


def test_secrets_that_are_none_can_be_allowed():
    one = ticket(secret_note="hush")
    client = client_for(PlainAdmin, boss(), allow_secret=["secret_note"])
    assert found(client, "get_ticket", id=one.pk)["secret_note"] == "hush"
    assert ids(client, search="hush") == [one.pk]


def test_what_is_searched_for_is_what_the_page_says():
    class Told(PlainAdmin):
        search_help_text = "The number of a ticket"

    site = site_with((Ticket, Told))
    server = MCPServer("test")
    server.admin(Ticket, site=site)
    server.admin_site(site, models=["*"])
    client = MCPClient(server).as_user(boss())
    tools = {each["name"]: each["inputSchema"]["properties"] for each in client.list_tools()}
    assert tools["find_tickets"]["search"]["description"] == Told.search_help_text
    described = client.tool("describe_model", model="desk.Ticket").result["structuredContent"]
    assert described["search"] == Told.search_help_text


def test_nothing_is_found_by_what_is_secret():
    """The admin of the desk searches a secret, and may filter by any column by its URL."""
    ticket(secret_note="hush")
    client = client_for(PlainAdmin, boss())
    assert ids(client, search="hush") == []
    for name in ("secret_note", "secret_note__startswith", "remark", "customer__email", "vault"):
        client.tool("find_tickets", **{name: "h"}).assert_failed(f"{name}: unknown argument")
    orders = described(client, "find_tickets")["inputSchema"]["properties"]["ordering"]["enum"]
    assert orders == [
        f"{sign}{name}"
        for sign in ("", "-")
        for name in ("number", "subject", "status", "customer", "shout")
    ]

    class Secretive(PlainAdmin):
        list_display = ["number", "secret_note", "leak"]
        list_filter = ["secret_note", "status"]

        @admin.display(ordering="secret_note")
        def leak(self, obj):
            return "no"

    client = client_for(Secretive, boss(), site=None)
    asked = described(client, "find_tickets")["inputSchema"]["properties"]
    assert asked["ordering"]["enum"] == ["number", "-number"]
    assert "secret_note" not in asked
    assert found(client)["items"][0].keys() == {"id", "number", "leak"}


def test_filters_are_those_of_list_filter():
    first, second, third = tickets(3)
    Ticket.objects.filter(pk=second.pk).update(
        status="closed", is_public=False, created=timezone.now() - timedelta(days=9)
    )
    Ticket.objects.filter(pk=third.pk).update(due="2026-01-31")
    client = client_for(PlainAdmin, boss())
    day_ago = (timezone.now() - timedelta(days=1)).isoformat()
    assert ids(client, status="closed") == [second.pk]
    assert ids(client, is_public=False) == [second.pk]
    assert ids(client, customer=third.customer_id) == [third.pk]
    assert ids(client, customer__name="Customer 1") == [first.pk]
    assert ids(client, tags=first.tags.first().pk) == [first.pk]
    assert ids(client, tags__isnull=True) == []
    assert ids(client, created__lt=day_ago) == [second.pk]
    assert ids(client, created__gte=day_ago, status="open") == [third.pk, first.pk]
    assert ids(client, due__isnull=False) == ids(client, due__gte="2026-01-31") == [third.pk]
    assert ids(client, search="t-2") == ids(client, search="Subject 2") == [second.pk]
    client.tool("find_tickets", status="lost").assert_failed("Input should be 'open'")


def test_filters_of_the_site_are_asked_as_the_changelist_asks_them():
    first, second, third = tickets(3)
    Ticket.objects.filter(pk=second.pk).update(priority=2)
    Ticket.objects.filter(pk=third.pk).update(remark="archived", priority=2)
    client = client_for(OwnAdmin, boss())
    asked = described(client, "find_tickets")["inputSchema"]["properties"]
    assert asked["late"] == {"enum": ["yes", "no"], "type": "string"}
    assert asked["company"] == {"type": "string"}, "its choices are in the database"
    assert sorted(ids(client)) == [first.pk, second.pk], "the filter hides what is archived"
    assert sorted(ids(client, late="yes")) == [second.pk, third.pk]
    company = Company.objects.get(name="Company 1")
    assert ids(client, company=str(company.pk)) == [first.pk]
    client.tool("find_tickets", company="0").assert_failed("company: '0' is none of")


def test_filters_of_other_kinds():
    class Kinds(PlainAdmin):
        list_filter = [
            ("remark", admin.EmptyFieldListFilter),
            ("assignee", admin.RelatedOnlyFieldListFilter),
            ("status", admin.AllValuesFieldListFilter),
            ("price", OwnFilter),
            "priority",
        ]

    first, second = tickets(2)
    Ticket.objects.filter(pk=second.pk).update(remark="r", price="7.000", priority=2)
    client = client_for(Kinds, boss())
    assert ids(client, remark__isempty=True) == [first.pk]
    assert ids(client, assignee__isnull=True, status="open") == [second.pk, first.pk]
    assert ids(client, cheap="1") == [second.pk]
    assert ids(client, priority=2) == [second.pk]
    client.tool("find_tickets", cheap="x").assert_failed("cheap: no value that this filter takes.")


class OwnFilter(admin.FieldListFilter):
    """By a parameter of its own."""

    def expected_parameters(self):
        return ["cheap"]

    def choices(self, changelist):
        return []

    def queryset(self, request, queryset):
        if "cheap" not in self.used_parameters:
            return queryset
        try:
            least = int(self.used_parameters["cheap"][0])
        except ValueError as error:
            raise admin.options.IncorrectLookupParameters(error) from error
        return queryset.filter(price__gte=least)


def test_who_may_less_is_refused_what_the_admin_does_not_give_him():
    mine = ticket(1, subject="Mine", assignee=staff("view_ticket", username="sam"))
    ticket(2, subject="Mine too", assignee=mine.assignee, remark="hidden", price=3)
    assert mine.assignee is not None
    client = client_for(OwnAdmin, mine.assignee)
    (item,) = found(client)["items"]
    assert item == {
        "id": mine.pk,
        "number": "T-1",
        "who": {"id": mine.customer_id, "text": "Ada"},
        "text": "T-1 Mine",
    }
    client.tool("find_tickets", price="3").assert_failed(
        "price: you cannot filter by this; you can by late, company."
    )
    client.tool("find_tickets", count=True).assert_failed("count: unknown argument")
    everything = client_for(OwnAdmin, boss())
    assert found(everything, price="3")["items"][0]["price"] == "3.000"


def test_rows_that_are_hidden_one_by_one_are_found_by_nobody_else():
    sam, mia = (staff("view_ticket", username=name) for name in ("sam", "mia"))
    one = ticket(assignee=sam)
    assert ids(client_for(OwnAdmin, sam)) == [one.pk]
    client = client_for(OwnAdmin, mia)
    assert ids(client) == []
    client.tool("get_ticket", id=one.pk).assert_failed("No Ticket matches the given query.")


def test_the_order_is_the_admins():
    for number, name in enumerate(("Bea", "Ada", "Ada"), start=1):
        ticket(number, customer=customer(name))
    client = client_for(OwnAdmin, boss())
    assert [each["number"] for each in walk(client, limit=1)] == ["T-3", "T-2", "T-1"]
    assert [each["number"] for each in walk(client, limit=2, ordering="-number")] == [
        "T-3",
        "T-2",
        "T-1",
    ]
    client.tool("find_tickets", ordering="who").assert_failed("Input should be 'number'")


@pytest.mark.parametrize(
    "ordering",
    [
        [F("customer__name"), "-number"],
        ["by the queryset"],
        [Lower("subject").desc()],
        [F("price").desc(nulls_last=True), "number"],
        ["customer"],
        ["-customer__company", "?"],
        ["body"],
        [],
    ],
)
def test_pages_follow_any_order_that_an_admin_may_have(ordering):
    class Ordered(PlainAdmin):
        def get_queryset(self, request):
            rows = super().get_queryset(request).annotate(comment_count=Count("comments"))
            return rows.order_by("-comment_count") if by_queryset else rows

        def get_ordering(self, request):
            return [] if by_queryset else ordering

    by_queryset = ordering == ["by the queryset"]
    rows = tickets(5)
    Comment.objects.create(ticket=rows[3], author=boss(), text="More")
    Ticket.objects.filter(pk__in=[rows[0].pk, rows[2].pk]).update(price="2.5")
    client = client_for(Ordered, boss())
    walked = [each["id"] for each in walk(client, limit=2)]
    assert sorted(walked) == sorted(row.pk for row in rows)
    if by_queryset:
        assert walked[0] == rows[3].pk
    if ordering and ordering[0] not in ("body", "customer", F("customer__name")):
        assert walked != sorted(walked), "no order but that of the keys"


@pytest.mark.parametrize("select", [True, False, ["customer__company"]])
@pytest.mark.parametrize("tool", ["find_tickets", "get_ticket"])
def test_no_query_for_each_row(select, tool):
    class Selecting(PlainAdmin):
        list_display = ["number", "customer", "assignee", "company"]

        def get_list_select_related(self, request):
            return ["customer__company"] if select is False else select

        def company(self, obj):
            # All links, to Django, are those that are never null.
            return obj.customer if select is True else obj.customer.company

    author = boss()

    def cost(client, of):
        with counted() as statements:
            client.tool(tool, **of).assert_ok()
        return len(statements)

    client = client_for(Selecting, author)
    first, _ = tickets(2)
    of = {} if tool == "find_tickets" else {"id": first.pk}
    before = cost(client, of)
    for number in range(20):
        one = ticket(100 + number, customer=customer(company=Company.objects.create(name="C")))
        one.assignee = author
        one.save()
        Comment.objects.create(ticket=first, author=author, text="More")
        first.tags.add(Tag.objects.create(name=f"more {number}"))
    assert cost(client, of) == before


def test_a_row_without_what_a_column_follows():
    class Devices(admin.ModelAdmin):
        list_display = ["__str__", "owner__name", "absent"]

        @admin.display(empty_value="-")
        def absent(self, obj):
            return obj.owner.name

    Device.objects.create()
    (item,) = found(client_for(Devices, boss(), Device), "find_devices")["items"]
    assert (item["owner__name"], item["absent"]) == (None, None)


def test_a_text_is_called_otherwise_where_the_model_has_a_text():
    class Comments(admin.ModelAdmin):
        list_display = ["__str__", "text"]

        def text(self, obj):
            return "never: the model's own comes first"

    Comment.objects.create(ticket=ticket(), author=boss(), text="Said")
    (item,) = found(client_for(Comments, boss(), Comment), "find_comments")["items"]
    assert item == {"id": item["id"], "title": "Said", "text": "Said"}
