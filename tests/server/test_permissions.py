"""``permission=`` hides and refuses alike, whatever is asked for and however."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from django.conf import settings
from django.contrib.auth.models import AnonymousUser, Permission, User
from django.test import override_settings
from mcp_types import Resource

from django_mcp import MCPServer
from tests.server.support import LEGACY, MODERN, REVISIONS, client_of

VIEW = "auth.view_user"


def named_bob(user: Any) -> bool:
    return bool(user.username == "bob")


def serve(permission: Any) -> MCPServer:
    """One open thing of each kind, and one that needs the permission."""
    server = MCPServer("test")
    for name, needed in (("open", None), ("secret", permission)):
        server.tool(name=name, permission=needed)(lambda: "told")

        @server.prompt(name=name, permission=needed)
        def prompt(tone: Literal["calm", "firm"] = "calm") -> str:
            return "told"

        server.resource(f"{name}://all", name=name, permission=needed)(lambda: "told")

        def listed(prefix: str = name) -> list[Resource]:
            return [Resource(uri=f"{prefix}://1", name="one")]

        def template(key: str) -> str:
            return "told"

        server.resource(
            f"{name}://{{key}}",
            name=name,
            permission=needed,
            list=(lambda: listed("open")) if needed is None else (lambda: listed("secret")),
        )(template)
        server.completion(f"{name}://{{key}}", "key")(lambda value: ["told"])
    return server


@pytest.fixture
def bob(db) -> User:
    user = User.objects.create(username="bob")
    user.user_permissions.add(Permission.objects.get(codename="view_user"))
    return user


@pytest.fixture
def eve(db) -> User:
    return User.objects.create(username="eve")


def everything_listed(client: Any) -> list[str]:
    return [
        *(tool["name"] for tool in client.list_tools()),
        *(prompt["name"] for prompt in client.list_prompts()),
        *(resource["uri"] for resource in client.list_resources()),
        *(template["uriTemplate"] for template in client.list_resource_templates()),
    ]


OPEN = ["open", "open", "open://all", "open://1", "open://{key}"]
SECRET = ["secret", "secret", "secret://all", "secret://1", "secret://{key}"]


def requests_for(name: str) -> list[tuple[str, dict[str, Any]]]:
    value = {"name": "tone", "value": ""}
    key = {"name": "key", "value": ""}
    return [
        ("tools/call", {"name": name}),
        ("prompts/get", {"name": name}),
        ("resources/read", {"uri": f"{name}://all"}),
        ("resources/read", {"uri": f"{name}://1"}),
        ("completion/complete", {"ref": {"type": "ref/prompt", "name": name}, "argument": value}),
        (
            "completion/complete",
            {"ref": {"type": "ref/resource", "uri": f"{name}://{{key}}"}, "argument": key},
        ),
    ]


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("permission", [VIEW, named_bob], ids=["codename", "function"])
def test_those_who_may_see_and_use_everything(permission, revision, bob):
    client = client_of(serve(permission), revision).as_user(bob)
    assert sorted(everything_listed(client)) == sorted(OPEN + SECRET)
    for name in ("open", "secret"):
        for method, params in requests_for(name):
            client.request(method, **params).assert_ok()


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("permission", [VIEW, named_bob], ids=["codename", "function"])
@pytest.mark.parametrize("who", ["eve", "anonymous"])
def test_for_those_who_may_not_it_does_not_exist(permission, revision, who, request):
    user = AnonymousUser() if who == "anonymous" else request.getfixturevalue(who)
    request.getfixturevalue("db")
    client = client_of(serve(permission), revision).as_user(user)
    assert sorted(everything_listed(client)) == sorted(OPEN)
    for (method, params), (_, unknown) in zip(
        requests_for("secret"), requests_for("nobody"), strict=True
    ):
        refused = client.request(method, **params).error
        really_unknown = client.request(method, **unknown).error
        assert str(refused).replace("secret", "nobody") == str(really_unknown)
    for method, params in requests_for("open"):
        client.request(method, **params).assert_ok()


def test_a_superuser_sees_what_needs_a_permission(db):
    root = User.objects.create(username="root", is_superuser=True)
    assert "secret" in everything_listed(client_of(serve(VIEW)).as_user(root))


def test_an_inactive_user_may_not(bob):
    bob.is_active = False
    assert "secret" not in everything_listed(client_of(serve(VIEW)).as_user(bob))


def test_a_permission_is_asked_for_each_request(eve):
    client = client_of(serve(VIEW)).as_user(eve)
    client.tool("secret").assert_error(-32602, "Unknown tool: secret")
    eve.user_permissions.add(Permission.objects.get(codename="view_user"))
    client = client_of(serve(VIEW)).as_user(User.objects.get(pk=eve.pk))
    client.tool("secret").assert_ok()


@pytest.mark.parametrize("answer", [True, False, 1, 0, "yes", "", None], ids=repr)
def test_what_is_true_lets_in(answer):
    client = client_of(serve(lambda user: answer))
    listed = [tool["name"] for tool in client.list_tools()]
    assert ("secret" in listed) is bool(answer)


def test_a_permission_that_fails_lets_nobody_in(caplog):
    def broken(user: Any) -> bool:
        raise KeyError("a secret")

    client = client_of(serve(broken))
    for method in ("tools/list", "prompts/list", "resources/list"):
        answer = client.request(method).assert_error(-32603, "Internal error")
        assert "secret" not in str(answer.message)
    client.tool("secret").assert_error(-32603)
    client.tool("open").assert_ok()
    assert "a secret" in caplog.text


def test_arguments_of_a_hidden_tool_are_not_discussed():
    def secret(number: int) -> str:
        return ""

    server = MCPServer("test")
    server.tool(name="secret", permission=lambda user: False)(secret)
    client = client_of(server)
    client.tool("secret", number="x").assert_error(-32602, "Unknown tool: secret")
    client.tool("secret", other=1).assert_error(-32602, "Unknown tool: secret")


def test_a_hidden_template_makes_way_for_one_that_is_not():
    server = MCPServer("test")

    def secret(key: str) -> str:
        return "secret"

    def public(key: str) -> str:
        return "public"

    server.resource("x://a/{key}", permission=lambda user: user.username == "bob")(secret)
    server.resource("x://{+key}")(public)
    assert client_of(server).read("x://a/1").text == "public"
    assert client_of(server).as_user(User(username="bob")).read("x://a/1").text == "secret"


@pytest.mark.django_db
@pytest.mark.parametrize("revision", [LEGACY[2], MODERN])
def test_pages_are_cut_alike_for_everybody_and_nothing_is_lost(revision):
    server = MCPServer("test")
    for number in range(7):
        permission = (lambda user: False) if number in (0, 1, 4) else None
        server.tool(name=f"t{number}", permission=permission)(lambda: "")
    with override_settings(DJANGO_MCP={**settings.DJANGO_MCP, "PAGE_SIZE": 2}):
        client = client_of(server, revision)
        first = client.request("tools/list").result
        assert first["tools"] == []
        assert "nextCursor" in first
        assert [tool["name"] for tool in client.list_tools()] == ["t2", "t3", "t5", "t6"]


def test_a_cursor_into_a_hidden_listing_is_as_good_as_invalid():
    server = serve(named_bob)
    with override_settings(DJANGO_MCP={**settings.DJANGO_MCP, "PAGE_SIZE": 1}):
        bob = client_of(server).as_user(User(username="bob"))
        cursor = None
        cursors = []
        while True:
            params = {"cursor": cursor} if cursor else {}
            result = bob.request("resources/list", **params).result
            if "nextCursor" not in result:
                break
            cursor = result["nextCursor"]
            cursors.append(cursor)
        eve = client_of(server).as_user(User(username="eve"))
        for each in cursors:
            answer = eve.request("resources/list", cursor=each)
            assert "secret://" not in str(answer.message)
        eve.request("resources/list", cursor=cursors[-1]).assert_error(-32602, "Invalid cursor")
