"""Five tools for many models: what each shows and finds, and what it refuses."""

from __future__ import annotations

import pytest
from django.contrib import admin
from django.contrib.auth.models import User

from django_mcp import MCPServer
from django_mcp.testing import MCPClient

from .desk.models import Comment, Customer, Device, Tag, Ticket
from .generic_desk import (
    TICKETS,
    TicketAdmin,
    client_for,
    names,
    staff,
    superuser,
)
from .support import MODERN, counted, customer, found, nobody, ticket, tickets, walk

pytestmark = pytest.mark.django_db

READING = ["describe_model", "find", "get", "list_models"]


# Which models and tools there are


def test_there_are_four_tools_and_with_something_to_change_five():
    root = superuser()
    assert names(client_for(root)) == READING
    assert names(client_for(root, TICKETS)) == ["change", *READING]


def test_models_that_the_caller_may_not_view_are_neither_listed_nor_known():
    client = client_for(staff("view_customer", "view_device"))
    listed = found(client, "list_models")
    assert listed == {"models": {"desk.Customer": "customers", "desk.Device": "devices"}}
    assert found(client, "list_models", search="dev") == {"models": {"desk.Device": "devices"}}
    calls = {"describe_model": {}, "find": {}, "get": {"id": ticket().pk}}
    for tool, arguments in calls.items():
        for name in ("desk.Ticket", "desk.Nothing", "auth.User"):
            client.tool(tool, model=name, **arguments).assert_failed(
                f"Unknown model {name!r}. There are desk.Customer, desk.Device."
            )


def test_who_may_view_none_of_the_models_sees_no_tool():
    for user in (nobody(), staff("view_tag"), staff("add_ticket")):
        client = client_for(user, TICKETS)
        assert names(client) == []
        for tool in ("change", *READING):
            client.tool(tool, model="desk.Ticket").assert_error(-32602, f"Unknown tool: {tool}")


def test_names_of_models_are_taken_in_small_letters_too():
    ticket()
    assert len(found(client_for(superuser()), "find", model="desk.ticket")["items"]) == 1


# What a model has


def test_a_model_is_described_in_few_words():
    client = client_for(superuser(), TICKETS)
    described = found(client, "describe_model", model="desk.Ticket")
    status = {"open": "Open", "waiting": "Waits for the customer", "closed": "Closed"}
    assert described["fields"] == {
        "id": "integer",
        "number": "string",
        "subject": "string",
        "status": {"type": "string", "choices": status},
        "priority": {"type": "object", "choices": {"1": "Low", "2": "High"}},
        "customer": {"type": "object", "model": "desk.Customer"},
        "tags": {"type": "array", "items": {"type": "object"}},
        "due": "date or null",
        "price": "string or null",
    }
    assert described["columns"] == {"late": "any"}
    assert described["id"] == "id"
    assert described["lists"] == {
        "comments": {"id": "integer", "author": "object", "text": "string"}
    }
    assert described["search"] is True
    filters = ["status", "customer", "due__gte", "due__lt", "due__isnull"]
    assert [*described["filters"]] == filters
    assert described["filters"]["due__gte"] == "date"
    assert described["ordering"] == [
        *("number", "subject", "status", "customer"),
        *("-number", "-subject", "-status", "-customer"),
    ]
    # Rows of inlines can be given, too.
    values = [*(each for each in described["fields"] if each != "id"), "comments"]
    assert [*described["values"]] == values
    assert described["values"]["status"]["enum"] == [*status]
    assert described["create"] == {
        "values": values,
        "required": ["number", "subject", "customer"],
    }
    assert described["update"] == {"values": values, "clear": ["tags", "due", "price"]}
    assert described["delete"] is True
    assert described["actions"] == {"close": {"about": "Close the tickets", "asks": True}}


def test_a_description_has_what_its_reader_may_and_no_more():
    viewer = staff("view_ticket")
    described = found(client_for(viewer, TICKETS), "describe_model", model="desk.Ticket")
    assert not {"values", "create", "update", "delete", "actions"} & described.keys()
    # Which other models there are is not said by the way.
    assert described["fields"]["customer"] == "object"
    changer = staff("change_ticket")
    described = found(client_for(changer, TICKETS), "describe_model", model="desk.Ticket")
    assert {"create", "delete"} & described.keys() == set()
    assert {"values", "update", "actions"} <= described.keys()


def test_a_model_without_more_has_fields_and_no_more():
    described = found(client_for(superuser()), "describe_model", model="desk.Customer")
    fields = {"id": "integer", "name": "string"}
    assert described == {
        "model": "desk.Customer",
        "id": "id",
        "fields": fields,
        "columns": {"text": "any"},  # what str() makes of a row
    }


def test_what_the_admin_hides_from_somebody_is_not_described_to_him():
    class Discreet(TicketAdmin):
        list_display = ["number", "price"]

        def get_fields(self, request, obj=None):
            return ["number", "remark"] if request.user.is_superuser else ["number"]

        def get_list_display(self, request):
            return ["number", "body"] if request.user.is_superuser else ["number"]

    discreet = admin.AdminSite("discreet")
    discreet.register(Ticket, Discreet)
    server = MCPServer("discreet")
    server.admin_site(discreet, models=["desk.Ticket"])
    for user, fields, columns in (
        (superuser(), ["id", "number", "remark"], ["body"]),
        (staff("view_ticket"), ["id", "number"], []),
    ):
        client = MCPClient(server, revision=MODERN).as_user(user)
        described = found(client, "describe_model", model="desk.Ticket")
        assert [*described["fields"]] == fields
        assert [*described.get("columns", [])] == columns


def test_inlines_are_described_to_those_who_see_them():
    user = staff("change_ticket")
    described = found(client_for(user, TICKETS), "describe_model", model="desk.Ticket")
    assert "lists" not in described
    assert "comments" not in str(described)
    user = staff("change_ticket", "change_comment")
    described = found(client_for(user, TICKETS), "describe_model", model="desk.Ticket")
    assert [*described["lists"]] == ["comments"]
    assert "comments" in described["values"]
    assert "comments" in described["update"]["values"]


# To find and to get


def test_rows_are_found_by_filters_words_and_order_in_pages():
    first = customer("Ada")
    for number in range(1, 6):
        ticket(number, customer=first, status="open" if number < 5 else "closed")
    ticket(9, customer=customer("Bob"))
    client = client_for(superuser())
    asked = {"filters": {"status": "open", "customer": first.pk}, "ordering": "-number"}
    page = found(client, "find", model="desk.Ticket", **asked, limit=3, count=True)
    assert [row["number"] for row in page["items"]] == ["T-4", "T-3", "T-2"]
    assert page["count"] == 4
    rows = walk(client, "find", model="desk.Ticket", **asked, limit=3)
    assert [row["number"] for row in rows] == ["T-4", "T-3", "T-2", "T-1"]
    assert [
        row["number"] for row in found(client, "find", model="desk.Ticket", search="T-9")["items"]
    ] == ["T-9"]


def test_next_of_one_model_is_no_next_of_another():
    for number in (1, 2):
        ticket(number, customer=customer(f"c{number}"))
    client = client_for(superuser())
    following = found(client, "find", model="desk.Ticket", limit=1)["next"]
    client.tool("find", model="desk.Customer", limit=1, next=following).assert_failed("`next` goes")


def test_a_whole_table_is_never_read():
    Tag.objects.bulk_create([Tag(name=str(each)) for each in range(60)])
    Customer.objects.bulk_create([Customer(name=str(each)) for each in range(60)])
    client = client_for(superuser())
    assert len(found(client, "find", model="desk.Customer")["items"]) == 20
    assert len(found(client, "find", model="desk.Customer", limit=50)["items"]) == 50
    client.tool("find", model="desk.Customer", limit=51).assert_failed("less than or equal to 50")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"filters": {"state": "open"}}, "Unknown filter 'state'. Of desk.Ticket there are status"),
        ({"filters": {"limit": 1000}}, "Unknown filter 'limit'"),
        ({"filters": {"secret_note__startswith": "a"}}, "Unknown filter 'secret_note__startswith'"),
        ({"filters": {"customer__email": "a"}}, "Unknown filter 'customer__email'"),
        ({"filters": {"status": "lost"}}, "Input should be 'open', 'waiting' or 'closed'"),
        ({"ordering": "secret_note"}, "ordering: Input should be 'number', 'subject'"),
        ({"ordering": "-customer__email"}, "ordering: Input should be"),
        ({"where": "1=1"}, "where: unknown argument (this takes model, search, filters,"),
    ],
)
def test_what_is_not_listed_finds_nothing_out(arguments, message):
    ticket(secret_note="abc")
    client_for(superuser()).tool("find", model="desk.Ticket", **arguments).assert_failed(message)


def test_words_and_orders_that_a_model_has_not_are_not_ignored():
    customer()
    client = client_for(superuser())
    asked = {"search": "Ada", "ordering": "name"}
    for name, value in asked.items():
        client.tool("find", model="desk.Customer", **{name: value}).assert_failed(
            f"{name}: desk.Customer has none. Leave it out."
        )
    # Some clients fill in all that their model leaves out.
    empty = {"search": "", "ordering": "", "filters": {}, "next": None, "count": None}
    assert len(found(client, "find", model="desk.Customer", **empty)["items"]) == 1


@pytest.mark.parametrize("written", [int, str])
def test_a_row_is_got_by_its_key_however_it_is_written(written):
    one = ticket()
    Comment.objects.create(ticket=one, author=User.objects.create(username="a"), text="Hello")
    client = client_for(superuser())
    row = found(client, "get", model="desk.Ticket", id=written(one.pk))
    assert row["number"] == "T-1"
    assert [comment["text"] for comment in row["comments"]] == ["Hello"]
    device = Device.objects.create(name="lamp")
    row = found(client, "get", model="desk.Device", id=str(device.pk))
    assert row == {"id": str(device.pk), "name": "lamp"}


def test_a_row_that_is_not_there_is_no_failure_of_the_server():
    client = client_for(superuser())
    client.tool("get", model="desk.Ticket", id=1).assert_failed("No Ticket matches the given query")
    client.tool("get", model="desk.Ticket", id="x").assert_failed("id: Input should be a valid int")


def test_pages_and_descriptions_take_the_same_queries_for_any_number():
    client = client_for(superuser())
    numbers = []
    for count in (2, 12):
        Ticket.objects.all().delete()
        tickets(count)
        with counted() as statements:
            assert len(found(client, "find", model="desk.Ticket", limit=50)["items"]) == count
        numbers.append(len(statements))
    assert numbers[0] == numbers[1]
    with counted() as statements:
        found(client, "describe_model", model="desk.Ticket")
        found(client, "list_models")
    tables = {"desk_ticket", "desk_customer", "desk_device"}
    assert not [each for each in statements if any(table in each for table in tables)]


def test_lists_take_the_same_queries_for_any_number_of_models():
    numbers = []
    for models in (["desk.Ticket"], ["desk.*", "auth.User"]):
        client = client_for(staff("change_ticket"), TICKETS, models)
        with counted() as statements:
            assert len(client.list_tools()) == 5
            found(client, "list_models")
        numbers.append(len(statements))
    assert numbers[0] == numbers[1]
