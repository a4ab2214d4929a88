"""``Fields``: rows that functions return are shown by these fields, and no others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import pytest
from django.db import models
from django.db.models import QuerySet
from pydantic import BaseModel

from django_mcp import Fields, MCPServer, RegistrationError
from django_mcp.server.fields.field_types import type_of
from django_mcp.testing import MCPClient

from .desk.models import Customer, Ticket
from .support import MODERN, assert_fits, counted, described, ticket, tickets

pytestmark = pytest.mark.django_db

SHORT = Fields(Ticket, ["id", "subject"])
LONG = Fields(Ticket, ["id", "price", "customer", "customer__company__name", "tags", "created"])

OF_EACH = list[Annotated[Any, LONG]]
LISTS = {
    "of each of any": OF_EACH,
    "of each ticket": list[Annotated[Ticket, LONG]],
    "of a list": Annotated[list[Any], LONG],
    "of a queryset": Annotated[QuerySet[Ticket], LONG],
}


def client_of(function: Callable[..., Any], **options: Any) -> MCPClient:
    server = MCPServer("desk")
    server.tool(name="it", **options)(function)
    return MCPClient(server, revision=MODERN)


def returning(annotation: Any, make: Callable[[], Any]) -> Callable[..., Any]:
    def give() -> Any:
        return make()

    give.__annotations__["return"] = annotation
    return give


def areturning(annotation: Any, make: Callable[[], Any]) -> Callable[..., Any]:
    async def give() -> Any:
        return make()

    give.__annotations__["return"] = annotation
    return give


class Board(BaseModel):
    title: str
    tickets: Annotated[list[Any], LONG]


BOTH = pytest.mark.parametrize("returns", [returning, areturning])


def selects(statements: list[str]) -> int:
    return sum(each.startswith("SELECT") for each in statements)


def structured(client: MCPClient) -> Any:
    result = client.tool("it").assert_ok().result["structuredContent"]
    assert_fits(client, "it", result)
    return result


@BOTH
def test_a_row_is_shown_by_the_fields_that_are_named(returns):
    one = ticket(1, secret_note="nobody knows")
    client = client_of(returns(Annotated[Any, SHORT], lambda: one))
    assert structured(client) == {"id": one.pk, "subject": "Subject 1"}
    assert "nobody knows" not in client.tool("it").text
    assert described(client, "it")["outputSchema"]["properties"]["subject"] == {"type": "string"}


@BOTH
@pytest.mark.parametrize("annotation", LISTS.values(), ids=LISTS)
def test_any_number_of_rows_takes_the_same_number_of_queries(annotation, returns):
    client = client_of(returns(annotation, lambda: Ticket.objects.order_by("pk")))
    numbers = []
    for _ in range(2):
        before = Ticket.objects.count()
        for each in tickets(5):
            Ticket.objects.filter(pk=each.pk).update(number=f"{each.pk} of old")
        with counted() as statements:
            rows = structured(client)
        numbers.append(selects(statements))
        first = Ticket.objects.order_by("pk").first()
        assert len(rows) == before + 5
        assert rows[0]["customer"] == {"id": first.customer_id, "text": "Customer 1"}
        assert rows[0]["customer__company__name"] == "Company 1"
        assert [each["text"] for each in rows[0]["tags"]] == ["tag 1.0", "tag 1.1"]
    assert numbers[0] == numbers[1] == 2


def read() -> QuerySet[Ticket]:
    rows = Ticket.objects.order_by("pk")
    assert len(rows) == 4
    return rows


WHOLE = {
    "read": read,
    "a list": lambda: list(Ticket.objects.order_by("pk")),
    "a union": lambda: Ticket.objects.none().union(Ticket.objects.all()),
    "a slice": lambda: Ticket.objects.order_by("pk")[:4],
    "a manager": lambda: Ticket.objects,
}


@pytest.mark.parametrize("make", WHOLE.values(), ids=WHOLE)
def test_whatever_rows_there_are_is_loaded_together(make):
    tickets(4)
    client = client_of(returning(OF_EACH, make))
    with counted() as statements:
        shown = structured(client)
    assert [each["customer__company__name"] for each in shown] == [
        f"Company {number}" for number in range(1, 5)
    ]
    # Of what is a list already: its customers, their companies, and the tags.
    assert selects(statements) <= 4


def test_within_a_model_a_list_is_shown_by_as_few():
    def board() -> Board:
        return {"title": "All", "tickets": Ticket.objects.all()}

    tickets(5)
    client = client_of(board)
    with counted() as statements:
        shown = structured(client)
    assert len(shown["tickets"]) == 5
    assert selects(statements) == 2


def test_rows_may_stand_in_other_types():
    def by_number() -> dict[str, Annotated[Any, SHORT]]:
        return {each.number: each for each in Ticket.objects.all()}

    one = ticket(1)
    assert structured(client_of(by_number)) == {"T-1": {"id": one.pk, "subject": "Subject 1"}}


def test_within_a_model_an_asynchronous_function_is_told_what_to_do():
    async def board() -> Board:
        return {"title": "All", "tickets": Ticket.objects.all()}

    client_of(board).tool("it").assert_failed("Have Fields stand in its return annotation itself")


@BOTH
@pytest.mark.parametrize(
    "annotation",
    [Annotated[Ticket | None, SHORT], Annotated[Any, SHORT] | None],
    ids=["within", "beside"],
)
def test_there_may_be_no_row(annotation, returns):
    one = ticket(1)
    client = client_of(returns(annotation, lambda: one))
    assert structured(client) == {"id": one.pk, "subject": "Subject 1"}
    client = client_of(returns(annotation, lambda: None))
    assert client.tool("it").assert_ok().result["structuredContent"] is None
    assert {"type": "null"} in described(client, "it")["outputSchema"]["anyOf"]


@BOTH
@pytest.mark.parametrize(
    ("annotation", "make"),
    [
        (OF_EACH, lambda: Customer.objects.all()),
        (OF_EACH, lambda: Ticket.objects.values("id")),
        (OF_EACH, lambda: 3),
        (Annotated[Any, SHORT], lambda: Customer(name="Ada")),
        (Annotated[Any, SHORT], lambda: {"id": 1}),
    ],
    ids=["another model", "values", "no rows", "a row of another model", "a dict"],
)
def test_what_is_no_row_of_the_model_is_not_sent(annotation, make, returns):
    ticket(1)
    client = client_of(returns(annotation, make))
    answer = client.tool("it").assert_failed("Fields(Ticket) shows rows of this model, not")
    assert "Ada" not in answer.text


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (["id", "secret_note"], "looks as if it held a secret"),
        (["vault"], "looks as if it held a secret"),
        (["assignee__password"], "looks as if it held a secret"),
        (["nothing"], "has no field 'nothing'"),
        (["comments"], "many rows"),
        ("__all__", "no way to say all"),
        ([], "names what models may read"),
    ],
)
def test_fields_are_checked_where_they_are_written(fields, said):
    with pytest.raises(RegistrationError, match=said):
        Fields(Ticket, fields)


def test_what_is_no_secret_can_be_allowed():
    one = ticket(1, secret_note="for all")
    fields = Fields(Ticket, ["secret_note"], allow_secret=["secret_note"])
    client = client_of(returning(Annotated[Any, fields], lambda: one))
    assert structured(client) == {"secret_note": "for all"}


def test_the_tool_is_from_where_its_function_is():
    def found() -> Annotated[Ticket, SHORT]:
        raise NotImplementedError

    server = MCPServer("desk")
    server.tool(found)
    tool = server.find_tool("found")
    assert tool is not None
    assert tool.signature.function is not found
    assert tool.signature.function.__module__ == __name__


def test_what_nobody_knows_a_type_of_is_a_text_or_nothing():
    class Colour(models.Field):
        """A field of the site's own."""

    show = type_of(Colour(null=True)).show
    assert [show(each) for each in ((255, 0, 0), None)] == ["(255, 0, 0)", None]


def test_it_begins_with_a_model():
    with pytest.raises(RegistrationError, match="Fields begins with a model"):
        Fields("Ticket", ["id"])
