"""``create`` and ``update``: a form says what is written, and nobody writes over another."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from django import forms
from django.contrib.admin.models import ADDITION, CHANGE, LogEntry
from django.contrib.auth.models import User

from django_mcp import ModelTools, RegistrationError
from django_mcp.testing import MCPClient

from .desk.models import Device, Tag, Ticket
from .support import (
    assert_fits,
    client_for,
    customer,
    described,
    found,
    nobody,
    serve,
    ticket,
    user_with,
)

pytestmark = pytest.mark.django_db


class TicketForm(forms.ModelForm):
    class Meta:
        model = Ticket
        fields = [
            "number", "subject", "body", "status", "priority", "customer", "assignee", "tags",
            "price", "is_public", "due", "created",
        ]  # fmt: skip
        help_texts = {"subject": "In a few words"}

    def clean(self):
        cleaned = super().clean()
        if cleaned.get("status") == "closed" and not cleaned.get("body"):
            raise forms.ValidationError("Say why before you close it.")
        return cleaned


class TicketTools(ModelTools):
    fields = [
        "id", "number", "subject", "status", "priority", "customer", "assignee", "tags", "price",
        "is_public", "due", "created",
    ]  # fmt: skip
    create = update = TicketForm


def writer(**more: Any) -> User:
    return user_with("view_ticket", "add_ticket", "change_ticket", **more)


def changed(client: MCPClient, row: Ticket, **arguments: Any) -> Ticket:
    client.tool("update_ticket", id=row.pk, **arguments).assert_ok()
    return Ticket.objects.get(pk=row.pk)


def test_a_choice_of_nothing_is_not_among_the_choices():
    class Form(forms.ModelForm):
        subject = forms.ChoiceField(choices=[("", "None"), ("a", "A"), ("b", "B")], required=False)

        class Meta:
            model = Ticket
            fields = ["subject"]

    class Chosen(ModelTools):
        fields = ["id"]
        update = Form

    client = client_for(Chosen, writer())
    properties = described(client, "update_ticket")["inputSchema"]["properties"]
    assert properties["subject"]["enum"] == ["a", "b"]


def test_a_row_is_added_as_the_form_has_it():
    user = writer()
    client = client_for(TicketTools, user)
    of, tag = customer(), Tag.objects.create(name="red")
    row = found(
        client,
        "create_ticket",
        number="T-9",
        subject="Broken",
        customer=of.pk,
        tags=[tag.pk],
        price="1.250",
        due="2026-12-24",
        is_public=False,
    )
    made = Ticket.objects.get()
    assert row["id"] == made.pk
    assert row["row_version"]
    assert_fits(client, "create_ticket", row)
    assert (made.number, made.subject, made.customer, made.price) == (
        "T-9", "Broken", of, Decimal("1.250"),
    )  # fmt: skip
    assert (made.is_public, list(made.tags.all()), made.status) == (False, [tag], "open")
    assert found(client, "get_ticket", id=made.pk) == row
    (entry,) = LogEntry.objects.all()
    assert (entry.user, entry.action_flag, entry.object_id) == (user, ADDITION, str(made.pk))
    assert entry.get_change_message() == "Added. (via MCP, client django_mcp.testing)"


def test_what_a_model_has_a_default_for_need_not_be_sent():
    client = client_for(TicketTools, writer())
    taken = described(client, "create_ticket")["inputSchema"]
    assert taken["required"] == ["number", "subject", "customer"]
    assert taken["properties"]["subject"] == {"type": "string", "description": "In a few words"}
    assert taken["properties"]["status"]["enum"] == ["open", "waiting", "closed"]
    assert taken["properties"]["tags"]["items"] == {"type": "integer"}
    found(client, "create_ticket", number="1", subject="s", customer=customer().pk)
    made = Ticket.objects.get()
    # A browser sends nothing for a box that is not ticked; here nothing is the default.
    assert (made.is_public, made.priority, made.status) == (True, 1, "open")


def test_errors_are_told_field_by_field():
    client = client_for(TicketTools, writer())
    one = ticket()
    answer = client.tool("create_ticket", number="T-1", subject="x" * 101, customer=10**6)
    answer.assert_failed("number: Ticket with this Number already exists.")
    answer.assert_contains("subject: Ensure this value has at most 100 characters")
    answer.assert_contains("customer: Select a valid choice.")
    client.tool("update_ticket", id=one.pk, status="closed").assert_failed(
        "Say why before you close it."
    )
    client.tool("update_ticket", id=one.pk, status="gone").assert_failed("status: Input should be")
    client.tool("update_ticket", id=one.pk, remark="x").assert_failed("remark: unknown argument")
    assert Ticket.objects.get().status == "open"
    assert not LogEntry.objects.exists()


def test_what_is_not_sent_keeps_its_value_exactly():
    client = client_for(TicketTools, writer())
    red, blue = Tag.objects.create(name="red"), Tag.objects.create(name="blue")
    created = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
    one = ticket(
        is_public=False, created=created, price=Decimal("1.005"), due="2026-02-03", priority=2,
        assignee=User.objects.create(username="agent"), remark="not in the form",
    )  # fmt: skip
    one.tags.set([red, blue])
    before = Ticket.objects.filter(pk=one.pk).values(
        "is_public", "created", "price", "due", "priority", "assignee", "remark", "customer", "body"
    )[0]
    after = changed(client, one, subject="New")
    assert after.subject == "New"
    assert Ticket.objects.filter(pk=one.pk).values(*before)[0] == before
    assert set(after.tags.all()) == {red, blue}
    (entry,) = LogEntry.objects.all()
    assert (entry.action_flag, entry.get_change_message()) == (
        CHANGE, "Changed Subject. (via MCP, client django_mcp.testing)",
    )  # fmt: skip


def test_what_is_sent_is_what_changes():
    client = client_for(TicketTools, writer())
    red, blue = Tag.objects.create(name="red"), Tag.objects.create(name="blue")
    one = ticket(is_public=True)
    one.tags.set([red])
    assert changed(client, one, is_public=False).is_public is False
    assert changed(client, one, is_public=True).is_public is True
    assert list(changed(client, one, tags=[blue.pk]).tags.all()) == [blue]
    assert changed(client, one, price="0.5").price == Decimal("0.500")
    moment = "2026-01-02T03:04:05.678901+00:00"
    assert changed(client, one, created=moment).created.isoformat() == moment
    other = customer("Bob")
    assert changed(client, one, customer=other.pk).customer == other


def test_to_empty_a_field_takes_a_word():
    """Some clients send null, "" or [] for all that their model leaves out."""
    client = client_for(TicketTools, writer())
    agent, red = User.objects.create(username="agent"), Tag.objects.create(name="red")
    one = ticket(assignee=agent, body="Text", due="2026-01-01")
    one.tags.set([red])
    nothing = {"assignee": None, "body": "", "due": "", "tags": [], "price": "null"}
    kept = changed(client, one, subject="New", **nothing)
    assert (kept.assignee, kept.body, str(kept.due)) == (agent, "Text", "2026-01-01")
    assert list(kept.tags.all()) == [red]
    client.tool("update_ticket", id=one.pk, **nothing).assert_failed("Say what is to be changed")
    empty = changed(client, one, clear=["assignee", "body", "due", "tags"])
    assert (empty.assignee, empty.body, empty.due) == (None, "", None)
    assert not empty.tags.exists()
    client.tool("update_ticket", id=one.pk, clear=["subject"]).assert_failed("clear.0: Input")
    client.tool("update_ticket", id=one.pk, clear=["body"], body="x").assert_failed("not both")


def test_a_stale_update_is_refused():
    client = client_for(TicketTools, writer())
    one = ticket()
    read = found(client, "get_ticket", id=one.pk)["row_version"]
    for change in ({"subject": "Other"}, {"body": "Other"}, {"status": "waiting"}):
        Ticket.objects.filter(pk=one.pk).update(**change)  # which sets no time
        answer = client.tool("update_ticket", id=one.pk, subject="Mine", row_version=read)
        answer.assert_failed("has changed since it was read, so nothing was written")
        read = found(client, "get_ticket", id=one.pk)["row_version"]
    one.tags.add(Tag.objects.create(name="red"))
    client.tool("update_ticket", id=one.pk, subject="Mine", row_version=read).assert_failed()
    assert Ticket.objects.get().subject == "Other"
    read = found(client, "get_ticket", id=one.pk)["row_version"]
    Ticket.objects.filter(pk=one.pk).update(remark="neither shown nor in the form")
    row = found(client, "update_ticket", id=one.pk, subject="Mine", row_version=read)
    assert row["subject"] == "Mine"
    again = found(client, "update_ticket", id=one.pk, body="B", row_version=row["row_version"])
    assert again["row_version"] != row["row_version"]
    client.tool("update_ticket", id=one.pk, body="C", row_version="").assert_failed("has changed")


def test_several_are_changed_alike_or_none():
    class Bulk(TicketTools):
        bulk_update = True

    client = client_for(Bulk, writer())
    one, two, three = ticket(1, body="x"), ticket(2), ticket(3, body="x")
    every = [one.pk, two.pk, three.pk]
    answer = client.tool("update_tickets", ids=every, status="closed")
    answer.assert_failed("T-2 Subject 2: Say why before you close it.")
    assert not Ticket.objects.filter(status="closed").exists()
    assert not LogEntry.objects.exists()
    client.tool("update_tickets", ids=[*every, 10**6], priority=2).assert_failed(
        "No Ticket matches the given query: 1000000"
    )
    assert not Ticket.objects.filter(priority=2).exists()
    assert found(client, "update_tickets", ids=every, priority=2) == {"changed": 3}
    assert Ticket.objects.filter(priority=2).count() == 3
    assert LogEntry.objects.count() == 3
    client.tool("update_tickets", ids=list(range(51)), priority=2).assert_failed("at most 50")
    client.tool("update_tickets", ids=[], priority=2).assert_failed("at least 1")


def test_rows_of_others_are_not_there_to_be_changed():
    class Mine(TicketTools):
        bulk_update = True

        def get_queryset(self, ctx):
            return super().get_queryset(ctx).filter(watchers=ctx.user)

    user = writer()
    client = client_for(Mine, user)
    one = ticket()
    for name, arguments in (
        ("update_ticket", {"id": one.pk}),
        ("update_tickets", {"ids": [one.pk]}),
    ):
        answer = client.tool(name, **arguments, subject="Mine")
        answer.assert_failed("No Ticket matches the given query.")
    assert Ticket.objects.get().subject == "Subject 1"
    one.watchers.add(user)
    assert changed(client, one, subject="Mine").subject == "Mine"


def test_what_is_written_out_of_sight_is_not_shown():
    class Public(TicketTools):
        def get_queryset(self, ctx):
            return super().get_queryset(ctx).filter(is_public=True)

    client = client_for(Public, writer())
    one = ticket()
    assert found(client, "update_ticket", id=one.pk, is_public=False) == {}
    adder = client_for(TicketTools, user_with("add_ticket"))
    assert found(adder, "create_ticket", number="2", subject="s", customer=one.customer_id) == {}
    assert Ticket.objects.count() == 2


def test_permissions_for_a_row_hide_and_refuse():
    class Own(TicketTools):
        def has_change_permission(self, user, obj=None):
            return obj is None or obj.assignee == user

    user = user_with("view_ticket")
    client = client_for(Own, user)
    one = ticket()
    answer = client.tool("update_ticket", id=one.pk, subject="Mine")
    answer.assert_failed("You may not do this with T-1 Subject 1.")
    one.assignee = user
    one.save()
    assert changed(client, one, subject="Mine").subject == "Mine"


def test_permissions_of_a_backend_for_single_rows_count(settings):
    settings.AUTHENTICATION_BACKENDS = [f"{__name__}.RowBackend"]

    class Rows(TicketTools):
        object_permissions = True

    client = client_for(Rows, user_with(username="agent"))
    one, two, three = ticket(1, remark="view"), ticket(2, remark="change"), ticket(3)
    assert [each["id"] for each in found(client)["items"]] == [one.pk, two.pk]
    client.tool("get_ticket", id=three.pk).assert_failed("No Ticket matches the given query.")
    client.tool("update_ticket", id=three.pk, subject="x").assert_failed("No Ticket matches")
    client.tool("update_ticket", id=one.pk, subject="x").assert_failed("You may not do this")
    assert changed(client, two, subject="x").subject == "x"
    client_for(Rows, nobody()).tool("find_tickets").assert_error(-32602)
    plain = client_for(TicketTools, User.objects.get(username="agent"))
    plain.tool("find_tickets").assert_error(-32602)


class RowBackend:
    """Permissions are what a row's remark says."""

    def authenticate(self, request):
        return None

    def has_perm(self, user, permission, obj=None):
        return obj is not None and permission == f"desk.{obj.remark}_ticket"


def test_a_form_knows_its_caller():
    class Form(forms.ModelForm):
        class Meta:
            model = Ticket
            fields = ["subject", "priority", "status"]

        def __init__(self, *args, user, **kwargs):
            super().__init__(*args, **kwargs)
            if not user.is_staff:
                del self.fields["priority"]
                self.fields["status"].disabled = True

        def save(self, commit=True):
            self.instance.remark = "saved by the form"
            return super().save(commit)

    class Tools(ModelTools):
        fields = ["id", "subject"]
        update = Form

        def get_form_kwargs(self, ctx):
            return {"user": ctx.user}

    one = ticket()
    client = client_for(Tools, writer())
    client.tool("update_ticket", id=one.pk, priority=2).assert_failed("priority: You may not set")
    client.tool("update_ticket", id=one.pk, status="closed").assert_failed(
        "status: You may not set"
    )
    assert changed(client, one, subject="New").remark == "saved by the form"
    staff = client_for(Tools, writer(is_staff=True, username="staff"))
    assert changed(staff, one, status="closed", priority=2).status == "closed"


def test_no_log_without_a_user():
    class Open(TicketTools):
        def has_change_permission(self, user, obj=None):
            return True

        def has_view_permission(self, user, obj=None):
            return True

    one = ticket()
    assert changed(client_for(Open, nobody()), one, subject="New").subject == "New"
    assert not LogEntry.objects.exists()


def form_of(**fields: Any) -> Any:
    meta = type("Meta", (), {"model": Ticket, "fields": ["subject"]})
    return forms.models.ModelFormMetaclass("Form", (forms.ModelForm,), {"Meta": meta, **fields})


@pytest.mark.parametrize(
    ("form", "said"),
    [
        (forms.Form, "update takes a ModelForm"),
        (forms.modelform_factory(Device, fields=["name"]), "is a form for Device, not for Ticket"),
        (form_of(picture=forms.FileField()), "is a FileField, which is no single value of JSON"),
        (form_of(both=forms.MultiValueField(fields=())), "is a MultiValueField, which is no"),
        (form_of(word=forms.CharField(widget=forms.PasswordInput)), "is a password"),
        (form_of(row_version=forms.CharField()), "which is an argument of the tool already"),
    ],
)
def test_forms_that_no_tool_can_fill_in_are_refused(form, said):
    attributes = {"fields": ["id", "subject"], "update": form}
    with pytest.raises(RegistrationError, match=said):
        serve(type("Options", (ModelTools,), attributes))


PEOPLE = {
    "anonymous": [],
    "none": [],
    "view_ticket": ["find_tickets", "get_ticket"],
    "add_ticket": ["create_ticket"],
    "change_ticket": ["find_tickets", "get_ticket", "update_ticket"],
}


@pytest.mark.parametrize("who", PEOPLE)
def test_who_may_write_what(who):
    one = ticket()
    user = nobody() if who == "anonymous" else user_with(*([] if who == "none" else [who]))
    client = client_for(TicketTools, user)
    assert sorted(tool["name"] for tool in client.list_tools()) == sorted(PEOPLE[who])
    for name, arguments in {
        "create_ticket": {"number": "N", "subject": "s", "customer": one.customer_id},
        "update_ticket": {"id": one.pk, "subject": "s"},
    }.items():
        answer = client.tool(name, **arguments)
        if name in PEOPLE[who]:
            answer.assert_ok()
        else:
            answer.assert_error(-32602, f"Unknown tool: {name}")


def test_credentials_for_reading_write_nothing():
    class Scoped(TicketTools):
        scopes = ["desk"]
        write_scopes = ["desk:write"]

    one, server = ticket(), serve(Scoped)
    reading = MCPClient(server).as_user(writer(), scopes=["desk"])
    reading.tool("find_tickets").assert_ok()
    reading.tool("update_ticket", id=one.pk, subject="s").assert_error(-31403, "desk:write")
    read_only = MCPClient(serve(TicketTools)).as_user(writer(username="w"), read_only=True)
    read_only.tool("get_ticket", id=one.pk).assert_ok()
    read_only.tool("update_ticket", id=one.pk, subject="s").assert_error(-31403)
