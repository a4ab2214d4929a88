"""The site of REST framework's tutorial, taken in with five lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.db import connection
from django.test import Client as Browser
from django.test.utils import CaptureQueriesContext
from rest_framework import filters, permissions, viewsets

from django_mcp import MCPServer, RegistrationError
from django_mcp.client import Client
from django_mcp.server.api_requests import MAX_ROWS
from tests.server.support import REVISIONS, client_of

from .snippets import api, tools
from .snippets.models import Snippet
from .support import as_client

pytestmark = pytest.mark.django_db


@pytest.fixture
def anna() -> User:
    return User.objects.create(username="anna")


def snippets(owner: User, count: int = 1, **more: Any) -> list[Snippet]:
    return [Snippet.objects.create(owner=owner, code=f"print({n})", **more) for n in range(count)]


def test_five_lines_take_it_in():
    code = Path(str(tools.__file__)).read_text().partition("server = ")[2]
    lines = [line for line in code.splitlines() if line.strip()]
    assert len(lines) <= 5, lines


@pytest.mark.django_db(transaction=True)
def test_a_client_calls_each_tool(anna):
    async def talk(client: Client) -> dict[str, Any]:
        said: dict[str, Any] = {}

        async def call(tool: str, **arguments: Any) -> Any:
            result = await client.call_tool(tool, arguments)
            assert not result.is_error, result
            said[tool] = result.structured_content
            return said[tool]

        assert {each.name for each in await client.list_tools()} == {
            *("list_users", "get_user", "list_snippets", "get_snippet", "create_snippet"),
            *("update_snippet", "delete_snippet", "highlight_snippet"),
        }
        made = await call("create_snippet", code="<b>", language="rust")
        key = made["id"]
        await call("update_snippet", id=key, title="Bold")
        await call("get_snippet", id=key)
        await call("list_snippets", page=1)
        await call("highlight_snippet", id=key)
        await call("list_users")
        await call("get_user", id=anna.pk)
        await call("delete_snippet", id=key)
        return said

    said = as_client(anna, "snippets/mcp", talk)
    made = said["create_snippet"]
    place = f"http://testserver/snippets/{made['id']}/"
    assert made == {
        "url": place,
        "id": made["id"],
        "highlight": f"{place}highlight/",
        "owner": "anna",
        "title": "",
        "code": "<b>",
        "linenos": False,
        "language": "rust",
        "style": "friendly",
    }
    assert said["get_snippet"] == {**made, "title": "Bold"}
    assert said["list_snippets"] == {
        "count": 1,
        "next": None,
        "previous": None,
        "results": [said["get_snippet"]],
    }
    assert said["highlight_snippet"] == {"result": "<pre class=rust>&lt;b&gt;</pre>"}
    assert said["get_user"]["snippets"] == [place]
    assert said["list_users"]["results"] == [said["get_user"]]
    assert not Snippet.objects.exists()


@pytest.mark.parametrize("revision", REVISIONS)
def test_what_the_serializer_says_is_what_models_are_shown(revision, anna):
    client = client_of(tools.server, revision).as_user(anna)
    described = {tool["name"]: tool for tool in client.list_tools()}
    create = described["create_snippet"]["inputSchema"]
    assert create["required"] == ["code"]
    assert {*create["properties"]} == {"title", "code", "linenos", "language", "style"}
    assert create["properties"]["language"]["enum"] == ["c", "python", "rust"]
    assert described["highlight_snippet"]["inputSchema"]["required"] == ["id"]


def test_links_of_pages_are_arguments(anna):
    snippets(anna, 11)
    client = client_of(tools.server).as_user(anna)
    first = client.tool("list_snippets").structured
    assert (first["count"], first["next"], len(first["results"])) == (11, {"page": "2"}, 10)
    assert len(client.tool("list_snippets", **first["next"]).structured["results"]) == 1
    client.tool("list_snippets", owner="anna").assert_failed("owner: unknown argument")


def functions() -> MCPServer:
    server = MCPServer("functions")
    server.viewset(api.api_root, actions=["get"])
    server.viewset(
        api.snippet_list, actions=["get", "post"], serializers={"post": api.PlainSerializer}
    )
    server.viewset(
        api.snippet_detail,
        actions=["get", "put", "delete"],
        kwargs={"pk": int},
        serializers={"put": api.PlainSerializer},
    )
    server.viewset(api.SnippetStatistics, actions=["get"])
    return server


def test_functions_are_taken_by_their_methods(anna):
    client = client_of(functions()).as_user(anna)
    described = {tool["name"]: tool for tool in client.list_tools()}
    assert [*described] == [
        "api_root",
        "delete_snippet_detail",
        "get_snippet_detail",
        "get_snippet_list",
        "post_snippet_list",
        "put_snippet_detail",
        "snippet_statistics",
    ]
    assert described["api_root"]["description"] == "Say where things are."
    put = described["put_snippet_detail"]
    assert put["description"] == "Show, replace or delete a snippet."
    assert put["annotations"] == {"readOnlyHint": False, "destructiveHint": True}
    assert {*put["inputSchema"]["required"]} == {"id", "code"}
    assert put["inputSchema"]["properties"]["id"] == {"type": "integer"}
    statistics = described["snippet_statistics"]
    assert statistics["description"] == "Count the snippets of a language."
    assert statistics["inputSchema"]["properties"] == {"language": {"type": "string"}}


def test_functions_are_called(anna):
    client = client_of(functions()).as_user(anna)
    assert client.tool("api_root").structured == {
        "users": "http://testserver/users/",
        "snippets": "http://testserver/snippets/",
    }
    made = client.tool("post_snippet_list", code="x", language="c").assert_ok().structured
    assert Snippet.objects.get().owner == anna
    assert client.tool("get_snippet_list").structured == {"results": [made]}
    assert client.tool("get_snippet_detail", id=made["id"]).structured == made
    replaced = client.tool("put_snippet_detail", id=made["id"], code="y").structured
    assert replaced["code"] == "y"
    assert client.tool("snippet_statistics", language="c").structured == {"result": 1}
    client.tool("delete_snippet_detail", id=made["id"]).assert_structured({})
    client.tool("get_snippet_detail", id=made["id"]).assert_failed("does not exist")
    client.tool("post_snippet_list", code="").assert_failed("code: This field may not be blank.")
    client.tool("get_snippet_detail", id="x").assert_failed("id: ")


class Wanted(api.serializers.Serializer):
    owner = api.serializers.CharField(required=False, help_text="Whose.")


def test_a_serializer_may_describe_a_query(anna):
    snippets(anna, 3, language="c")
    server = MCPServer("test")
    server.viewset(
        api.SnippetStatistics,
        actions=["get"],
        kwargs={"language": "c"},
        serializers={"get": Wanted},
        name="count_snippets",
    )
    client = client_of(server).as_user(anna)
    (tool,) = client.list_tools()
    assert tool["name"] == "count_snippets"
    assert tool["inputSchema"]["properties"] == {
        "owner": {"type": "string", "description": "Whose."}
    }
    assert client.tool("count_snippets", owner="anna").structured == {"result": 3}
    assert client.tool("count_snippets", owner="berta").structured == {"result": 0}


def test_generic_views_are_taken_in_as_well(anna):
    server = MCPServer("generic")
    server.viewset(api.SnippetList, actions=["get", "post"])
    server.viewset(api.SnippetDetail.as_view(), actions=["get", "put", "delete"])
    client = client_of(server).as_user(anna)
    made = client.tool("create_snippet", code="x").structured
    assert client.tool("update_snippet", id=made["id"], title="T").structured["code"] == "x"
    assert client.tool("list_snippets").structured["count"] == 1
    client.tool("delete_snippet", id=made["id"]).assert_ok()


class Cached(api.SnippetStatistics):
    http_method_names = ["get", "options"]

    def get(self, request, *args, **kwargs):
        return super().get(request, kwargs["language"])


@pytest.mark.parametrize(
    ("view", "options", "cure"),
    [
        (api.snippet_detail, {"actions": ["get"]}, r'kwargs=\{"pk": int\}'),
        (api.snippet_list, {"actions": ["post"]}, r'serializers=\{"post": ...\}'),
        (api.snippet_list, {"actions": ["patch"]}, "It has: get, post"),
        (api.snippet_list, {"actions": ["get"], "serializers": {"post": None}}, "none of the"),
        (Cached, {"actions": ["post"]}, "It has: get"),
        (lambda request: None, {"actions": ["get"]}, "Write a function that calls it"),
        (
            api.SnippetViewSet.as_view({"get": "list"}),
            {"actions": ["list"]},
            r"without as_view\(\)",
        ),
    ],
)
def test_what_cannot_be_taken_is_refused_with_the_cure(view, options, cure):
    with pytest.raises(RegistrationError, match=cure):
        MCPServer("test").viewset(view, **options)


def test_a_class_that_looks_into_the_url_is_told_what_stands_there(anna):
    server = MCPServer("test")
    server.viewset(Cached, actions=["get"], kwargs={"language": str}, name="count")
    snippets(anna, language="c")
    assert client_of(server).as_user(anna).tool("count", language="c").structured == {"result": 1}


def test_a_list_without_pages_is_refused_where_it_is_long(anna):
    Snippet.objects.bulk_create(Snippet(owner=anna, code="x") for _ in range(MAX_ROWS + 1))
    client = client_of(functions()).as_user(anna)
    client.tool("get_snippet_list").assert_failed("has 201 entries, and no pages")


class Ordered(viewsets.ReadOnlyModelViewSet):
    queryset = Snippet.objects.all()
    serializer_class = api.SnippetSerializer
    permission_classes = [permissions.AllowAny]
    filter_backends = [filters.OrderingFilter]
    ordering_fields = ["title", "created"]
    pagination_class = api.TenAPage


def test_an_order_that_the_list_does_not_know_is_an_error(anna):
    for title in ("b", "a"):
        snippets(anna, title=title)
    server = MCPServer("test")
    server.viewset(Ordered, actions=["list"])
    client = client_of(server)
    (tool,) = client.list_tools()
    assert "title, created" in tool["inputSchema"]["properties"]["ordering"]["description"]
    page = client.tool("list_snippets", ordering="-title, created").structured
    assert [each["title"] for each in page["results"]] == ["b", "a"]
    for wrong in ("owner__password", "title,owner", "--title"):
        client.tool("list_snippets", ordering=wrong).assert_failed("is none of title, created.")


def test_a_site_that_lets_arguments_pass_is_told_of_these_all_the_same(settings, anna):
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "STRICT_ARGUMENTS": False}
    client = client_of(tools.server).as_user(anna)
    client.tool("list_snippets", language="c").assert_failed("language: unknown argument")


def test_a_list_asks_no_more_of_the_database_than_the_api(anna):
    snippets(anna, 5)
    browser = Browser()
    with CaptureQueriesContext(
        connection,
    ) as by_api:
        assert browser.get("/snippets/").json()["count"] == 5
    client = client_of(tools.server).as_user(AnonymousUser())
    with CaptureQueriesContext(connection) as by_tool:
        assert client.tool("list_snippets").structured["count"] == 5
    added = {each["sql"] for each in by_tool} - {each["sql"] for each in by_api}
    assert {sql for sql in added if "SAVEPOINT" not in sql} == set()
    assert len([each for each in by_tool if "SAVEPOINT" not in each["sql"]]) == len(by_api)
