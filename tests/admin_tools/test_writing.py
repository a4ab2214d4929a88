"""``create``, ``update`` and ``delete``: the admin's forms, formsets, methods and log."""

from __future__ import annotations

import re

import pytest
from django import forms
from django.contrib import admin
from django.contrib.admin.models import ADDITION, CHANGE, DELETION, LogEntry

from django_mcp import MCPServer, RegistrationError
from django_mcp.testing import DECLINE, MCPClient
from tests.model_tools.desk.models import Comment, Customer, Device, Invoice, Tag, Ticket
from tests.model_tools.support import MODERN, customer, described, found, ticket, user_with

from .support import STAFF, CommentInline, OwnAdmin, PlainAdmin, boss, client_for, serve, staff

pytestmark = pytest.mark.django_db
VIA = "(via MCP, client django_mcp.testing)"
ALL = ["create", "update", "delete"]
INLINE = ("view_comment", "add_comment", "change_comment", "delete_comment")


def names(client):
    return [each["name"] for each in client.list_tools()]


def logged():
    entry = LogEntry.objects.latest("pk")
    return entry.action_flag, entry.change_message, entry.user.username


def test_read_only_unless_said_otherwise():
    assert names(client_for(PlainAdmin, boss())) == ["find_tickets", "get_ticket"]
    assert len(names(client_for(PlainAdmin, boss(), write=ALL))) == 5


def test_what_is_not_sent_stays_as_it_is():
    one = ticket(body="Long", secret_note="hush", price="1.500", is_public=True)
    one.tags.add(Tag.objects.create(name="red"))
    client = client_for(PlainAdmin, boss(), write=["update"])
    before = found(client, "get_ticket", id=one.pk)
    row = found(client, "update_ticket", id=one.pk, subject="New", created="2026-01-02T03:04:05Z")
    assert row["subject"] == "New"
    assert row["created"].startswith("2026-01-02T03:04:05")
    changing = ("subject", "shout", "created", "updated", "row_version")
    assert {k: v for k, v in row.items() if k not in changing} == {
        k: v for k, v in before.items() if k not in changing
    }
    assert Ticket.objects.get().secret_note == "hush"
    assert logged() == (CHANGE, f"Changed Subject and Created. {VIA}", "boss")
    found(client, "update_ticket", id=one.pk, clear=["price", "tags"])
    assert (Ticket.objects.get().price, Ticket.objects.get().tags.count()) == (None, 0)


def test_secrets_and_what_is_read_only_cannot_be_written():
    one = ticket()
    client = client_for(PlainAdmin, boss(), write=ALL)
    for tool, key in (("update_ticket", {"id": one.pk}), ("create_ticket", {})):
        asked = described(client, tool)["inputSchema"]["properties"]
        assert not {"secret_note", "vault", "updated", "shout"} & asked.keys()
        client.tool(tool, **key, vault="x").assert_failed("vault: unknown argument")
    assert "Control" not in str(asked["tags"])


def test_errors_are_said_field_by_field():
    one = ticket()
    client = client_for(OwnAdmin, boss(), write=["update"])
    answer = client.tool("update_ticket", id=one.pk, subject="bad", number="x" * 21, customer=99)
    answer.assert_failed("subject: No such subject.")
    answer.assert_contains("number: Ensure this value has at most 20 characters")
    answer.assert_contains("customer: Select a valid choice")
    assert Ticket.objects.get().subject == one.subject


def test_the_methods_of_the_admin_are_called_as_its_page_calls_them():
    one, user = ticket(assignee=boss()), boss()
    client = client_for(OwnAdmin, user, write=ALL)
    OwnAdmin.said.clear()
    found(client, "update_ticket", id=one.pk, subject="New", note="because")
    assert OwnAdmin.said == [
        ("save_form", "POST", True),
        ("save_model", "New", True),
        ("save_related", 0, True),
    ]
    assert Ticket.objects.get().body == "by boss"
    assert logged() == (CHANGE, f"own words, because {VIA}", "boss")
    OwnAdmin.said.clear()
    made = found(client, "create_ticket", number="N", customer=one.customer_id)
    assert made["subject"] == "From boss", "from get_changeform_initial_data()"
    assert [each[0] for each in OwnAdmin.said] == ["save_form", "save_model", "save_related"]
    assert logged()[:2] == (ADDITION, f"own words,  {VIA}")


def test_a_form_takes_away_what_a_caller_may_not_write():
    sam = staff(*STAFF, username="sam")
    one = ticket(assignee=sam)
    client = client_for(OwnAdmin, sam, write=["update"])
    client.tool("update_ticket", id=one.pk, remark="x").assert_failed("remark: You may not set")
    found(client, "update_ticket", id=one.pk, subject="New")
    everything = client_for(OwnAdmin, boss(), write=["update"])
    assert found(everything, "update_ticket", id=one.pk, remark="x")["remark"] == "x"


def test_nobody_overwrites_another():
    one = ticket()
    client = client_for(PlainAdmin, boss(), write=["update"])
    version = found(client, "get_ticket", id=one.pk)["row_version"]
    Ticket.objects.update(subject="Meanwhile")
    stale = client.tool("update_ticket", id=one.pk, remark="x", row_version=version)
    stale.assert_failed("has changed since it was read, so nothing was written")
    version = found(client, "get_ticket", id=one.pk)["row_version"]
    row = found(client, "update_ticket", id=one.pk, remark="x", row_version=version)
    Comment.objects.create(ticket=one, author=boss(), text="And a row of an inline")
    stale = client.tool("update_ticket", id=one.pk, remark="y", row_version=row["row_version"])
    stale.assert_failed("has changed since it was read")
    assert Ticket.objects.get().remark == "x"


def test_rows_of_inlines_are_added_changed_and_deleted():
    user = staff(*STAFF, *INLINE)
    one, other = ticket(1), ticket(2)
    kept, changed, gone = (
        Comment.objects.create(ticket=one, author=user, text=text, internal=True)
        for text in ("kept", "changed", "gone")
    )
    foreign = Comment.objects.create(ticket=other, author=user, text="foreign")
    client = client_for(PlainAdmin, user, write=["update", "create"])
    rows = [
        {"id": changed.pk, "text": "Changed"},
        {"author": user.pk, "text": "Added"},
        {"id": gone.pk, "delete": True},
    ]
    row = found(client, "update_ticket", id=one.pk, comments=rows)
    assert [each["text"] for each in row["comments"]] == ["kept", "Changed", "Added"]
    changed.refresh_from_db()
    assert (changed.internal, changed.author) == (True, user), "what is not sent stays"
    message = logged()[1]
    assert message == (
        f"Added comment “Added”. Changed Text for comment “Changed”. Deleted comment “gone”. {VIA}"
    )
    wrong = [{"id": foreign.pk, "text": "Taken"}]
    client.tool("update_ticket", id=one.pk, comments=wrong).assert_failed(
        f"comments[0]: There is no row {foreign.pk} here."
    )
    made = found(
        client,
        "create_ticket",
        number="N",
        subject="s",
        customer=one.customer_id,
        comments=[{"author": user.pk, "text": "First"}],
    )
    assert [each["text"] for each in made["comments"]] == ["First"]
    assert kept.text == "kept"


def test_a_row_of_an_inline_neither_takes_nor_shows_the_row_to_which_it_belongs():
    user = staff(*STAFF, *INLINE)
    one, other = ticket(1), ticket(2)
    Comment.objects.create(ticket=one, author=user, text="x")
    client = client_for(PlainAdmin, user, write=["update"])
    tools = {each["name"]: each for each in client.list_tools()}
    taken = tools["update_ticket"]["inputSchema"]["properties"]["comments"]["items"]
    assert taken == {
        "type": "object",
        "properties": {
            "author": {"type": "integer"},
            "text": {"type": "string"},
            "internal": {"type": "boolean"},
            "id": {"type": "integer"},
            "delete": {"type": "boolean"},
        },
        "additionalProperties": False,
    }
    (row,) = found(client, "get_ticket", id=one.pk)["comments"]
    shown = tools["get_ticket"]["outputSchema"]["properties"]["comments"]["items"]["properties"]
    assert row.keys() == shown.keys() == {"id", "author", "text", "internal"}
    answer = client.tool(
        "update_ticket", id=one.pk, comments=[{"id": row["id"], "ticket": other.pk}]
    )
    answer.assert_failed("comments.0.ticket: Extra inputs are not permitted")
    # Some clients send null for all that is left out.
    nulls = {"id": row["id"], "text": "y", "internal": None, "delete": None}
    client.tool("update_ticket", id=one.pk, comments=[nulls]).assert_ok()


def test_errors_of_formsets_name_the_row_and_the_field():
    user = boss()
    one = ticket()
    first = Comment.objects.create(ticket=one, author=user, text="first")

    class Formset(forms.models.BaseInlineFormSet):
        def clean(self):
            texts = [form.cleaned_data.get("text") for form in self.forms]
            if len(texts) != len(set(texts)):
                raise forms.ValidationError("Two say the same.")

    class Checked(CommentInline):
        formset = Formset

    class Checking(PlainAdmin):
        inlines = [Checked]

    client = client_for(Checking, user, write=["update"])

    def refused(*rows):
        answer = client.tool("update_ticket", id=one.pk, subject="New", comments=list(rows))
        assert Ticket.objects.get().subject == one.subject
        assert Comment.objects.count() == 1
        return answer.assert_failed()

    refused({"author": 99, "text": "x"}).assert_contains("comments[0].author: Select a valid")
    refused({"author": user.pk}).assert_contains("comments[0].text: This field is required.")
    refused({"id": first.pk, "text": "a"}, {"text": "b"}).assert_contains("comments[1].author:")
    # The row that was not sent counts as well.
    refused({"author": user.pk, "text": "first"}).assert_contains("comments: Two say the same.")
    refused({"internal": False}).assert_contains("comments[0].author: This field is required.")
    refused({"author": user.pk, "text": "x", "ticket": 3}).assert_contains("ticket")
    refused({"delete": True}).assert_contains("comments[0]: You may not delete this.")
    # Alike is not the same.
    unknown = {"author": 99, "text": "x"}
    refused(unknown, unknown).assert_contains("comments[1].author: Select a valid")
    refused({}).assert_contains("comments[0].author: This field is required.")


@pytest.mark.parametrize("kind", ["add", "change", "delete"])
def test_what_an_inline_does_not_allow_is_refused_and_not_left_undone(kind):
    user = staff(*STAFF, *(each for each in INLINE if not each.startswith(kind)))
    one = ticket()
    comment = Comment.objects.create(ticket=one, author=user, text="as it was")
    rows = {
        "add": {"author": user.pk, "text": "x"},
        "change": {"id": comment.pk, "text": "x"},
        "delete": {"id": comment.pk, "delete": True},
    }
    client = client_for(PlainAdmin, user, write=["update"])
    answer = client.tool("update_ticket", id=one.pk, subject="New", comments=[rows[kind]])
    answer.assert_failed(f"comments[0]: You may not {kind} this.")
    assert [each.text for each in Comment.objects.all()] == ["as it was"]
    assert Ticket.objects.get().subject == one.subject


def test_a_row_of_an_inline_is_given_once():
    user, one = boss(), ticket()
    comment = Comment.objects.create(ticket=one, author=user, text="as it was")
    client = client_for(PlainAdmin, user, write=["update"])
    rows = [{"id": comment.pk, "text": "first"}, {"id": comment.pk, "text": "second"}]
    answer = client.tool("update_ticket", id=one.pk, comments=rows)
    answer.assert_failed(f"comments[1]: The row {comment.pk} is named twice.")
    assert Comment.objects.get().text == "as it was"


class PlacedForm(forms.ModelForm):
    class Meta:
        widgets = {"remark": forms.HiddenInput(), "priority": forms.HiddenInput()}


class PlacedInline(admin.TabularInline):
    """As those whose rows are dragged into an order, which a hidden field has."""

    model = Ticket
    form = PlacedForm
    fields = ["number", "subject", "remark", "priority"]


class PlacedAdmin(admin.ModelAdmin):
    inlines = [PlacedInline]
    fields = ["name"]


def test_what_rows_of_inlines_have_hidden_stays():
    of = customer()
    one, other = (ticket(number, remark=f"{number}.", priority=2) for number in (1, 2))
    site = admin.AdminSite("placed")
    site.register(Customer, PlacedAdmin)
    server = MCPServer("desk")
    server.admin(site.get_model_admin(Customer), write=["update"])
    permissions = ("view_customer", "change_customer", "change_ticket", "add_ticket")
    user = user_with(*permissions, is_staff=True)
    rows = [{"id": one.pk, "subject": "New"}, {"number": "T-3", "subject": "Third"}]
    client = MCPClient(server, revision=MODERN).as_user(user)
    client.tool("update_customer", id=of.pk, tickets=rows).assert_ok()
    kept = Ticket.objects.order_by("number").values_list("subject", "remark", "priority")
    assert [*kept] == [("New", "1.", 2), (other.subject, "2.", 2), ("Third", "", 1)]
    assert not Ticket.objects.exclude(customer=of)


def test_inlines_that_a_caller_does_not_see():
    one = ticket()
    Comment.objects.create(ticket=one, author=boss(), text="internal")
    user = staff(*STAFF)
    client = client_for(PlainAdmin, user, write=["update"])
    assert "comments" not in found(client, "get_ticket", id=one.pk)
    answer = client.tool("update_ticket", id=one.pk, comments=[{"text": "x"}])
    answer.assert_failed("comments: You may not set this.")


def test_deletions_are_confirmed_and_show_what_goes_along():
    user = boss()
    one, two = ticket(1), ticket(2)
    Comment.objects.create(ticket=one, author=user, text="x")
    client = client_for(PlainAdmin, user, write=["delete"], answers=[DECLINE, None])
    client.tool("delete_tickets", ids=[one.pk]).assert_failed("The user has declined")
    assert client.asked[0].message == (
        "Delete 1 ticket: T-1 Subject 1? With that would go: comments (1)."
    )
    client.tool("delete_tickets", ids=[one.pk]).assert_structured({"deleted": 1})
    assert logged() == (DELETION, f"Deleted. {VIA}", "boss")
    client = client_for(PlainAdmin, user, actions=["delete_selected"])
    said = client.tool("delete_tickets", ids=[two.pk]).assert_failed("Nothing has been done yet")
    word = re.search(r'confirm="(\w+)"', said.text)
    assert word is not None
    Comment.objects.create(ticket=two, author=user, text="meanwhile")
    client.tool("delete_tickets", ids=[two.pk], confirm=word[1]).assert_failed("comments (1)")
    assert Ticket.objects.get() == two


def answer_while_somebody_comments(asked):
    Comment.objects.create(ticket=Ticket.objects.get(), author=boss(), text="wait")


def test_what_has_changed_while_a_person_thinks_is_not_deleted():
    one = ticket()
    options = {"answers": answer_while_somebody_comments, "revision": "2025-11-25"}
    client = client_for(PlainAdmin, boss(), write=["delete"], **options)
    client.tool("delete_tickets", ids=[one.pk]).assert_failed("has changed meanwhile")
    assert Ticket.objects.get() == one


def test_deletions_are_the_admins_own():
    rows = [ticket(number) for number in range(4)]
    OwnAdmin.said.clear()
    client = client_for(OwnAdmin, boss(), write=["delete"], confirm=False)
    found(client, "delete_tickets", ids=[rows[0].pk])
    assert OwnAdmin.said == [("delete_model", rows[0].pk)]
    found(client, "delete_tickets", ids=[rows[1].pk, rows[2].pk])
    assert len(OwnAdmin.said) == 1, "several are deleted as by the action"
    sam = staff(*STAFF, username="sam")
    Ticket.objects.create(number="T-9", subject="s", customer=customer(), assignee=sam)
    Ticket.objects.filter(pk=rows[3].pk).update(assignee=sam)
    keys = sorted(Ticket.objects.values_list("pk", flat=True))
    found(client_for(OwnAdmin, sam, write=["delete"], confirm=False), "delete_tickets", ids=keys)
    deleted = [pk for _, pk in OwnAdmin.said[1:]]
    assert deleted == keys, "who has no such action deletes row by row"


def test_what_is_protected_or_forbidden_stays():
    one = ticket()
    Invoice.objects.create(ticket=one, amount=1)
    client = client_for(PlainAdmin, boss(), write=["delete"], confirm=False)
    client.tool("delete_tickets", ids=[one.pk]).assert_failed("This cannot be deleted: Invoice")
    Invoice.objects.all().delete()
    Comment.objects.create(ticket=one, author=boss(), text="x")
    client = client_for(PlainAdmin, staff(*STAFF), write=["delete"], confirm=False)
    client.tool("delete_tickets", ids=[one.pk]).assert_failed("This would delete comment, and you")
    assert Ticket.objects.exists()


class DeviceAdmin(admin.ModelAdmin):
    def get_form(self, request, obj=None, change=False, **kwargs):
        Device.objects.count()
        return super().get_form(request, obj, change, **kwargs)


class Filed(forms.ModelForm):
    scan = forms.FileField()

    class Meta:
        model = Device
        fields = ["name"]


class FileAdmin(admin.ModelAdmin):
    form = Filed


class SecretForm(Filed):
    scan = None
    api_token = forms.CharField()


class SecretAdmin(admin.ModelAdmin):
    form = SecretForm


@pytest.mark.parametrize(
    ("kind", "options", "said"),
    [
        (DeviceAdmin, {"write": ["update"]}, "its form cannot be had without a caller"),
        (DeviceAdmin, {"write": ["change"]}, "write has 'change'. It takes some of create"),
        (DeviceAdmin, {"actions": ["fly"]}, "it has no action 'fly'. It has delete_selected"),
        (DeviceAdmin, {"actions": "fly"}, r"actions=\['fly'\]"),
        (FileAdmin, {"write": ["create"]}, "'scan' of the form to add is a FileField"),
        (SecretAdmin, {"write": ["create"]}, "'api_token' of the form to add looks as if"),
    ],
)
def test_what_cannot_be_offered_is_refused_when_it_is_registered(kind, options, said):
    with pytest.raises(RegistrationError, match=said):
        serve(kind, Device, **options)


def test_a_field_that_is_no_value_stays_as_it_is():
    class Optional(Filed):
        scan = forms.FileField(required=False)

    class OptionalAdmin(admin.ModelAdmin):
        form = Optional

    client = client_for(OptionalAdmin, boss(), Device, write=["create", "update"])
    made = found(client, "create_device", name="New")
    assert Device.objects.get().name == made["name"] == "New"
    assert "scan" not in described(client, "update_device")["inputSchema"]["properties"]
