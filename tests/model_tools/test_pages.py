"""``Page``: a function returns a queryset, and clients walk through it."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest
from django.db.models import Count, F, QuerySet
from django.db.models.functions import Lower
from django.utils import timezone
from pydantic import BaseModel

from django_mcp import Context, Fields, Load, MCPServer, Page, Provide, RegistrationError, Toolset
from django_mcp import tool as tool_of_class
from django_mcp.model_tools.finding.pages import MAX_PAGE
from django_mcp.model_tools.results.pages import PAGE_ROWS
from django_mcp.testing import MCPClient

from .desk.models import Comment, Customer, Device, Ticket
from .support import (
    MODERN,
    assert_fits,
    counted,
    customer,
    described,
    found,
    ids,
    ticket,
    tickets,
    user_with,
    walk,
)

pytestmark = pytest.mark.django_db

LEGACY = "2025-11-25"


class TicketOut(BaseModel):
    id: int
    subject: str


class WithCustomer(TicketOut):
    customer: CustomerOut


class CustomerOut(BaseModel):
    name: str


class DeviceOut(BaseModel):
    rank: int | None


OF_FIELDS = Annotated[Any, Fields(Ticket, ["id", "customer__name", "tags"])]


def plain(status: Literal["open", "closed"] = "open") -> Page[TicketOut]:
    """List tickets."""
    return Ticket.objects.filter(status=status)


async def aplain(status: Literal["open", "closed"] = "open") -> Page[TicketOut]:
    """List tickets."""
    return Ticket.objects.filter(status=status)


def held(status: str = "open") -> Page[TicketOut]:
    return Page.of(Ticket.objects.filter(status=status))


def managed() -> Page[TicketOut]:
    return Page.of(Ticket.objects)


ALL = pytest.mark.parametrize("function", [plain, aplain, held, managed])
BOTH = pytest.mark.parametrize("function", [plain, aplain])


def server_of(function: Callable[..., Any]) -> MCPServer:
    server = MCPServer("desk")
    server.tool(name="it", read_only=True)(function)
    return server


def client_of(function: Callable[..., Any], *, revision: str = MODERN) -> MCPClient:
    return MCPClient(server_of(function), revision=revision)


def of(make: Callable[[], Any], item: Any = TicketOut) -> Callable[..., Any]:
    def it():
        return make()

    it.__annotations__["return"] = Page[item]
    return it


def pages(client: MCPClient, **arguments: Any) -> Iterator[list[int]]:
    page = found(client, "it", **arguments)
    yield [each["id"] for each in page["items"]]
    while "next" in page:
        page = found(client, "it", **arguments, next=page["next"])
        yield [each["id"] for each in page["items"]]


@ALL
def test_clients_walk_through_all_rows(function):
    keys = [ticket(number).pk for number in range(5)]
    client = client_of(function)
    assert [*pages(client, limit=2)] == [keys[:2], keys[2:4], keys[4:]]
    assert [*pages(client, limit=5)] == [keys]


@ALL
def test_a_page_has_twenty_rows_and_may_have_fifty(function):
    for number in range(MAX_PAGE + 1):
        ticket(number)
    client = client_of(function)
    assert [len(page) for page in pages(client)] == [PAGE_ROWS, PAGE_ROWS, 11] == [20, 20, 11]
    assert [len(page) for page in pages(client, limit=50)] == [MAX_PAGE, 1] == [50, 1]
    client.tool("it", limit=51).assert_failed("limit: ")
    client.tool("it", limit=0).assert_failed("limit: ")


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
@BOTH
def test_what_clients_are_told(function, revision):
    client = client_of(function, revision=revision)
    told = described(client, "it")
    assert [*told["inputSchema"]["properties"]] == ["status", "limit", "next"]
    assert told["inputSchema"].get("required", []) == []
    assert told["inputSchema"]["properties"]["limit"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 50,
        "description": "Items of a page, or 20",
    }
    assert told["outputSchema"]["required"] == ["items"]
    item = told["outputSchema"]["properties"]["items"]["items"]
    assert item["properties"]["subject"] == {"type": "string"}
    for number in range(3):
        ticket(number)
    assert_fits(client, "it", found(client, "it", limit=2))
    assert_fits(client, "it", found(client, "it"))


def test_a_page_takes_one_query_and_reads_no_more_than_it_shows():
    tickets(6)
    client = client_of(of(lambda: Ticket.objects.select_related("customer"), WithCustomer))
    first = found(client, "it", limit=2)
    with counted() as statements:
        page = found(client, "it", limit=2, next=first["next"])
    selects = [each for each in statements if each.startswith("SELECT")]
    assert len(page["items"]) == 2
    assert len(selects) == 1
    assert "LIMIT 3" in selects[0]
    assert "OFFSET" not in selects[0]


@pytest.mark.parametrize("limit", [2, 5])
def test_fields_of_a_page_take_as_many_queries_for_any_rows(limit):
    tickets(6)
    client = client_of(of(lambda: Ticket.objects.order_by("subject"), OF_FIELDS))
    with counted() as statements:
        page = found(client, "it", limit=limit)
    assert [each["customer__name"] for each in page["items"]] == [
        f"Customer {number}" for number in range(1, limit + 1)
    ]
    assert len([each for each in statements if each.startswith("SELECT")]) == 2


def test_an_asynchronous_function_has_what_it_returns_read_for_it():
    tickets(3)

    async def it() -> Page[WithCustomer]:
        return Ticket.objects.all()

    async def shown() -> Page[OF_FIELDS]:
        return Ticket.objects.all()

    assert len([*walk(client_of(it), "it", limit=2)]) == 3
    assert [each["customer__name"] for each in walk(client_of(shown), "it", limit=2)] == [
        "Customer 1",
        "Customer 2",
        "Customer 3",
    ]


ORDERS: dict[str, Callable[[], QuerySet[Any]]] = {
    "none": lambda: Ticket.objects.all(),
    "the key": lambda: Ticket.objects.order_by("-pk"),
    "a text": lambda: Ticket.objects.order_by("subject"),
    "several": lambda: Ticket.objects.order_by("priority", "-subject", "id"),
    "another row's": lambda: Ticket.objects.order_by("-customer__name"),
    "a relation": lambda: Ticket.objects.order_by("customer"),
    "a decimal": lambda: Ticket.objects.order_by("-price", "subject"),
    "a date": lambda: Ticket.objects.order_by(F("due").desc(nulls_last=True)),
    "an expression": lambda: Ticket.objects.order_by(F("created")),
    "an annotation": lambda: Ticket.objects.annotate(said=Count("comments")).order_by("-said"),
    "a function": lambda: Ticket.objects.annotate(low=Lower("subject")).order_by("low", "-pk"),
}


@pytest.mark.parametrize("make", ORDERS.values(), ids=ORDERS)
@pytest.mark.parametrize("limit", [1, 2, 3])
def test_every_row_comes_once_and_in_the_order_of_the_queryset(make, limit):
    now = timezone.now()
    author = user_with()
    for number, subject in enumerate(["b", "A", "b", "c", "a", "B"]):
        one = ticket(
            number,
            subject=subject,
            customer=customer(f"Customer {number % 2}"),
            priority=1 + number % 2,
            price=None if number == 3 else Decimal(number) / 3,
            due=None if number % 3 == 0 else (now + timedelta(days=number)).date(),
            created=now - timedelta(microseconds=number // 2),
        )
        for _ in range(number % 3):
            Comment.objects.create(ticket=one, author=author, text="Well.")
    shown = [key for page in pages(client_of(of(make)), limit=limit) for key in page]
    whole = ids(client_of(of(make)), "it")
    assert shown == whole
    assert sorted(whole) == sorted(Ticket.objects.values_list("pk", flat=True))
    rows = {each.pk: each for each in make()}
    if "due" not in str(make().query.order_by) and "price" not in str(make().query.order_by):
        by = [str(name).lstrip("-") for name in make().query.order_by if isinstance(name, str)]
        for name in by[:1]:
            values = [_value(rows[key], name) for key in whole]
            expected = [_value(each, name) for each in make()]
            assert values == expected


def _value(row: Any, path: str) -> Any:
    for part in path.split("__"):
        row = getattr(row, part)
    return row


def test_rows_without_a_value_come_last():
    for rank in (None, 2, None, 1):
        Device.objects.create(rank=rank)

    def up() -> Page[DeviceOut]:
        return Device.objects.order_by("rank")

    def down() -> Page[DeviceOut]:
        return Device.objects.order_by("-rank")

    assert [each["rank"] for each in walk(client_of(up), "it", limit=1)] == [1, 2, None, None]
    assert [each["rank"] for each in walk(client_of(down), "it", limit=1)] == [2, 1, None, None]


def test_a_join_gives_no_row_twice():
    author = user_with()
    for number in range(4):
        one = ticket(number)
        for _ in range(3):
            Comment.objects.create(ticket=one, author=author, text="Well.")
    make = Ticket.objects.filter(comments__text="Well.").order_by("subject").all
    shown = [*pages(client_of(of(make)), limit=2)]
    keys = [*Ticket.objects.order_by("subject").values_list("pk", flat=True)]
    assert shown == [keys[:2], keys[2:]]


def test_rows_that_come_and_go_move_nothing():
    keys = [ticket(number).pk for number in range(6)]
    client = client_of(plain)
    first = found(client, "it", limit=3)
    Ticket.objects.filter(pk__in=[keys[0], keys[2]]).delete()
    rest = found(client, "it", limit=3, next=first["next"])
    assert [each["id"] for each in rest["items"]] == keys[3:]


# Cursors


def cursor_of(client: MCPClient, **arguments: Any) -> str:
    following: str = found(client, "it", limit=1, **arguments)["next"]
    return following


@BOTH
def test_a_cursor_that_was_tampered_with_is_refused(function):
    for number in range(3):
        ticket(number)
    client = client_of(function)
    cursor = cursor_of(client)
    raw = bytearray(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    for index in (0, len(raw) // 2, len(raw) - 1):
        other = raw.copy()
        other[index] ^= 1
        text = base64.urlsafe_b64encode(other).decode().rstrip("=")
        client.tool("it", limit=1, next=text).assert_failed("begin anew")
    for text in ("x", "1", cursor[:-4], "null-"):
        client.tool("it", limit=1, next=text).assert_failed("begin anew")


@BOTH
def test_a_cursor_is_good_for_the_same_arguments_and_caller_alone(function):
    for number in range(3):
        ticket(number)
        ticket(10 + number, status="closed")
    server = server_of(function)
    ada, bob = (
        MCPClient(server, revision=MODERN).as_user(user_with(username=name))
        for name in ("ada", "bob")
    )
    cursor = cursor_of(ada, status="open")
    ada.tool("it", status="open", next=cursor).assert_ok()
    ada.tool("it", next=cursor).assert_ok()  # that is the default
    ada.tool("it", status="closed", next=cursor).assert_failed("had the same arguments")
    bob.tool("it", status="open", next=cursor).assert_failed("a search of your own")


def test_a_cursor_is_good_for_the_same_function_and_order_alone():
    for number in range(3):
        ticket(number)
    order = ["subject"]

    def it() -> Page[TicketOut]:
        return Ticket.objects.order_by(*order)

    cursor = cursor_of(client_of(it))
    client_of(it).tool("it", next=cursor).assert_ok()
    client_of(plain).tool("it", next=cursor).assert_failed("begin anew")
    order[:] = ["-subject"]
    client_of(it).tool("it", next=cursor).assert_failed("begin anew")


def test_a_cursor_says_nothing_of_the_row():
    for number in range(3):
        ticket(number, secret_note="it is about Grace")
    cursor = cursor_of(client_of(of(lambda: Ticket.objects.order_by("secret_note"))))
    assert b"Grace" not in base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))


@pytest.mark.parametrize("nothing", ["", None])
def test_clients_that_fill_in_nothing_begin_anew(nothing):
    one = ticket(1)
    client = client_of(plain)
    assert ids(client, "it", next=nothing, limit=None) == [one.pk]


# Together with other parameters


def current_name(ctx: Context) -> str:
    return ctx.user.get_username()


def of_customer(
    ctx: Context,
    of: Annotated[Customer, Load(Customer.objects)],
    name: Annotated[str, Provide(current_name)],
) -> Page[TicketOut]:
    assert name == ctx.user.get_username() == "ada"
    return of.tickets.all()


async def aof_customer(
    ctx: Context,
    of: Annotated[Customer, Load(Customer.objects)],
    name: Annotated[str, Provide(current_name)],
) -> Page[TicketOut]:
    assert name == ctx.user.get_username() == "ada"
    return of.tickets.all()


@pytest.mark.parametrize("function", [of_customer, aof_customer])
def test_objects_contexts_and_provided_values_are_as_ever(function):
    first, second = customer("First"), customer("Second")
    keys = [ticket(number, customer=first).pk for number in range(3)]
    ticket(9, customer=second)
    client = client_of(function).as_user(user_with(username="ada"))
    assert [*pages(client, limit=2, of_id=first.pk)] == [keys[:2], keys[2:]]
    cursor = cursor_of(client, of_id=first.pk)
    client.tool("it", of_id=second.pk, next=cursor).assert_failed("had the same arguments")


def test_a_method_of_a_toolset_pages_as_well():
    class Tickets(Toolset):
        @tool_of_class
        def it(self, status: str = "open") -> Page[TicketOut]:
            return Ticket.objects.filter(status=status)

    server = MCPServer("desk")
    server.toolset(Tickets)
    keys = [ticket(number).pk for number in range(3)]
    client = MCPClient(server, revision=MODERN)
    assert [*pages(client, limit=2)] == [keys[:2], keys[2:]]


# What is no page


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "a list": (lambda: [1], "cut out of a queryset, not of list"),
    "a slice": (lambda: Ticket.objects.all()[:3], "without slicing it"),
    "a union": (lambda: Ticket.objects.union(Ticket.objects.all()), "without union()"),
    "by chance": (lambda: Ticket.objects.order_by("?"), "in order of '?'"),
    "long texts": (lambda: Ticket.objects.order_by("body"), "in order of 'body'"),
    "many rows": (lambda: Ticket.objects.order_by("tags"), "in order of 'tags'"),
    "an expression": (lambda: Ticket.objects.order_by(Lower("subject")), "cannot be in order of"),
    "nulls first": (
        lambda: Ticket.objects.order_by(F("due").asc(nulls_first=True)),
        "cannot be in order of",
    ),
}


@pytest.mark.parametrize(("make", "said"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_cut_is_refused_with_the_cure(make, said):
    ticket(1)
    client_of(of(make)).tool("it").assert_failed(said)


@pytest.mark.parametrize("name", ["next", "limit"])
def test_the_arguments_of_a_page_are_its_own(name):
    namespace: dict[str, Any] = {"Page": Page, "TicketOut": TicketOut}
    exec(f"def it({name}: int) -> Page[TicketOut]: ...", namespace)
    with pytest.raises(RegistrationError, match=f"Give the parameter '{name}' another name"):
        server_of(namespace["it"])


def test_a_page_is_of_something():
    def it() -> Page:
        return Ticket.objects.all()

    with pytest.raises(RegistrationError, match="Page needs to know of what"):
        server_of(it)
