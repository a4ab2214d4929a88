"""Operations of django-ninja as tools."""

from __future__ import annotations

import json
import subprocess
import sys
from io import BytesIO
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, Group, User
from django.core.cache import cache
from django.http import FileResponse, HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Header, NinjaAPI, Query, Router, Schema, Status
from ninja.errors import HttpError
from ninja.security import django_auth
from ninja.throttling import AnonRateThrottle

from django_mcp import MCPServer, RegistrationError
from django_mcp.server.api_requests import api_request
from tests.server.support import REVISIONS, client_of

pytestmark = pytest.mark.django_db

api = NinjaAPI(title="Shop", urls_namespace="ninja-tests")
support = Router(tags=["support"])


class Address(Schema):
    street: str
    number: int | None = None


class GroupIn(Schema):
    name: str
    address: Address | None = None


class GroupOut(Schema):
    id: int
    name: str


class Wanted(Schema):
    prefix: str = ""
    most: int = 10


@support.get("/groups", response=list[GroupOut])
def list_groups(request: HttpRequest, wanted: Query[Wanted]) -> Any:
    """List groups."""
    return Group.objects.filter(name__startswith=wanted.prefix).order_by("name")[: wanted.most]


@support.get("/groups/{int:group_id}", response=GroupOut)
def get_group(request: HttpRequest, group_id: int) -> Any:
    return get_object_or_404(Group, pk=group_id)


@support.post("/groups/{int:group_id}", response={200: GroupOut, 201: GroupOut}, auth=django_auth)
def change_group(request: HttpRequest, group_id: int, given: GroupIn, note: str = "") -> Any:
    """Change a group."""
    group, _ = Group.objects.get_or_create(pk=group_id)
    group.name = f"{given.name} {note} {request.auth} {request.get_host()}"
    group.save()
    if given.name == "half":
        raise HttpError(409, "Only half of it.")
    if given.name == "crash":
        raise ZeroDivisionError
    return Status(201, group)


@support.get("/whoami")
async def whoami(request: HttpRequest) -> Any:
    return {"user": str(request.user)}


@support.post("/many")
def many(request: HttpRequest, numbers: list[int]) -> Any:
    return sum(numbers)


@support.get("/slow", throttle=[AnonRateThrottle("1/d")])
def slow(request: HttpRequest) -> Any:
    return {}


@api.post("/collision/{name}", tags=["odd"])
def collision(request: HttpRequest, name: str, given: GroupIn) -> Any:
    return {}


@api.get("/header", tags=["header"])
def header(request: HttpRequest, x_key: str = Header(...)) -> Any:
    return {}


reports: list[BytesIO] = []


@api.get("/report", tags=["report"])
def report(request: HttpRequest) -> Any:
    reports.append(BytesIO(b'{"rows": 3}'))
    return FileResponse(reports[-1], content_type="application/json")


api.add_router("", support)


def anybody(user: Any) -> bool:
    return True


def serve(**options: Any) -> MCPServer:
    server = MCPServer("test")
    chosen = options if {"tags", "operations"} & {*options} else {"tags": ["support"], **options}
    server.ninja(api, **{"permission": anybody, **chosen})
    return server


@pytest.fixture
def client() -> Any:
    return client_of(serve()).as_user(User.objects.create(username="anna"))


def test_path_query_and_body_are_one_flat_object(client):
    tools = {tool["name"]: tool for tool in client.list_tools()}
    assert [*tools] == ["change_group", "get_group", "list_groups", "many", "slow", "whoami"]
    change = tools["change_group"]["inputSchema"]
    assert {*change["properties"]} == {"group_id", "name", "address", "note"}
    assert {*change["required"]} == {"group_id", "name"}
    address = change["properties"]["address"]
    assert "$ref" not in str(address)
    assert "street" in str(address)
    listed = tools["list_groups"]
    assert {*listed["inputSchema"]["properties"]} == {"prefix", "most"}
    assert listed["description"] == "List groups."
    assert listed["annotations"]["readOnlyHint"] is True


@pytest.mark.parametrize("revision", REVISIONS[1:])
def test_operations_are_run(revision):
    anna = User.objects.create(username="anna")
    client = client_of(serve(), revision).as_user(anna)
    given = {"group_id": 7, "name": "clerks", "note": "now", "address": {"street": "s"}}
    made = client.tool("change_group", **given).assert_ok().structured
    assert made == {"id": 7, "name": "clerks now anna testserver"}
    Group.objects.create(name="cooks")
    found = client.tool("list_groups", prefix="c", most=1).structured
    assert found == {"result": [made]}
    assert client.tool("get_group", group_id=7).structured == made
    assert client.tool("many", body=[1, 2]).structured == {"result": 3}
    assert client.tool("whoami").structured == {"user": "anna"}


@pytest.mark.parametrize(
    ("tool", "given", "said"),
    [
        ("get_group", {"group_id": 1}, "Not Found"),
        ("get_group", {"group_id": "x"}, "group_id: Input should be a valid integer"),
        ("change_group", {"group_id": 1}, "name: this argument is required"),
        ("change_group", {"group_id": 1, "name": 3}, "name: Input should be a valid string"),
        ("change_group", {"group_id": 1, "name": "half"}, "Only half of it."),
        ("change_group", {"group_id": 1, "name": "crash"}, "The tool failed. (reference"),
        ("many", {"body": ["x"]}, "Input should be a valid integer"),
        ("list_groups", {"sort": "x"}, "sort: unknown argument"),
    ],
)
def test_what_the_api_refuses_is_told_and_rolled_back(tool, given, said, client):
    client.tool(tool, **given).assert_failed(said)
    assert not Group.objects.exists()


def test_each_thing_that_does_not_fit_is_told_with_its_place(client):
    answer = client.tool("many", body=[1, "x", "y"])
    assert [line.partition(":")[0] for line in answer.text.splitlines()] == [
        "body.1",
        "body.2",
    ]
    wrong = {"name": 3, "address": {"street": 4}}
    answer = client.tool("change_group", group_id=1, **wrong)
    assert [line.partition(":")[0] for line in answer.text.splitlines()] == [
        "name",
        "address.street",
    ]
    assert client.tool("list_groups", most="x").text.startswith("most: ")


def test_a_file_that_an_operation_answers_is_closed():
    assert client_of(serve(tags=["report"])).tool("report").structured == {"rows": 3}
    assert reports.pop().closed


def test_the_request_of_an_api_has_a_body_and_headers_of_its_own(rf):
    came = {"HTTP_ACCEPT": "text/event-stream", "HTTP_TRANSFER_ENCODING": "chunked"}
    request = rf.post("/mcp", {"a": "b"}, **came)
    assert (request.POST["a"], request.headers["Accept"]) == ("b", "text/event-stream")
    asked = api_request(request, "post", query={"q": True}, body={"x": 1})
    assert (asked.GET["q"], asked.POST, json.loads(asked.body)) == ("true", {}, {"x": 1})
    assert asked.headers["Accept"].startswith("application/json")
    assert asked.headers["Content-Length"] == str(len(asked.body))
    assert "Transfer-Encoding" not in asked.headers


def test_throttles_count(client):
    cache.clear()
    anonymous = client_of(serve()).as_user(AnonymousUser())
    anonymous.tool("slow").assert_ok()
    anonymous.tool("slow").assert_failed("Too many requests.")
    cache.clear()


def test_where_the_api_asks_who_it_is_the_site_says_who_may():
    with pytest.raises(RegistrationError, match="Say by permission= who may"):
        serve(operations=["change_group"], permission=None)
    server = serve(operations=["change_group"], permission=lambda user: user.is_staff)
    client = client_of(server).as_user(AnonymousUser())
    assert client.list_tools() == []
    client.tool("change_group", group_id=1, name="x").assert_error(-32602, "Unknown tool")
    serve(operations=["get_group"], permission=None)


def test_the_api_itself_goes_on_asking():
    serve()
    (operation,) = [
        each
        for router in api._get_bound_routers()
        for view in router.path_operations.values()
        for each in view.operations
        if each.view_func.__name__ == "change_group"
    ]
    assert operation.auth_callbacks


@pytest.mark.parametrize(
    ("options", "cure"),
    [
        ({"operations": ["lst"]}, "It has: change_group, collision, get_group"),
        ({"tags": ["orders"]}, "neither an operation nor a tag 'orders'"),
        ({"tags": []}, r"`mcp\.ninja\(api, tags=\[\.\.\.\]\)`"),
        ({"tags": ["odd"]}, "has 'name' in its path and in its body"),
        ({"tags": ["header"]}, "it needs the header 'x_key'"),
    ],
)
def test_what_cannot_be_taken_is_refused_with_the_cure(options, cure):
    with pytest.raises(RegistrationError, match=cure):
        serve(**options)


def test_optional_parts_are_imported_by_nobody_else():
    code = (
        "import django, sys; django.setup(); from django_mcp import mcp; "
        "print([name for name in ('ninja', 'rest_framework', 'PIL') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
