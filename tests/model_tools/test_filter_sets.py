"""A ``FilterSet`` of django-filter as the filters of a model's tools."""

from __future__ import annotations

from decimal import Decimal

import django_filters
import pytest
from django.contrib.auth.models import User

from django_mcp import ModelTools, RegistrationError

from .desk.models import Customer, Tag, Ticket
from .support import client_for, customer, described, ids, serve, ticket, viewer

pytestmark = pytest.mark.django_db


class NumberIn(django_filters.BaseInFilter, django_filters.NumberFilter):
    pass


class TicketFilter(django_filters.FilterSet):
    price = django_filters.RangeFilter()
    number_of = NumberIn(field_name="id", lookup_expr="in")
    mine = django_filters.BooleanFilter(method="filter_mine")
    status = django_filters.MultipleChoiceFilter(choices=Ticket.Status.choices)

    class Meta:
        model = Ticket
        fields = {
            "subject": ["icontains"],
            "customer": ["exact"],
            "tags": ["exact"],
            "is_public": ["exact"],
            "due": ["gte"],
            "created": ["lt"],
        }

    def filter_mine(self, queryset, name, value):
        mine = queryset.filter(assignee=self.request.user)
        return mine if value else queryset.exclude(pk__in=mine)


class TicketTools(ModelTools):
    fields = [
        "id", "subject", "status", "customer", "tags", "is_public", "due", "created", "price",
    ]  # fmt: skip
    filters = TicketFilter


def test_filters_become_arguments():
    taken = described(client_for(TicketTools, viewer()), "find_tickets")["inputSchema"]
    assert taken["properties"] == {
        "price_min": {"type": "string"},
        "price_max": {"type": "string"},
        "number_of": {"type": "array", "items": {"type": "string"}, "maxItems": 100},
        "mine": {"type": "boolean"},
        "status": {
            "type": "array",
            "items": {
                "type": "string",
                "enum": ["open", "waiting", "closed"],
                "description": "open: Open, waiting: Waits for the customer, closed: Closed",
            },
            "maxItems": 1000,
        },
        "subject__icontains": {"type": "string"},
        "customer": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "integer"}, "maxItems": 1000},
        "is_public": {"type": "boolean"},
        "due__gte": {"type": "string", "format": "date"},
        "created__lt": {"type": "string", "format": "date-time"},
        "limit": {"type": "integer", "minimum": 1, "maximum": 50},
        "next": {"type": "string"},
        "count": {"type": "boolean"},
    }


def test_rows_are_found_as_the_filter_set_finds_them():
    user = viewer()
    client = client_for(TicketTools, user)
    bob = customer("Bob")
    one = ticket(1, customer=customer("Ada"), price=Decimal(5), assignee=user)
    two = ticket(2, customer=bob, status="closed", is_public=False, due="2026-01-01")
    red, blue = Tag.objects.create(name="red"), Tag.objects.create(name="blue")
    two.tags.set([red, blue])
    for arguments, expected in [
        ({}, [one, two]),
        ({"price_min": "4"}, [one]),
        ({"price_min": "4", "price_max": "4.5"}, []),
        ({"number_of": [two.pk, 10**6]}, [two]),
        ({"mine": True}, [one]),
        ({"mine": False}, [two]),
        ({"status": ["closed", "waiting"]}, [two]),
        ({"subject__icontains": "subject"}, [one, two]),
        ({"customer": bob.pk}, [two]),
        ({"tags": [red.pk, blue.pk]}, [two]),
        ({"is_public": False}, [two]),
        ({"is_public": True}, [one]),
        ({"due__gte": "2026-01-01"}, [two]),
        ({"created__lt": "2020-01-01T00:00:00Z"}, []),
    ]:
        assert ids(client, **arguments) == [each.pk for each in expected], arguments


def test_what_the_filter_set_refuses_is_told():
    client = client_for(TicketTools, viewer())
    client.tool("find_tickets", customer=10**6).assert_failed("customer: Select a valid choice.")
    client.tool("find_tickets", status=["gone"]).assert_failed("status.0: Input should be 'open'")
    client.tool("find_tickets", owner=1).assert_failed("owner: unknown argument")


def test_what_cannot_be_seen_is_no_filter():
    class Unnamed(django_filters.FilterSet):
        class Meta:
            model = Ticket
            fields = ["remark"]

    class Ordered(django_filters.FilterSet):
        by = django_filters.OrderingFilter(fields=["remark"])

    class Reserved(django_filters.FilterSet):
        search = django_filters.CharFilter(field_name="subject")

    for filter_set, said in [
        (Unnamed, "has 'remark', and fields has not"),
        (Ordered, "Name what they may be in order of in ordering_fields"),
        (Reserved, "is an argument of the tool already"),
        (User, "takes names, lookups by name, or a FilterSet"),
    ]:
        attributes = {"fields": ["id", "subject"], "filters": filter_set}
        with pytest.raises(RegistrationError, match=said):
            serve(type("Options", (ModelTools,), attributes))
    assert Customer.objects.count() == 0
