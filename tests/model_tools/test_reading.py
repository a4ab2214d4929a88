"""``find`` and ``get``: what they show, and that nothing else can be seen or found out."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from django.utils.translation import gettext_lazy

from django_mcp import MCPServer, ModelTools, RegistrationError
from django_mcp.testing import MCPClient

from .desk.models import Comment, Customer, Device, Tag, Ticket
from .support import (
    MODERN,
    assert_fits,
    client_for,
    counted,
    customer,
    described,
    found,
    ids,
    nobody,
    serve,
    ticket,
    tickets,
    user_with,
    viewer,
    walk,
)

pytestmark = pytest.mark.django_db


class TicketTools(ModelTools):
    fields = [
        "id", "number", "subject", "body", "status", "priority", "customer", "customer__company",
        "customer__name", "assignee_id", "tags", "price", "is_public", "due", "created", "is_late",
        "age",
    ]  # fmt: skip
    list_fields = ["id", "number", "customer", "customer__company", "tags", "price", "created"]
    search_fields = ["number", "^subject", "customer__name"]
    filters = {
        "status": ["exact", "in"],
        "priority": ["exact"],
        "customer": ["exact", "in"],
        "tags": ["exact"],
        "price": ["gte", "lt", "isnull"],
        "created": ["gte", "lt", "date"],
        "is_public": ["exact"],
        "subject": ["icontains"],
    }
    ordering_fields = ["created", "price", "customer__name"]
    related = {"comments": ["author", "text"]}

    def age(self, ticket: Ticket) -> int:
        return (datetime.now(UTC) - ticket.created).days


def test_a_row_is_shown_as_its_schema_says():
    client = client_for(TicketTools, user_with("view_ticket", "view_comment"))
    agent = User.objects.create(username="agent")
    created = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
    one = ticket(price=Decimal("12.500"), created=created, assignee=agent, priority=2)
    tag = Tag.objects.create(name="red")
    one.tags.add(tag)
    comment = Comment.objects.create(ticket=one, author=agent, text="Hm")
    one.refresh_from_db()
    row = found(client, "get_ticket", id=one.pk)
    assert row == {
        "id": one.pk,
        "number": "T-1",
        "subject": "Subject 1",
        "body": "",
        "status": "open",
        "priority": {"id": 2, "text": "High"},
        "customer": {"id": one.customer_id, "text": "Ada"},
        "customer__company": None,
        "customer__name": "Ada",
        "assignee_id": agent.pk,
        "tags": [{"id": tag.pk, "text": "red"}],
        "price": "12.500",
        "is_public": True,
        "due": None,
        "created": "2026-01-02T03:04:05.678901Z",
        "is_late": False,
        "age": row["age"],
        "comments": [{"author": {"id": agent.pk, "text": "agent"}, "text": "Hm"}],
    }
    assert comment.text == "Hm"
    assert_fits(client, "get_ticket", row)
    page = found(client)
    assert page == {"items": [{name: row[name] for name in TicketTools.list_fields}]}
    assert_fits(client, "find_tickets", page)


def test_types_and_choices_are_in_the_schemas():
    client = client_for(TicketTools, viewer())
    taken = described(client, "find_tickets")["inputSchema"]
    assert taken["additionalProperties"] is False
    assert "required" not in taken
    properties = taken["properties"]
    assert properties["status"] == {
        "type": "string",
        "enum": ["open", "waiting", "closed"],
        "description": "open: Open, waiting: Waits for the customer, closed: Closed",
    }
    assert properties["priority"] == {
        "type": "integer",
        "enum": [1, 2],
        "description": "1: Low, 2: High",
    }
    assert properties["customer__in"] == {
        "type": "array",
        "items": {"type": "integer"},
        "maxItems": 100,
    }
    assert properties["price__gte"] == {"type": "string"}
    assert properties["created__gte"] == {"type": "string", "format": "date-time"}
    assert properties["created__date"] == {"type": "string", "format": "date"}
    assert properties["ordering"]["enum"] == [
        "created", "-created", "price", "-price", "customer__name", "-customer__name",
    ]  # fmt: skip
    given = described(client, "get_ticket")["outputSchema"]["properties"]
    assert given["age"] == {"type": "integer"}
    assert given["is_late"] == {"type": "boolean"}
    assert given["price"] == {"type": ["string", "null"]}
    assert given["customer"] == {"type": "object"}
    assert described(client, "get_ticket")["annotations"] == {"readOnlyHint": True}


def test_filters_and_words_find_what_they_say():
    client = client_for(TicketTools, viewer())
    ada, bob = customer("Ada"), customer("Bob")
    one = ticket(1, customer=ada, price=Decimal(5))
    two = ticket(2, customer=bob, status="closed", priority=2)
    tag = Tag.objects.create(name="red")
    two.tags.add(tag)
    assert ids(client) == [one.pk, two.pk]
    for arguments, expected in [
        ({"status": "closed"}, [two]),
        ({"status__in": ["open", "closed"]}, [one, two]),
        ({"priority": 2}, [two]),
        ({"customer": bob.pk}, [two]),
        ({"tags": tag.pk}, [two]),
        ({"price__gte": "4.999"}, [one]),
        ({"price__gte": 5.001}, []),
        ({"price__isnull": True}, [two]),
        ({"created__gte": "2020-01-01T00:00:00"}, [one, two]),
        ({"created__lt": "2020-01-01T00:00:00+02:00"}, []),
        ({"created__date": timezone.localdate(one.created).isoformat()}, [one, two]),
        ({"created__date": "2020-01-01"}, []),
        ({"is_public": False}, []),
        ({"search": "T-1"}, [one]),
        ({"search": "bob subject"}, [two]),
        ({"search": '"subject 2"'}, [two]),
        ({"search": "%"}, []),
        ({"ordering": "-customer__name"}, [two, one]),
    ]:
        assert ids(client, **arguments) == [each.pk for each in expected], arguments


def test_a_site_may_say_what_is_searched_for():
    words = {
        "search_fields": ["number"],
        "search_help_text": gettext_lazy("The number of a ticket"),
    }
    server = serve(options(fields=["id", "number"], **words), Ticket)
    (find, _) = (
        MCPClient(server, revision=MODERN).as_user(user_with(is_superuser=True)).list_tools()
    )
    assert find["inputSchema"]["properties"]["search"] == {
        "type": "string",
        "description": "The number of a ticket",
    }


def test_a_count_is_there_when_it_is_asked_for():
    client = client_for(TicketTools, viewer())
    tickets(3)
    with counted() as statements:
        assert "count" not in found(client, limit=2)
    assert not any("COUNT" in each for each in statements)
    assert found(client, limit=2, count=True)["count"] == 3
    assert found(client, limit=2, count=True, search="subject 2")["count"] == 0 + 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"state": "open"}, "state: unknown argument (this takes search, status, status__in,"),
        ({"remark": "x"}, "remark: unknown argument"),
        ({"subject__startswith": "x"}, "subject__startswith: unknown argument"),
        ({"status": "gone"}, "status: Input should be 'open', 'waiting' or 'closed'"),
        ({"ordering": "remark"}, "ordering: Input should be 'created'"),
        ({"limit": 51}, "limit: Input should be less than or equal to 50"),
        ({"price__gte": "much"}, "price__gte: Input should be a valid decimal"),
        ({"customer": 2**63}, "customer: Value error, an integer of 64 bits"),
        ({"search": "a\x00b"}, "search: Value error, a text without NUL"),
        ({"subject__icontains": "a\x00b"}, "subject__icontains: Value error, a text without NUL"),
        ({"created__gte": "0001-01-01T00:00:00+14:00"}, "created__gte: Value error, no moment"),
        ({"created__date": "9999-12-31"}, "created__date: Value error, no moment"),
        ({"price__gte": "1e999"}, "price__gte: Value error, a number of fewer digits"),
    ],
)
def test_what_is_not_allowed_is_an_error_that_says_so(arguments, said, settings):
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "STRICT_ARGUMENTS": False}
    ticket()
    client_for(TicketTools, viewer()).tool("find_tickets", **arguments).assert_failed(said)


def test_the_number_of_queries_is_the_same_for_any_number_of_rows():
    client = client_for(TicketTools, user_with("view_ticket", "view_comment"))
    tickets(1)
    ids(client)  # the user's permissions are remembered by the user
    with counted() as for_one:
        assert len(ids(client)) == 1
    Ticket.objects.all().delete()
    tickets(30)
    with counted() as for_many:
        assert len(ids(client, limit=30)) == 30
    assert len(for_one) == len(for_many)
    assert len([each for each in for_many if "desk_ticket" in each]) == 2  # and the tags
    key = Ticket.objects.values_list("pk", flat=True)[0]
    with counted() as for_all_of_one:
        found(client, "get_ticket", id=key)
    assert len(for_all_of_one) <= len(for_many) + 1, for_all_of_one


def test_a_query_for_each_row_is_noticed(caplog):
    class Careless(TicketTools):
        def first_comment(self, ticket) -> str:
            return str(ticket.comments.first())

        fields = ["id", "first_comment"]
        list_fields = search_fields = filters = ordering_fields = ()

    class Careful(Careless):
        def get_queryset(self, ctx):
            return super().get_queryset(ctx).prefetch_related("comments")

        def first_comment(self, ticket) -> str:
            return str(ticket.comments.all()[0])

    Careless.list_fields = Careful.list_fields = None
    tickets(5)
    found(client_for(Careful, viewer()))
    assert not caplog.records
    found(client_for(Careless, viewer()))
    assert "Careless: to show 5 rows took 5 queries." in caplog.text


def test_no_page_is_a_whole_table():
    client = client_for(TicketTools, viewer())
    of = customer()
    Ticket.objects.bulk_create(
        Ticket(number=f"T-{number}", subject="", customer=of) for number in range(120)
    )
    assert len(ids(client)) == 20
    assert len(ids(client, limit=50)) == 50
    assert len(list(walk(client, limit=50))) == 120


def test_lists_are_cut_and_say_so():
    client = client_for(TicketTools, user_with("view_ticket", "view_comment"))
    one, author = ticket(), User.objects.create(username="author")
    Comment.objects.bulk_create(Comment(ticket=one, author=author, text="") for _ in range(51))
    one.tags.set(Tag.objects.bulk_create(Tag(name=f"tag {number}") for number in range(51)))
    row = found(client, "get_ticket", id=one.pk)
    assert (len(row["comments"]), len(row["tags"])) == (50, 50)
    assert row["more"] == ["tags", "comments"]
    (item,) = found(client)["items"]
    assert (len(item["tags"]), item["more"]) == (50, ["tags"])


def test_rows_that_are_not_the_callers_do_not_exist():
    class Mine(TicketTools):
        def get_queryset(self, ctx):
            return super().get_queryset(ctx).filter(watchers=ctx.user)

    user = viewer()
    client = client_for(Mine, user)
    mine, other = ticket(1), ticket(2)
    mine.watchers.add(user)
    assert ids(client) == [mine.pk]
    assert found(client, count=True)["count"] == 1
    assert ids(client, search="T-2") == []
    client.tool("get_ticket", id=other.pk).assert_failed("No Ticket matches the given query.")
    client.tool("get_ticket", id=10**9).assert_failed("No Ticket matches the given query.")


def test_a_join_that_gives_a_row_several_times_shows_it_once():
    class Joined(TicketTools):
        def get_queryset(self, ctx):
            return super().get_queryset(ctx).filter(comments__text__startswith="C")

    client = client_for(Joined, viewer())
    many = tickets(5)
    author = User.objects.first()
    for each in many:
        for _ in range(3):
            Comment.objects.create(ticket=each, author=author, text="C")
    assert [each["id"] for each in walk(client, limit=2)] == [each.pk for each in many]
    assert found(client, count=True)["count"] == 5
    assert "next" not in found(client, limit=5)


def test_related_rows_need_their_own_permission_and_can_be_narrowed():
    class Narrow(TicketTools):
        def get_related_queryset(self, ctx, name, queryset):
            assert name == "comments"
            return queryset.exclude(internal=True)

    one, author = ticket(), User.objects.create(username="author")
    Comment.objects.create(ticket=one, author=author, text="public")
    Comment.objects.create(ticket=one, author=author, text="inside", internal=True)
    assert "comments" not in found(client_for(Narrow, viewer()), "get_ticket", id=one.pk)
    client = client_for(Narrow, user_with("view_ticket", "view_comment"))
    shown = found(client, "get_ticket", id=one.pk)["comments"]
    assert [each["text"] for each in shown] == ["public"]


def test_a_row_can_be_named_by_another_field():
    class Numbered(ModelTools):
        fields = ["number", "subject"]
        lookup_field = "number"

    client = client_for(Numbered, viewer())
    ticket(7)
    assert found(client, "get_ticket", number="T-7") == {"number": "T-7", "subject": "Subject 7"}
    client.tool("get_ticket", number="T-8").assert_failed("No Ticket matches")


def test_names_can_be_said():
    class Cases(ModelTools):
        """Cases of the court."""

        fields = ["id"]
        name, plural = "case", "cases"
        tool_options = {"get": {"title": "A case", "name": "read_case"}}

    tools = {each["name"]: each for each in client_for(Cases, viewer()).list_tools()}
    assert list(tools) == ["find_cases", "read_case"]
    assert tools["find_cases"]["description"] == (
        "Find cases. Cases of the court. Pass `next` back for more."
    )
    assert tools["read_case"]["title"] == "A case"


def options(**attributes: Any) -> type[ModelTools]:
    return type("Options", (ModelTools,), {"fields": ["id", "subject"], **attributes})


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ({"fields": "__all__"}, "There is no way to say all"),
        ({"fields": ()}, "fields names what models may read"),
        ({"fields": ["subject"]}, "fields (and list_fields) need 'id'"),
        ({"list_fields": ["subject"]}, "fields (and list_fields) need 'id'"),
        ({"fields": ["id", "nothing"]}, "Ticket has no field 'nothing'"),
        ({"fields": ["id", "comments"]}, "Show them by related"),
        ({"fields": ["id", "tags__name"]}, "leads over 'tags' to many rows"),
        ({"list_fields": ["id", "remark"]}, "list_fields has 'remark', and fields has not"),
        ({"search_fields": ["remark"]}, "search_fields has 'remark', and fields has not"),
        ({"filters": {"remark": ["exact"]}}, "filters has 'remark', and fields has not"),
        ({"filters": ["customer__name"]}, "filters has 'customer__name', and fields has not"),
        ({"ordering_fields": ["remark"]}, "ordering_fields has 'remark', and fields has not"),
        ({"ordering": ["-remark"]}, "ordering has 'remark', and fields has not"),
        ({"filters": {"subject": ["regex"]}}, "has the lookup 'regex' of 'subject', which takes"),
        ({"search_fields": ["id"]}, "search_fields has 'id', which is no text"),
        ({"fields": ["id", "body"], "ordering_fields": ["body"]}, "ordering_fields has 'body'"),
        ({"related": {"customer": ["name"]}}, "related has 'customer', which leads to no list"),
        ({"related": {"comments": ["nothing"]}}, "Comment has no field 'nothing'"),
        ({"lookup_field": "subject"}, "is no field of its own with unique values"),
    ],
)
def test_what_cannot_be_offered_is_refused_with_the_cure(attributes, said):
    with pytest.raises(RegistrationError) as error:
        serve(options(**attributes))
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (User, "password"),
        (Ticket, "secret_note"),
        (Ticket, "vault"),
        (Ticket, "assignee__password"),
        (Customer, "user__password"),
    ],
)
def test_what_looks_secret_is_refused_unless_it_is_named(model, name):
    with pytest.raises(RegistrationError, match="looks as if it held a secret"):
        serve(options(fields=["id", name]), model)
    serve(options(fields=["id", name], allow_secret=[name]), model)


def test_no_hash_of_a_password_can_be_read_or_found_out():
    class UserTools(ModelTools):
        fields = ["id", "username"]
        search_fields = ["username"]
        filters = ["username"]
        ordering_fields = ["username"]

    user = user_with("view_user", password="md5$salt$feed")
    client = client_for(UserTools, user, User)
    for answer in (client.tool("find_users"), client.tool("get_user", id=user.pk)):
        assert "feed" not in answer.assert_ok().text
    for arguments in ({"password__startswith": "m"}, {"password": "m"}, {"ordering": "password"}):
        client.tool("find_users", **arguments).assert_failed()
    assert found(client, "find_users", search="md5")["items"] == []


def test_options_are_a_class_and_the_model_a_model():
    server = MCPServer("desk")
    with pytest.raises(RegistrationError, match="decorates a class of options"):
        server.model(Ticket)(lambda: None)
    with pytest.raises(RegistrationError, match="takes a model"):
        server.model("Ticket")(TicketTools)


def test_names_of_filters_give_way_to_the_tools_own():
    class Counted(ModelTools):
        fields = ["id", "limit"]

        def limit(self, row) -> int:
            return 1

    row = found(client_for(Counted, viewer()), "find_tickets")
    assert row == {"items": []}
    with pytest.raises(RegistrationError, match="takes none"):
        serve(options(fields=["id", "age"], filters=["age"], age=lambda self, row: 1))


PEOPLE = {
    "anonymous": lambda: nobody(),
    "nobody": lambda: user_with(),
    "viewer": lambda: user_with("view_ticket"),
    "changer": lambda: user_with("change_ticket"),
    "staff": lambda: user_with(is_staff=True),
    "inactive": lambda: user_with("view_ticket", is_active=False),
    "superuser": lambda: user_with(is_superuser=True),
}


@pytest.mark.parametrize("who", PEOPLE)
def test_who_may_not_see_rows_sees_no_tools_and_is_refused(who):
    one = ticket()
    client = client_for(TicketTools, PEOPLE[who]())
    may = who in ("viewer", "changer", "superuser")
    assert [each["name"] for each in client.list_tools()] == (
        ["find_tickets", "get_ticket"] if may else []
    )
    for name, arguments in (("find_tickets", {}), ("get_ticket", {"id": one.pk})):
        answer = client.tool(name, **arguments)
        if may:
            answer.assert_ok()
        else:
            answer.assert_error(-32602, f"Unknown tool: {name}")


def test_two_tools_of_a_model_take_few_characters():
    """Five fields, words to search for and two filters; what other packages send is 8,463."""
    sizes = []
    for model, named in {
        Ticket: ["id", "number", "subject", "status", "customer"],
        Customer: ["id", "name", "email", "company", "user"],
        Comment: ["id", "text", "author", "ticket", "internal"],
        User: ["id", "username", "first_name", "last_name", "is_active"],
    }.items():
        attributes = {"fields": named, "search_fields": named[1:2], "filters": named[3:]}
        server = serve(options(**attributes), model)
        described = MCPClient(server, revision=MODERN).as_user(user_with(is_superuser=True))
        sizes.append(len(json.dumps(described.list_tools(), separators=(",", ":"))))
    assert sum(sizes) / len(sizes) <= 1_000, sizes


def test_every_revision_reads_the_same(settings):
    one = ticket()
    for revision in ("2025-03-26", "2025-06-18", "2025-11-25"):
        client = client_for(TicketTools, viewer(), revision=revision)
        client.tool("get_ticket", id=one.pk).assert_ok().assert_contains('"number":"T-1"')


def test_the_default_manager_is_asked_for_the_rows():
    assert isinstance(MCPClient(serve(TicketTools)), MCPClient)
    assert Device._default_manager.count() == 0
