"""What is written is read where it is written, with all that belongs to it: a replica is behind."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django import forms
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import User
from django.db import connections, router
from django.db.models import Prefetch
from django.db.utils import load_backend

from django_mcp import MCPServer, ModelTools
from django_mcp.testing import MCPClient

from .desk.models import Comment, Company, Customer, Tag, Ticket
from .support import MODERN, client_for, counted, found, user_with

pytestmark = pytest.mark.django_db

COPIED = (User, Company, Customer, Tag, Ticket, Ticket.tags.through, Comment)


class ReadsBehind:
    """Reads rows of the desk from the replica."""

    def db_for_read(self, model, **hints):
        return "replica" if model._meta.app_label == "desk" else None

    def db_for_write(self, model, **hints):
        return "default"

    def allow_relation(self, one, other, **hints):
        return True


class ReadsBehindWithoutRelations:
    db_for_read, db_for_write = ReadsBehind.db_for_read, ReadsBehind.db_for_write


class CannotWriteCompanies(ReadsBehind):
    def db_for_write(self, model, **hints):
        if model is Company:
            raise RuntimeError("Companies are only read.")
        return "default"


class TicketForm(forms.ModelForm):
    class Meta:
        model = Ticket
        fields = ["number", "subject", "customer", "tags"]


class TicketTools(ModelTools):
    fields = ["id", "number", "subject", "customer", "customer__company", "tags", "heard", "red"]
    related = {"comments": ["text", "author"]}
    create = update = TicketForm

    def get_queryset(self, ctx):
        red = Prefetch("tags", queryset=Tag.objects.filter(name__startswith="red"), to_attr="reds")
        return super().get_queryset(ctx).prefetch_related(red, "comments__ticket__customer")

    def heard(self, row) -> str:
        return heard_of(row)

    def red(self, row) -> list[str]:
        return [each.name for each in row.reds]


def heard_of(row: Any) -> str:
    return ", ".join(f"{each.text} of {each.ticket.customer.name}" for each in row.comments.all())


class CommentInline(admin.TabularInline):
    model = Comment
    extra = 0


class TicketInline(admin.TabularInline):
    model = Ticket
    fields = ["number", "subject", "tags"]
    extra = 0


class TicketAdmin(admin.ModelAdmin):
    fields = ["number", "subject", "customer", "tags", "heard"]
    readonly_fields = ["heard"]
    inlines = [CommentInline]

    def get_queryset(self, request):
        return super().get_queryset(request).prefetch_related("comments__ticket__customer", "tags")

    def heard(self, row):
        return heard_of(row)


class CustomerAdmin(admin.ModelAdmin):
    fields = ["name", "company"]
    inlines = [TicketInline]


@pytest.fixture
def follow(tmp_path):
    """A replica, and how it catches up with what is written."""
    file = str(tmp_path / "replica.sqlite3")
    given = {"default": {}, "replica": {"ENGINE": "django.db.backends.sqlite3", "NAME": file}}
    replica = connections.configure_settings(given)["replica"]
    connection = load_backend(replica["ENGINE"]).DatabaseWrapper(replica, "replica")
    # Before it is one of the site's, which a test would have to name before it begins.
    connection.connect()
    connections.settings["replica"], connections["replica"] = replica, connection
    with connection.schema_editor() as editor:
        for model in apps.get_models():
            editor.create_model(model)

    def catch_up():
        for model in COPIED[::-1]:
            model._base_manager.using("replica")._raw_delete("replica")
        for model in COPIED:
            rows = list(model._base_manager.using("default"))
            model._base_manager.using("replica").bulk_create(rows)

    yield catch_up
    connection.close()
    del connections["replica"], connections.settings["replica"]


@pytest.fixture
def routed(settings):
    settings.DATABASE_ROUTERS = [f"{__name__}.ReadsBehind"]


def boss() -> Any:
    return user_with(username="boss", is_superuser=True, is_staff=True)


def of_model() -> MCPClient:
    return client_for(TicketTools, boss())


def of_admin(model: Any = Ticket, admin_class: Any = TicketAdmin) -> MCPClient:
    site = admin.AdminSite()
    for each in (Ticket, Customer, Tag):
        site.register(each, admin_class if each is model else None)
    server = MCPServer("desk")
    server.admin(site.get_model_admin(model), write=["create", "update"])
    return MCPClient(server, revision=MODERN).as_user(boss())


def of_site() -> MCPClient:
    site = admin.AdminSite()
    site.register(Ticket, TicketAdmin)
    site.register([Customer, Tag])
    server = MCPServer("desk")
    server.admin_site(site, models=["desk.Ticket"], write={"desk.Ticket": ["update"]})
    return MCPClient(server, revision=MODERN).as_user(boss())


every_kind = pytest.mark.parametrize("make", [of_model, of_admin], ids=["model", "admin"])


def a_ticket() -> Ticket:
    """A ticket of which the replica knows all as it was, and of which all has changed since."""
    one = Customer.objects.create(name="Ada", company=Company.objects.create(name="Engines"))
    row = Ticket.objects.create(number="T-1", subject="Old", customer=one)
    row.tags.add(Tag.objects.create(name="old"))
    Comment.objects.create(ticket=row, author=boss_or_new(), text="old")
    return row


def boss_or_new() -> Any:
    return User.objects.get_or_create(username="author")[0]


def change_all(row: Ticket) -> None:
    """Write what the replica does not know yet."""
    Customer.objects.using("default").update(name="Grace")
    Company.objects.using("default").update(name="Compilers")
    Comment.objects.using("default").update(text="new", internal=True)
    new = [Comment(ticket=row, author=boss_or_new(), text="newer")]
    Comment.objects.using("default").bulk_create(new)
    tag = Tag.objects.using("default").create(name="red")
    Ticket.tags.through.objects.using("default").all().delete()
    Ticket.tags.through.objects.using("default").create(ticket_id=row.pk, tag_id=tag.pk)


def tags_of(row: Any) -> list[str]:
    return sorted(Tag.objects.using("default").filter(tickets=row).values_list("name", flat=True))


def texts(rows: list[Any]) -> list[Any]:
    return [each["text"] for each in rows]


def assert_is_new(shown: dict[str, Any], make: Any) -> None:
    assert shown["customer"]["text"] == "Grace"
    assert texts(shown["tags"]) == ["red"]
    assert texts(shown["comments"]) == ["new", "newer"]
    assert shown["heard"] == "new of Grace, newer of Grace"
    if make is of_model:
        assert shown["customer__company"]["text"] == "Compilers"
        assert shown["red"] == ["red"]


@every_kind
def test_the_result_of_an_update_shows_what_belongs_to_the_row_as_it_is(make, follow, routed):
    row = a_ticket()
    follow()
    client = make()
    change_all(row)
    shown = found(client, "update_ticket", id=row.pk, subject="New")
    assert shown["subject"] == "New"
    assert_is_new(shown, make)


@every_kind
def test_what_is_not_sent_is_not_set_back(make, follow, routed):
    row = a_ticket()
    follow()
    client = make()
    change_all(row)
    found(client, "update_ticket", id=row.pk, subject="New")
    assert tags_of(row) == ["red"]


@every_kind
def test_the_version_of_a_result_is_good_for_the_next_update(make, follow, routed):
    row = a_ticket()
    follow()
    client = make()
    change_all(row)
    version = found(client, "update_ticket", id=row.pk, subject="New")["row_version"]
    shown = found(client, "update_ticket", id=row.pk, subject="Newer", row_version=version)
    follow()
    assert found(client, "get_ticket", id=row.pk) == shown


@every_kind
def test_an_update_notices_what_the_replica_does_not_know_yet(make, follow, routed):
    row = a_ticket()
    follow()
    client = make()
    read = found(client, "get_ticket", id=row.pk)
    assert texts(read["comments"]) == ["old"]
    Ticket.tags.through.objects.using("default").all().delete()
    again = client.tool("update_ticket", id=row.pk, subject="New", row_version=read["row_version"])
    again.assert_failed("has changed since it was read")


def test_an_update_notices_rows_of_inlines_that_the_replica_does_not_know_yet(follow, routed):
    row = a_ticket()
    follow()
    client = of_admin()
    version = found(client, "get_ticket", id=row.pk)["row_version"]
    Comment.objects.using("default").update(text="new")
    again = client.tool("update_ticket", id=row.pk, subject="New", row_version=version)
    again.assert_failed("has changed since it was read")


@every_kind
def test_the_result_of_an_addition_has_what_was_added(make, follow, routed):
    row = a_ticket()
    follow()
    client = make()
    Customer.objects.using("default").update(name="Grace")
    more: dict[str, Any] = {}
    if make is of_admin:
        more["comments"] = [{"text": "first", "author": boss_or_new().pk}]
    keys = [each.pk for each in Tag.objects.all()]
    shown = found(
        client,
        "create_ticket",
        number="T-2",
        subject="Added",
        customer=row.customer_id,
        tags=keys,
        **more,
    )
    assert (shown["customer"]["text"], texts(shown["tags"])) == ("Grace", ["old"])
    assert texts(shown["comments"]) == (["first"] if more else [])
    version = shown["row_version"]
    found(client, "update_ticket", id=shown["id"], subject="Changed", row_version=version)


def test_rows_of_inlines_keep_what_is_not_sent(follow, routed):
    row = a_ticket()
    follow()
    client = of_admin()
    change_all(row)
    old, newer = Comment.objects.using("default").order_by("pk")
    rows = [{"id": old.pk, "text": "changed"}, {"id": newer.pk, "text": "changed, too"}]
    shown = found(client, "update_ticket", id=row.pk, comments=rows)
    assert texts(shown["comments"]) == ["changed", "changed, too"]
    old.refresh_from_db(using="default")
    assert old.internal


def test_so_do_relations_to_many_of_rows_of_inlines(follow, routed):
    row = a_ticket()
    follow()
    client = of_admin(Customer, CustomerAdmin)
    change_all(row)
    tickets = [{"id": row.pk, "subject": "New"}]
    shown = found(client, "update_customer", id=row.customer_id, tickets=tickets)
    (ticket,) = shown["tickets"]
    assert (ticket["subject"], texts(ticket["tags"])) == ("New", ["red"])
    assert shown["company"]["text"] == "Compilers"
    assert tags_of(row) == ["red"]


def test_five_tools_for_many_models_do_the_same(follow, routed):
    row = a_ticket()
    follow()
    client = of_site()
    change_all(row)
    given: dict[str, Any] = {"model": "desk.Ticket", "do": "update", "ids": [row.pk]}
    shown = client.tool("change", **given, values={"subject": "New"}).assert_ok().text
    assert_is_new(json.loads(shown), of_admin)


@every_kind
def test_a_router_that_allows_no_relations_between_databases_does_not_hinder(
    make, follow, settings
):
    row = a_ticket()
    follow()
    client = make()
    settings.DATABASE_ROUTERS = [f"{__name__}.ReadsBehindWithoutRelations"]
    assert found(client, "update_ticket", id=row.pk, subject="New")["subject"] == "New"
    key = Tag.objects.get().pk
    shown = found(
        client, "create_ticket", number="T-2", subject="x", customer=row.customer_id, tags=[key]
    )
    assert texts(shown["tags"]) == ["old"]


def test_what_a_router_lets_nobody_write_is_read_where_it_says(follow, settings):
    row = a_ticket()
    follow()
    client = of_admin(Customer, CustomerAdmin)
    settings.DATABASE_ROUTERS = [f"{__name__}.CannotWriteCompanies"]
    Company.objects.using("default").update(name="Compilers")
    shown = found(client, "update_customer", id=row.customer_id, name="Grace")
    assert (shown["name"], shown["company"]["text"]) == ("Grace", "Engines")


@every_kind
def test_reading_alone_goes_where_the_router_says(make, follow, routed):
    row = a_ticket()
    follow()
    client = make()
    change_all(row)
    shown = found(client, "get_ticket", id=row.pk)
    assert (shown["customer"]["text"], texts(shown["tags"])) == ("Ada", ["old"])
    assert (texts(shown["comments"]), shown["heard"]) == (["old"], "old of Ada")


@every_kind
def test_a_router_costs_no_statement_more(make, settings):
    row = a_ticket()
    client = make()
    with counted() as without:
        found(client, "update_ticket", id=row.pk, subject="New")
    settings.DATABASE_ROUTERS = [f"{__name__}.WritesHere"]
    assert router.routers
    with counted() as with_one:
        found(client, "update_ticket", id=row.pk, subject="Newer")
    assert len(with_one) <= len(without)


class WritesHere:
    def db_for_write(self, model, **hints):
        return "default"
