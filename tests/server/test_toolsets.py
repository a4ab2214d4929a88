"""Toolsets: tools that are methods of one class."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from django.contrib.auth.models import AnonymousUser, Group, Permission, User
from django.http import HttpRequest

from django_mcp import Context, Load, MCPServer, RegistrationError, Toolset, tool
from django_mcp.server.default_server import DefaultServer
from tests.server.support import REVISIONS, client_of


class Billing(Toolset):
    """Invoices and refunds.

    Of which this line says more.
    """

    prefix = "billing_"
    scopes = ("billing",)
    tags = ("money",)

    def setup(self, ctx: Context, year: int) -> None:
        self.caller = str(ctx.user)
        self.year = year
        self.calls = 0

    @tool(read_only=True)
    def total(self, year: int) -> str:
        """Sum up the invoices of a year."""
        self.calls += 1
        return f"{self.caller} {self.year} {year} {self.calls}"

    @tool(name="atotal", read_only=True, tags=["slow"], scopes=["billing:slow"])
    async def total_slowly(self, year: int) -> str:
        """Sum up the invoices of a year."""
        self.calls += 1
        return f"{self.caller} {self.year} {year} {self.calls}"

    def helper(self, year: int) -> str:
        return "No tool."


@pytest.fixture
def server() -> MCPServer:
    server = MCPServer("test", instructions="Be kind.")
    assert server.toolset(Billing) is Billing
    return server


def test_marked_methods_are_tools_and_no_others(server):
    assert [each.key for each in server.tools] == ["billing_atotal", "billing_total"]
    slow, total = server.tools
    assert total.scopes == ("billing",)
    assert slow.scopes == ("billing", "billing:slow")
    assert total.toolsets == {"billing", "money"}
    assert slow.toolsets == {"billing", "money", "slow"}
    assert total.reads_only


def test_they_are_described_as_functions_are(server):
    (_, total) = client_of(server).list_tools()
    assert total["description"] == "Sum up the invoices of a year."
    assert [*total["inputSchema"]["properties"]] == ["year"]


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("name", ["billing_total", "billing_atotal"])
def test_each_call_has_an_instance_of_its_own(name, revision, server, db):
    client = client_of(server, revision).as_user(User.objects.create(username="anna"))
    for _ in range(2):
        client.tool(name, year=2026).assert_contains("anna 2026 2026 1")


def test_a_model_is_told_of_toolsets_that_all_may_see(server):
    @server.toolset
    class Secret(Toolset):
        """Salaries."""

        permission = "auth.view_user"

        @tool
        def salary(self) -> str:
            return "A lot"

    assert server.instructions == "Be kind.\n\nToolsets:\n- billing: Invoices and refunds."
    assert MCPServer("other").instructions is None


@pytest.mark.parametrize("given", ["", "Be kind."])
def test_so_it_is_where_settings_have_the_instructions(given, settings):
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "INSTRUCTIONS": given}
    server = DefaultServer("default")
    assert server.instructions == (given or None)
    server.toolset(Billing)
    toolsets = "Toolsets:\n- billing: Invoices and refunds."
    assert server.instructions == "\n\n".join(filter(None, (given, toolsets)))


def is_in_group(user: Any) -> bool:
    return bool(user.groups.exists())


class Staff(Toolset):
    permission = "auth.view_group"

    @tool
    def look(self) -> str:
        return "seen"

    @tool(permission=is_in_group)
    def change(self) -> str:
        return "changed"


def test_what_the_class_needs_is_needed_beside_what_the_method_needs(db):
    server = MCPServer("test")
    server.toolset(Staff)
    anna = User.objects.create(username="anna")
    anna.groups.add(Group.objects.create(name="clerks"))
    assert names(server, anna) == names(server, AnonymousUser()) == []
    client_of(server).as_user(anna).tool("change").assert_error(-32602)
    eve = User.objects.create(username="eve")
    for user in (anna, eve):
        user.user_permissions.add(Permission.objects.get(codename="view_group"))
    assert names(server, User.objects.get(pk=eve.pk)) == ["look"]
    assert names(server, User.objects.get(pk=anna.pk)) == ["change", "look"]


def names(server: MCPServer, user: Any) -> list[str]:
    return [each["name"] for each in client_of(server).as_user(user).list_tools()]


def noting(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def noted(self: Any, *args: Any, **kwargs: Any) -> Any:
        return f"noted {method(self, *args, **kwargs)}"

    return noted


class Base(Toolset):
    @tool
    def first(self, request: HttpRequest) -> str:
        return f"{type(self).__name__} {request.method}"

    @tool
    def second(self) -> str:
        return "base"

    @tool
    @noting
    def third(self, number: int = 3) -> str:
        return f"{number}"

    @tool
    def fourth(self, group: Annotated[Group, Load(Group.objects)]) -> str:
        return group.name

    @tool
    def fifth(self, *, number: int = 5) -> str:
        return f"{number}"


class Derived(Base):
    name = "other"

    def second(self) -> str:
        return "no tool here"


def test_a_class_inherits_tools_unless_it_overrides_them(db):
    server = MCPServer("test")
    server.toolset(Derived)
    assert [each.key for each in server.tools] == ["fifth", "first", "fourth", "third"]
    assert server.toolsets == {"other": ""}
    client = client_of(server)
    client.tool("first").assert_contains("Derived POST")
    client.tool("third").assert_contains("noted 3")
    client.tool("fifth").assert_contains("5")
    group = Group.objects.create(name="clerks")
    client.tool("fourth", group_id=group.pk).assert_contains("clerks")


def test_methods_stay_methods():
    assert Base().second() == "base"
    assert "self" not in Base.second.__annotations__


class Empty(Toolset):
    pass


class Slow(Toolset):
    async def setup(self) -> None: ...

    @tool
    def it(self) -> None: ...


class Greedy(Toolset):
    def setup(self, shoes: int) -> None: ...

    @tool
    def it(self) -> None: ...


class Nameless(Toolset):
    name = "no name"

    @tool
    def it(self) -> None: ...


@pytest.mark.parametrize(
    ("kind", "cure"),
    [
        (Empty, "Mark its methods with @tool"),
        (Slow, "Make it synchronous"),
        (Greedy, "takes 'shoes', which is no argument of"),
        (Nameless, "cannot be written in URLs and headers"),
        (str, "Derive the class from django_mcp.Toolset"),
        (len, "Derive the class from django_mcp.Toolset"),
    ],
)
def test_what_is_no_toolset_is_refused_with_the_cure(kind, cure):
    with pytest.raises(RegistrationError, match=cure):
        MCPServer("test").toolset(kind)


def test_tags_are_several():
    with pytest.raises(RegistrationError, match="tags= takes several"):
        MCPServer("test").tool(name="it", tags="reports")(lambda: None)


def test_a_tool_can_be_asked_to_be_there_at_once():
    server = MCPServer("test")
    server.tool(name="a", always_load=True, meta={"example.com/x": 1})(lambda: None)
    server.tool(name="b")(lambda: None)
    first, second = client_of(server).list_tools()
    assert first["_meta"] == {"anthropic/alwaysLoad": True, "example.com/x": 1}
    assert "_meta" not in second


@pytest.mark.parametrize("name", ["scopes", "tags"])
def test_one_name_is_not_taken_for_its_letters(name):
    def it(self) -> str:
        return ""

    of_all = type("OfAll", (Toolset,), {name: "money", "it": tool(lambda self: "")})
    of_one = type("OfOne", (Toolset,), {"it": tool(**{name: "money"})(it)})
    for kind in (of_all, of_one):
        with pytest.raises(RegistrationError, match=rf'{name}= takes several, as in \["money"\]'):
            MCPServer("test").toolset(kind)
