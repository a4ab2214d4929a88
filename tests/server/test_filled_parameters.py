"""Parameters that the server fills in: ``Load`` and ``Provide``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import pytest
from django.contrib.auth.models import AnonymousUser, Group, Permission, User
from django.contrib.sessions.models import Session
from django.http import HttpRequest
from pydantic import Field

from django_mcp import Ask, Context, Elicit, Load, MCPServer, Provide, RegistrationError
from django_mcp.models import Session as MCPSession
from django_mcp.testing import MCPClient
from tests.server.support import MODERN, REVISIONS, client_of, describe_tool, serve_tool

CHANGE, VIEW = "auth.change_group", "auth.view_group"


@pytest.fixture
def clerks(db) -> Group:
    return Group.objects.create(name="clerks")


def user_with(*permissions: str) -> User:
    user = User.objects.create(username="anna")
    for permission in permissions:
        codename = permission.split(".")[1]
        user.user_permissions.add(Permission.objects.get(codename=codename))
    return user


def rename(group: Annotated[Group, Load(permission=CHANGE)], name: str) -> str:
    """Rename a group."""
    group.name = name
    group.save()
    return f"{group.pk} is {name}"


async def arename(group: Annotated[Group, Load(permission=CHANGE)], name: str) -> str:
    """Rename a group."""
    group.name = name
    await group.asave()
    return f"{group.pk} is {name}"


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("function", [rename, arename])
def test_a_key_becomes_the_object(function, revision, clerks):
    client = client_of(serve_tool(function), revision).as_user(user_with(CHANGE))
    client.tool("it", group_id=clerks.pk, name="staff").assert_contains(f"{clerks.pk} is staff")
    clerks.refresh_from_db()
    assert clerks.name == "staff"


@pytest.mark.parametrize("function", [rename, arename])
def test_whoever_may_not_see_an_object_hears_that_there_is_none(function, clerks):
    client = client_of(serve_tool(function)).as_user(user_with())
    refused = client.tool("it", group_id=clerks.pk, name="mine").assert_failed()
    missing = client.tool("it", group_id=clerks.pk + 1, name="mine").assert_failed()
    assert refused.text == missing.text == "No Group matches the given query."
    clerks.refresh_from_db()
    assert clerks.name == "clerks"


@pytest.mark.parametrize("function", [rename, arename])
def test_whoever_may_only_see_it_hears_that_they_may_not(function, clerks):
    client = client_of(serve_tool(function)).as_user(user_with(VIEW))
    client.tool("it", group_id=clerks.pk, name="mine").assert_failed("You may not do this.")


def test_anonymous_callers_have_no_permissions(clerks):
    client = client_of(serve_tool(rename)).as_user(AnonymousUser())
    client.tool("it", group_id=clerks.pk, name="mine").assert_failed("No Group matches")


class OwnGroups:
    """A backend that knows permissions of objects: on the groups of the user's name."""

    def authenticate(self, request: Any, **credentials: Any) -> None:
        return None

    def has_perm(self, user: Any, permission: str, obj: Any = None) -> bool:
        return obj is not None and obj.name == user.username


def test_a_permission_for_this_object_is_enough(clerks, settings):
    settings.AUTHENTICATION_BACKENDS = [
        "django.contrib.auth.backends.ModelBackend",
        f"{__name__}.OwnGroups",
    ]
    mine = Group.objects.create(name="anna")
    client = client_of(serve_tool(rename)).as_user(user_with())
    client.tool("it", group_id=mine.pk, name="anna").assert_ok()
    client.tool("it", group_id=clerks.pk, name="anna2").assert_failed("No Group matches")


def own_groups(ctx: Context) -> Any:
    return ctx.user.groups.all()


def own_groups_of_request(request: HttpRequest) -> Any:
    return request.user.groups.all()


def groups_beginning(name: str) -> Any:
    return Group.objects.filter(name__startswith=name)


def look(function: Callable[..., Any]) -> Callable[..., str]:
    def it(group: Group, name: str = "c") -> str:
        return group.name

    it.__annotations__["group"] = Annotated[Group, Load(function)]
    return it


@pytest.mark.parametrize("function", [own_groups, own_groups_of_request])
def test_a_function_says_which_objects_the_caller_may_have(function, clerks):
    user = user_with()
    client = client_of(serve_tool(look(function))).as_user(user)
    client.tool("it", group_id=clerks.pk).assert_failed("No Group matches")
    user.groups.add(clerks)
    client.tool("it", group_id=clerks.pk).assert_contains("clerks")


def test_such_a_function_takes_other_arguments(clerks):
    client = client_of(serve_tool(look(groups_beginning))).as_user(user_with())
    client.tool("it", group_id=clerks.pk).assert_contains("clerks")
    client.tool("it", group_id=clerks.pk, name="x").assert_failed("No Group matches")


async def agroups(ctx: Context) -> Any:
    return Group.objects.all()


def test_an_asynchronous_one_serves_asynchronous_functions(clerks):
    async def it(group: Annotated[Group, Load(agroups)]) -> str:
        return group.name

    client_of(serve_tool(it)).tool("it", group_id=clerks.pk).assert_contains("clerks")
    with pytest.raises(RegistrationError, match="agroups is asynchronous"):
        serve_tool(look(agroups))


def test_the_schema_has_the_key_and_not_the_object():
    def it(
        user: Annotated[User, Load(User.objects, field="username", argument="login")],
        session: Annotated[MCPSession, Load(MCPSession.objects)],
        group: Annotated[Group | None, Load(Group.objects)] = None,
    ) -> str:
        """Say something.

        Args:
            session: Whose words they are.
        """
        return f"{user} {session} {group}"

    schema = describe_tool(it)["inputSchema"]
    assert schema["required"] == ["login", "session_id"]
    properties = schema["properties"]
    assert [*properties] == ["login", "session_id", "group_id"]
    assert properties["login"]["maxLength"] == 150
    assert properties["login"]["description"] == "The username of the user."
    assert properties["session_id"] == {
        "type": "string",
        "format": "uuid",
        "description": "Whose words they are.",
    }
    assert properties["group_id"]["type"] == "integer"
    assert properties["group_id"]["description"] == "The ID of the group."


def test_an_object_may_be_left_out(clerks):
    def it(group: Annotated[Group | None, Load(Group.objects)] = None) -> str:
        return "none" if group is None else group.name

    client = client_of(serve_tool(it))
    client.tool("it").assert_contains("none")
    client.tool("it", group_id=clerks.pk).assert_contains("clerks")


@pytest.mark.parametrize("key", [10**40, -1, 0])
def test_a_number_that_no_key_can_be_finds_nothing(key, clerks):
    client = client_of(serve_tool(look(lambda: Group.objects.all())))
    client.tool("it", group_id=key).assert_failed("No Group matches")


def find_session(session: Annotated[Session, Load(Session.objects)]) -> str:
    return session.session_key


def test_an_object_that_a_join_gives_several_times_is_one(clerks):
    for name in ("anna", "ben"):
        User.objects.create(username=name).groups.add(clerks)
    client = client_of(serve_tool(look(lambda: Group.objects.filter(user__isnull=False))))
    client.tool("it", group_id=clerks.pk).assert_ok()


@pytest.mark.parametrize("key", ["", "%"])
def test_a_text_that_no_key_can_be_finds_nothing(key, db):
    client_of(serve_tool(find_session)).tool("it", session_id=key).assert_failed("No Session")


def test_what_no_database_has_is_not_asked_for():
    """PostgreSQL would fail, and the whole transaction with it. Here nobody may ask it at all."""
    client_of(serve_tool(find_session)).tool("it", session_id="a\x00b").assert_failed("No Session")


def test_what_is_no_key_at_all_is_an_error_of_the_argument(clerks):
    client = client_of(serve_tool(look(lambda: Group.objects.all())))
    client.tool("it", group_id="clerks").assert_failed("group_id: Input should be a valid integer")
    client.tool("it").assert_failed("group_id: this argument is required")
    client.tool("it", group_id=1, group="x").assert_failed("group: unknown argument")


def test_resources_and_prompts_have_them_too(clerks):
    server = MCPServer("test")

    @server.resource("group://{group_id}", ttl=60)
    def group(group: Annotated[Group, Load(own_groups)]) -> str:
        return group.name

    @server.prompt
    def welcome(group: Annotated[Group, Load(own_groups)]) -> str:
        return f"Welcome to the {group.name}!"

    user = user_with()
    client = client_of(server).as_user(user)
    client.read(f"group://{clerks.pk}").assert_error(-32602)
    client.prompt("welcome", group_id=str(clerks.pk)).assert_error(-32602)
    user.groups.add(clerks)
    read = client.read(f"group://{clerks.pk}").assert_contains("clerks")
    assert read.result["cacheScope"] == "private", "others may not have it"
    client.prompt("welcome", group_id=str(clerks.pk)).assert_contains("Welcome to the clerks!")


def current_team(ctx: Context) -> str:
    return f"team of {ctx.user}"


def language(request: HttpRequest) -> str:
    return request.headers.get("Accept-Language", "none")


def greeting(team: str, name: str) -> str:
    return f"{name} and the {team}"


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_function_provides_what_clients_do_not_see(revision, db):
    def it(
        name: str,
        team: Annotated[str, Provide(current_team)],
        greeting: Annotated[str, Provide(greeting)],
    ) -> str:
        return f"{greeting}, {team}"

    async def ait(
        name: str,
        team: Annotated[str, Provide(current_team)],
        greeting: Annotated[str, Provide(greeting)],
    ) -> str:
        return f"{greeting}, {team}"

    for function in (it, ait):
        assert [*describe_tool(function)["inputSchema"]["properties"]] == ["name"]
        client = client_of(serve_tool(function), revision).as_user(user_with_name("eve"))
        said = client.tool("it", name="Bob")
        said.assert_contains("Bob and the team of eve, team of eve")
        client.tool("it", name="Bob", team="mine").assert_failed("team: unknown argument")


def user_with_name(name: str) -> User:
    return User.objects.get_or_create(username=name)[0]


class Basket:
    size = 3


def basket() -> Basket:
    return Basket()


def test_what_it_provides_need_be_no_json(db):
    def it(basket: Annotated[Basket, Provide(basket)]) -> int:
        return basket.size

    client_of(serve_tool(it)).tool("it").assert_structured(3)


def really(group: Group) -> Elicit:
    return Elicit(f"Delete the {group.name}?")


@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
def test_a_question_may_be_about_the_object_that_was_loaded(revision, clerks):
    def it(
        group: Annotated[Group, Load(permission=CHANGE)],
        sure: Annotated[bool, Ask(really)],
    ) -> str:
        return f"{group.name}: {sure}"

    client = MCPClient(serve_tool(it), revision=revision, answers=[{"value": True}])
    client = client.as_user(user_with(CHANGE))
    client.tool("it", group_id=clerks.pk).assert_contains("clerks: True")
    assert [each.message for each in client.asked] == ["Delete the clerks?"]


def test_nobody_is_asked_about_an_object_that_they_may_not_have(clerks):
    def it(
        group: Annotated[Group, Load(permission=CHANGE)],
        sure: Annotated[bool, Ask(really)],
    ) -> str:
        return "done"

    client = MCPClient(serve_tool(it), revision=MODERN, answers=[]).as_user(user_with())
    client.tool("it", group_id=clerks.pk).assert_failed("No Group matches")
    assert client.asked == []


def anybody(group: Annotated[Group, Load()]) -> None: ...


def no_model(group: Annotated[str, Load(permission=CHANGE)]) -> None: ...


def not_unique(user: Annotated[User, Load(User.objects, field="email")]) -> None: ...


def no_field(user: Annotated[User, Load(User.objects, field="shoes")]) -> None: ...


def taken(group: Annotated[Group, Load(Group.objects)], group_id: int) -> None: ...


def uncalled(group: Annotated[Group, Load]) -> None: ...


def twice(group: Annotated[Group, Load(Group.objects), Ask("Which?")]) -> None: ...


def needy(group: Annotated[Group, Provide(greeting)]) -> None: ...


@pytest.mark.parametrize(
    ("function", "cure"),
    [
        (anybody, r"`Load\(Group\.objects\)`"),
        (no_model, "an instance of a model"),
        (not_unique, "'email' is no unique field"),
        (no_field, "User has no field named 'shoes'"),
        (taken, r"Choose another name: `Load\(argument=\.\.\.\)`"),
        (uncalled, "Load and Provide are called"),
        (twice, "Take either Ask, or Load or Provide"),
        (needy, "greeting takes 'team', which is no argument of needy"),
    ],
)
def test_what_cannot_work_is_refused_with_the_cure(function, cure):
    with pytest.raises(RegistrationError, match=cure):
        serve_tool(function)


def test_what_clients_send_is_described_by_the_site():
    def it(
        name: Annotated[str, Field(description="The new one.")],
        group: Annotated[Group, Load(Group.objects)],
    ) -> None:
        """Rename.

        Args:
            group: Which of them.
        """

    properties = describe_tool(it)["inputSchema"]["properties"]
    assert properties["group_id"]["description"] == "Which of them."
