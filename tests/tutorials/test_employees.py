"""The site of django-ninja's tutorial, taken in with three lines."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, User

from django_mcp import MCPServer, RegistrationError
from django_mcp.client import Client
from django_mcp.server.api_requests import MAX_ROWS
from tests.server.support import REVISIONS, client_of

from .employees import tools
from .employees.api import api
from .employees.models import Department, Employee
from .support import as_client

pytestmark = pytest.mark.django_db


@pytest.fixture
def anna() -> User:
    return User.objects.create(username="anna")


@pytest.fixture
def sales() -> Department:
    return Department.objects.create(title="Sales")


def employees(of: Department, *names: str) -> list[Employee]:
    return [Employee.objects.create(first_name="A", last_name=n, department=of) for n in names]


@pytest.mark.django_db(transaction=True)
def test_a_client_calls_each_tool(anna, sales):
    async def talk(client: Client) -> dict[str, Any]:
        said: dict[str, Any] = {}

        async def call(tool: str, **arguments: Any) -> Any:
            result = await client.call_tool(tool, arguments)
            assert not result.is_error, result
            said[tool] = result.structured_content
            return said[tool]

        assert {each.name for each in await client.list_tools()} == {
            *("create_employee", "get_employee", "list_employees"),
            *("update_employee", "delete_employee"),
        }
        person = {"first_name": "Ada", "last_name": "L", "birthdate": "1815-12-10"}
        key = (await call("create_employee", **person, department_id=sales.pk))["id"]
        await call("update_employee", employee_id=key, first_name="Ada", last_name="Lovelace")
        await call("get_employee", employee_id=key)
        await call("list_employees", last_name="Lovelace", limit=5)
        await call("delete_employee", employee_id=key)
        return said

    said = as_client(anna, "employees/mcp", talk)
    assert said["get_employee"] == {
        "id": said["create_employee"]["id"],
        "first_name": "Ada",
        "last_name": "Lovelace",
        "department_id": sales.pk,
        "birthdate": "1815-12-10",
    }
    assert said["list_employees"] == {"items": [said["get_employee"]], "count": 1}
    assert said["delete_employee"] == {"success": True}
    assert not Employee.objects.exists()


@pytest.mark.parametrize("revision", REVISIONS)
def test_filters_and_pages_are_arguments(revision, anna):
    described = {
        each["name"]: each for each in client_of(tools.server, revision).as_user(anna).list_tools()
    }
    taken = described["list_employees"]["inputSchema"]
    assert {*taken["properties"]} == {"last_name", "department_id", "limit", "offset"}
    assert "required" not in taken
    update = described["update_employee"]["inputSchema"]
    assert {*update["required"]} == {"employee_id", "first_name", "last_name"}
    date = {"type": "string", "format": "date"}
    assert described["create_employee"]["inputSchema"]["properties"]["birthdate"] == date
    # What is left out of it stays as it is, so null may be meant.
    assert update["properties"]["birthdate"] == {"anyOf": [date, {"type": "null"}]}


def test_filters_filter(anna, sales):
    employees(sales, "Hopper", "Lovelace", "Hopper")
    client = client_of(tools.server).as_user(anna)
    found = client.tool("list_employees", last_name="Hopper", limit=1).structured
    assert (found["count"], len(found["items"])) == (2, 1)
    assert client.tool("list_employees", department_id=sales.pk + 1).structured["count"] == 0
    client.tool("list_employees", first_name="A").assert_failed("first_name: unknown argument")
    client.tool("list_employees", department_id="x").assert_failed("department_id: Input should")


def test_a_filter_that_does_not_exist_is_an_error_whatever_the_site_says(settings, anna):
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "STRICT_ARGUMENTS": False}
    client = client_of(tools.server).as_user(anna)
    client.tool("list_employees", first_name="A").assert_failed("first_name: unknown argument")


def test_what_is_not_given_is_not_sent(anna, sales):
    (one,) = employees(sales, "Hopper")
    client = client_of(tools.server).as_user(anna)
    given = {"employee_id": one.pk, "first_name": "Grace", "last_name": "Hopper"}
    client.tool("update_employee", **given).assert_ok()
    one.refresh_from_db()
    assert (one.first_name, one.department) == ("Grace", sales)


def test_files_are_not_for_tools():
    with pytest.raises(
        RegistrationError, match="it takes multipart/form-data, and tools have JSON"
    ):
        MCPServer("test").ninja(api, tags=["files"])


def test_where_the_api_asks_who_it_is_the_site_says_who_may():
    with pytest.raises(RegistrationError, match="'create_employee' asks who calls it"):
        MCPServer("test").ninja(api, tags=["employees"])


def test_a_list_without_pages_is_refused_where_it_is_long(sales):
    server = MCPServer("test")
    server.ninja(api, operations=["list_everybody"])
    client = client_of(server).as_user(AnonymousUser())
    employees(sales, "Hopper")
    assert len(client.tool("list_everybody").structured["result"]) == 1
    Employee.objects.bulk_create(
        Employee(first_name="A", last_name="B", department=sales) for _ in range(MAX_ROWS)
    )
    client.tool("list_everybody").assert_failed("The site has to give it @paginate.")
