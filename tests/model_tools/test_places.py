"""Models in several tables, and values that a database may refuse although they are of the type."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django import forms
from django.contrib import admin
from django.contrib.admin.models import DELETION, LogEntry
from django.db import models

from django_mcp import MCPServer, ModelTools, RegistrationError
from django_mcp.model_tools.toolset import SEVERAL
from django_mcp.server.fields.field_types import type_of
from django_mcp.testing import MCPClient

from .desk.models import Cafe, Note, Tag, Ticket
from .support import MODERN, client_for, counted, found, ids, serve, ticket, user_with, viewer, walk

pytestmark = pytest.mark.django_db


class CafeForm(forms.ModelForm):
    class Meta:
        model = Cafe
        fields = ["name", "stars", "opens", "lasts", "weight"]


class CafeTools(ModelTools):
    fields = ["place_ptr_id", "name", "stars", "opens", "lasts", "weight", "address"]
    filters = {each: ["exact"] for each in ("opens", "lasts", "weight", "address")}
    create = update = CafeForm
    delete = resources = True
    confirm = False


class CafeAdmin(admin.ModelAdmin):
    pass


def boss() -> Any:
    return user_with(username="boss", is_superuser=True, is_staff=True)


def of_model() -> MCPClient:
    return client_for(CafeTools, boss(), Cafe)


def of_admin() -> MCPClient:
    site = admin.AdminSite()
    site.register(Cafe, CafeAdmin)
    server = MCPServer("desk")
    server.admin(CafeAdmin, site=site, write=["update", "delete"], confirm=False)
    return MCPClient(server, revision=MODERN).as_user(boss())


@pytest.mark.parametrize(
    ("make", "key"), [(of_model, "place_ptr_id"), (of_admin, "place_ptr")], ids=["model", "admin"]
)
def test_rows_whose_key_is_that_of_another_table_are_named_by_it(make, key):
    one, other = Cafe.objects.create(name="One"), Cafe.objects.create(name="Other")
    client = make()
    assert found(client, "update_cafe", **{key: one.pk}, stars=3)["stars"] == 3
    assert found(client, "delete_cafes", ids=[one.pk]) == {"deleted": 1}
    assert list(Cafe.objects.all()) == [other]


def test_rows_whose_key_is_that_of_another_table_are_resources():
    one = Cafe.objects.create(name="One")
    client = of_model()
    assert [each["uri"] for each in client.list_resources()] == [f"cafe://{one.pk}"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("opens", "10:00:00Z"),
        ("opens", "10:00:00+05:00"),
        ("lasts", "P999999999D"),
        ("weight", "NaN"),
        ("weight", "Infinity"),
        ("address", "not one"),
        ("address", "fe80::1%eth0"),
    ],
)
def test_values_that_no_database_takes_are_refused_by_name(name, value):
    client = of_model()
    client.tool("find_cafes", **{name: value}).assert_failed(name)
    if name != "address":
        client.tool("create_cafe", name="One", **{name: value}).assert_failed(name)
    assert not Cafe.objects.exists()


def test_values_at_the_bounds_are_taken():
    client = of_model()
    values = {"opens": "23:59:59.999999", "lasts": "P100000000D", "weight": 1e300}
    row = found(client, "create_cafe", name="One", **values)
    assert row["opens"] == values["opens"]
    for name, value in values.items():
        assert len(found(client, "find_cafes", **{name: value})["items"]) == 1, name
    Cafe.objects.update(address="2001:db8::1")
    assert len(found(client, "find_cafes", address="2001:0DB8::1")["items"]) == 1


class ReadsElsewhere:
    """Sends whoever reads rows to a database that there is not."""

    def db_for_read(self, model, **hints):
        return "replica" if model is Cafe else None

    def db_for_write(self, model, **hints):
        return "default"


@pytest.mark.parametrize("make", [of_model, of_admin], ids=["model", "admin"])
def test_what_is_changed_is_read_where_it_is_written(make, settings):
    """A copy may be behind, and what is not sent would be set back."""
    one = Cafe.objects.create(name="One", stars=1)
    client = make()
    key = "place_ptr_id" if make is of_model else "place_ptr"
    settings.DATABASE_ROUTERS = [f"{__name__}.ReadsElsewhere"]
    found(client, "update_cafe", **{key: one.pk}, stars=3)
    settings.DATABASE_ROUTERS = []
    assert Cafe.objects.get().stars == 3


def test_a_row_is_added_where_the_rows_are_that_are_changed():
    used = []

    class Form(CafeForm):
        def save(self, commit=True):
            used.append(self.instance._state.db)
            return super().save(commit)

    class Tools(CafeTools):
        create = Form

        def get_queryset(self, ctx):
            return super().get_queryset(ctx).using("default")

    found(client_for(Tools, boss(), Cafe), "create_cafe", name="One")
    assert used == ["default"]


def test_pages_in_order_of_what_the_database_works_out():
    class Tools(CafeTools):
        fields = ["place_ptr_id", "gross"]
        filters = ()
        ordering_fields = ["gross"]

    keys = [Cafe.objects.create(name=f"{rate}", rate=rate).pk for rate in (1, 2, 2, 4)]
    client = client_for(Tools, boss(), Cafe)
    for ordering, wanted in (("gross", keys), ("-gross", keys[::-1])):
        rows = walk(client, "find_cafes", ordering=ordering, limit=1)
        assert [each["place_ptr_id"] for each in rows] == wanted


def test_a_row_that_a_join_gives_several_times_is_one():
    class TicketTools(ModelTools):
        fields = ["id"]

        def get_queryset(self, ctx):
            return super().get_queryset(ctx).filter(tags__name__startswith="red")

    one = ticket()
    one.tags.set(Tag.objects.create(name=name) for name in ("red", "reddish"))
    client = client_for(TicketTools, viewer(), Ticket)
    assert ids(client) == [one.pk]
    assert found(client, "get_ticket", id=one.pk) == {"id": one.pk}


def test_a_relation_to_rows_of_any_model_is_refused():
    class NoteTools(ModelTools):
        fields = ["id", "about"]

    with pytest.raises(RegistrationError, match="'about' is a GenericForeignKey"):
        serve(NoteTools, Note)


def test_the_log_of_many_rows_is_one_statement():
    keys = [Cafe.objects.create(name=f"{number}").pk for number in range(5)]
    client = of_model()
    with counted() as statements:
        found(client, "delete_cafes", ids=keys)
    assert sum("INSERT" in each and "django_admin_log" in each for each in statements) == 1
    assert LogEntry.objects.filter(action_flag=DELETION).count() == len(keys)


def test_choices_of_lists_are_none_that_a_schema_names():
    assert not type_of(models.JSONField(choices=[(["a", "b"], "Both")])).choices


@pytest.mark.parametrize("option", SEVERAL)
def test_one_name_where_there_may_be_several_is_not_taken_for_its_letters(option):
    """A secret whose name is within another one would be allowed with it."""
    options = type("Tools", (CafeTools,), {option: "password_hint"})
    said = re.escape(f'Tools: {option}= takes several, as in ["password_hint"].')
    with pytest.raises(RegistrationError, match=said):
        serve(options, Cafe)


@pytest.mark.parametrize("option", ["allow_secret", "confirm"])
def test_neither_is_it_of_an_admin(option):
    site = admin.AdminSite()
    site.register(Cafe, CafeAdmin)
    given: dict[str, Any] = {option: "password_hint"}
    said = re.escape(f'CafeAdmin: {option}= takes several, as in ["password_hint"].')
    with pytest.raises(RegistrationError, match=said):
        MCPServer("desk").admin(CafeAdmin, site=site, **given)
    with pytest.raises(RegistrationError, match=said):
        MCPServer("desk").admin_site(site, models=["desk.Cafe"], **given)


@pytest.mark.parametrize("option", ["scopes", "write_scopes"])
def test_neither_is_it_of_an_admin_site(option):
    site = admin.AdminSite()
    site.register(Cafe, CafeAdmin)
    said = re.escape(f'mcp.admin_site: {option}= takes several, as in ["desk"].')
    given: dict[str, Any] = {option: "desk"}
    with pytest.raises(RegistrationError, match=said):
        MCPServer("desk").admin_site(site, models=["desk.Cafe"], **given)
