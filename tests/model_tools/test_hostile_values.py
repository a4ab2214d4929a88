"""Values that some database does not take: an error that says so, before any database is asked."""

from __future__ import annotations

import django_filters
import pytest
from django import forms

from django_mcp import ModelTools

from .desk.models import Device
from .support import client_for, found, user_with

pytestmark = pytest.mark.django_db


class DeviceForm(forms.ModelForm):
    class Meta:
        model = Device
        fields = ["hour", "lasted", "seen"]


class DeviceTools(ModelTools):
    fields = ["id", "rank", "weight", "length", "seen", "day", "hour", "lasted"]
    filters = {
        "length": ["exact", "in"],
        "seen": ["exact", "year"],
        "day": ["year"],
        "hour": ["exact", "in"],
        "lasted": ["exact", "lt"],
    }
    create = update = DeviceForm


class DeviceFilter(django_filters.FilterSet):
    class Meta:
        model = Device
        fields = {"rank": ["lt"], "weight": ["exact"], "lasted": ["exact"], "hour": ["exact"]}


class FilteredTools(DeviceTools):
    filters = DeviceFilter


NO_MOMENT = "Value error, no moment that a database knows"
NO_SPAN = "Value error, an integer of 64 bits"
NO_ZONE = "Value error, a time without a zone"
FEWER_DIGITS = "Value error, a number of fewer digits"


def client(tools=DeviceTools):
    return client_for(tools, user_with("view_device", "add_device", "change_device"), Device)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("length", "1e999999999", FEWER_DIGITS),
        ("length__in", ["-1e999999999"], FEWER_DIGITS),
        ("seen", "2026-01-01T00:00:00+23:59", NO_MOMENT),
        ("seen", "2026-01-01T00:00:00-16:00", NO_MOMENT),
        ("seen__year", 9999, NO_MOMENT),
        ("hour", "12:00:00Z", NO_ZONE),
        ("hour__in", ["12:00:00+05:00"], NO_ZONE),
        ("lasted", "P106751992D", NO_SPAN),
        ("lasted__lt", "-P999999999D", NO_SPAN),
    ],
)
def test_no_database_is_asked_for_what_it_cannot_know(name, value, said):
    client().tool("find_devices", **{name: value}).assert_failed(said)


def test_the_ends_of_what_databases_know_are_found():
    device = client()
    assert found(device, "find_devices", lasted__lt="P106751991D") == {"items": []}
    assert found(device, "find_devices", seen="2026-01-01T00:00:00-15:59") == {"items": []}
    for year in (1, 9999):
        assert found(device, "find_devices", day__year=year) == {"items": []}


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        # An integer of so many digits would take minutes to be made, and no finite float is it.
        ("rank__lt", "-1e99999999", FEWER_DIGITS),
        ("weight", "-1e9999", FEWER_DIGITS),
        ("lasted", "P999999999D", NO_SPAN),
        ("hour", "12:00:00Z", NO_ZONE),
    ],
)
def test_nor_is_it_by_a_filter_set(name, value, said):
    client(FilteredTools).tool("find_devices", **{name: value}).assert_failed(said)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("hour", "12:00:00Z", NO_ZONE),
        ("lasted", "P999999999D", NO_SPAN),
        ("seen", "2026-01-01T00:00:00+23:59", NO_MOMENT),
    ],
)
def test_nor_is_it_to_keep_it(name, value, said):
    device = Device.objects.create()
    client().tool("update_device", id=str(device.pk), **{name: value}).assert_failed(said)
