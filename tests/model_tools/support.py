"""Users with permissions, and servers with the tools of one model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.contrib.auth.models import AnonymousUser, Permission, User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from jsonschema import Draft202012Validator

from django_mcp import MCPServer, ModelTools
from django_mcp.testing import MCPClient

from .desk.models import Comment, Company, Customer, Tag, Ticket

MODERN = "2026-07-28"
MAX_PAGES = 100


def serve(options: type[ModelTools], model: Any = Ticket) -> MCPServer:
    server = MCPServer("desk")
    server.model(model)(options)
    return server


def client_for(options: type[ModelTools], user: Any, model: Any = Ticket, **more: Any) -> MCPClient:
    more.setdefault("revision", MODERN)
    return MCPClient(serve(options, model), **more).as_user(user)


def user_with(*codenames: str, username: str = "", **more: Any) -> Any:
    """A user who has these permissions, by their names without the app."""
    user = User.objects.create(username=username or f"user{User.objects.count()}", **more)
    found = Permission.objects.filter(codename__in=codenames)
    assert len(found) == len(codenames), codenames
    user.user_permissions.set(found)
    return User.objects.get(pk=user.pk)


def viewer(**more: Any) -> Any:
    return user_with("view_ticket", **more)


def nobody() -> Any:
    return AnonymousUser()


def customer(name: str = "Ada", **more: Any) -> Customer:
    return Customer.objects.create(name=name, **more)


def ticket(number: int = 1, **more: Any) -> Ticket:
    more.setdefault("subject", f"Subject {number}")
    if "customer" not in more:
        more["customer"] = Customer.objects.first() or customer()
    return Ticket.objects.create(number=f"T-{number}", **more)


def tickets(count: int, **more: Any) -> list[Ticket]:
    """Tickets each of which has a customer of its own, of a company of its own, tags, comments."""
    author = User.objects.first() or User.objects.create(username="author")
    made = []
    for number in range(1, count + 1):
        of = Company.objects.create(name=f"Company {number}")
        one = ticket(number, customer=customer(f"Customer {number}", company=of), **more)
        one.tags.set([Tag.objects.create(name=f"tag {number}.{each}") for each in range(2)])
        Comment.objects.create(ticket=one, author=author, text=f"Comment {number}")
        made.append(one)
    return made


def found(client: MCPClient, tool: str = "find_tickets", /, **arguments: Any) -> dict[str, Any]:
    answer: dict[str, Any] = client.tool(tool, **arguments).assert_ok().result["structuredContent"]
    return answer


def ids(client: MCPClient, tool: str = "find_tickets", /, **arguments: Any) -> list[Any]:
    return [item["id"] for item in found(client, tool, **arguments)["items"]]


def walk(client: MCPClient, tool: str = "find_tickets", /, **arguments: Any) -> Iterator[Any]:
    """All rows, page by page."""
    page = found(client, tool, **arguments)
    yield from page["items"]
    for _ in range(MAX_PAGES):
        if "next" not in page:
            return
        page = found(client, tool, **arguments, next=page["next"])
        yield from page["items"]
    raise AssertionError("The pages have no end.")


def described(client: MCPClient, tool: str) -> dict[str, Any]:
    return next(each for each in client.list_tools() if each["name"] == tool)


def assert_fits(client: MCPClient, tool: str, result: Any) -> None:
    """The result is what the tool's output schema says."""
    schema = described(client, tool)["outputSchema"]
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(result)


@contextmanager
def counted() -> Iterator[list[str]]:
    """The statements within the block."""
    statements: list[str] = []
    with CaptureQueriesContext(connection) as captured:
        yield statements
    statements += [each["sql"] for each in captured.captured_queries]
