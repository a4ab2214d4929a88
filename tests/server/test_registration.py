"""What cannot be offered is refused at registration, with the cure in the message."""

from __future__ import annotations

import decimal
import enum
import functools
import json
from collections.abc import AsyncIterator, Callable, Iterable
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from mcp_types import Icon
from pydantic import AliasChoices, BaseModel, Field

from django_mcp import Context, MCPServer, RegistrationError
from django_mcp.server.results import dump

if TYPE_CHECKING:
    from decimal import Decimal as Money


class Arbitrary:
    pass


class Color(enum.Enum):
    RED = "red"


class Unfinished(BaseModel):
    other: Missing  # noqa: F821


def positional_only(amount: int, /) -> None: ...


def many(*amounts: int) -> None: ...


def named(**amounts: int) -> None: ...


def unannotated(amount) -> None: ...


def unannotated_with_default(amount=5) -> None: ...


def arbitrary(thing: Arbitrary) -> None: ...


def nested_arbitrary(things: list[dict[str, Arbitrary]]) -> None: ...


def django_model(user: User) -> None: ...


def function(callback: Callable[[], int]) -> None: ...


def lazy(amounts: Iterable[int]) -> None: ...


def literal_of_members(color: Literal[Color.RED]) -> None: ...


def unimported(price: Money) -> None: ...


def unimported_return() -> Money: ...


def unknown_attribute(price: decimal.Money) -> None: ...


def unfinished(thing: Unfinished) -> None: ...


def misspelt(amount) -> None: ...


misspelt.__annotations__["amount"] = "list of numbers"


def number_as_type(amount: 5) -> None: ...


def bad_pattern(code: Annotated[str, Field(pattern="(")]) -> None: ...


def aliased(amount: Annotated[int, Field(alias="n")]) -> None: ...


def aliased_by_default(amount: int = Field(5, alias="n")) -> None: ...


def aliased_for_validation(amount: Annotated[int, Field(validation_alias="n")]) -> None: ...


def aliased_in_several_ways(
    amount: Annotated[int, Field(validation_alias=AliasChoices("amount", "n"))],
) -> None: ...


def positional_context(ctx: Context, /) -> None: ...


def many_contexts(*ctx: Context) -> None: ...


def two_contexts(first: Context, second: Context) -> None: ...


async def asynchronous_generator() -> AsyncIterator[int]:
    yield 1


def returns_arbitrary() -> Arbitrary: ...


def returns_model() -> User: ...


def returns_function() -> Callable[[], int]: ...


def returns_bytes() -> bytes: ...


def returns_unfinished() -> Unfinished: ...


class Shop:
    def find(self, query: str) -> None: ...


async def later() -> None: ...


REFUSED = {
    positional_only: "positional_only: 'amount' is positional-only.*Remove the `/`",
    many: r"many: \*amounts has no JSON Schema. Name every parameter",
    named: r"named: \*amounts has no JSON Schema",
    unannotated: "annotate the parameter 'amount', for example `amount: str`",
    unannotated_with_default: "annotate the parameter 'amount'",
    arbitrary: "arbitrary: its parameters cannot be expressed.*Arbitrary.*Use types that pydantic",
    nested_arbitrary: "its parameters cannot be expressed.*Arbitrary",
    django_model: "its parameters cannot be expressed.*User",
    function: "its parameters cannot be expressed.*Callable",
    lazy: "its parameters cannot be expressed.*use list instead",
    literal_of_members: "Literal takes members of str or int Enums alone",
    unimported: "names 'Money'.*Import it outside `if TYPE_CHECKING:`",
    unimported_return: "names 'Money'",
    unknown_attribute: "cannot be resolved.*Money",
    unfinished: "its parameters cannot be expressed.*'Missing' is not defined",
    misspelt: "misspelt: an annotation cannot be resolved",
    number_as_type: "number_as_type: ",
    bad_pattern: "its parameters cannot be expressed.*unclosed group",
    aliased: "rename the parameter 'amount' instead of giving it the alias 'n'",
    aliased_by_default: "rename the parameter 'amount' instead",
    aliased_for_validation: "rename the parameter 'amount' instead",
    aliased_in_several_ways: "rename the parameter 'amount' instead",
    positional_context: "'ctx' is positional-only",
    many_contexts: r"\*ctx has no JSON Schema",
    two_contexts: "two_contexts takes two contexts",
    asynchronous_generator: "is an asynchronous generator. Collect what it yields",
    returns_arbitrary: "its return type has no JSON Schema.*Arbitrary.*annotate `-> Any`",
    returns_model: "its return type has no JSON Schema.*User",
    returns_function: "its return type has no JSON Schema",
    returns_bytes: "bytes have no JSON form; wrap them",
    returns_unfinished: "its return type has no JSON Schema",
    Shop.find: "is a method. Register it bound to an object",
}


@pytest.mark.parametrize("refused", REFUSED, ids=lambda each: each.__qualname__)
def test_a_function_that_cannot_be_a_tool_is_refused_with_the_cure(refused):
    server = MCPServer("test")
    with pytest.raises(RegistrationError, match=f"(?s){REFUSED[refused]}") as caught:
        server.tool(refused)
    assert refused.__qualname__ in str(caught.value)
    assert "arbitrary_types_allowed" not in str(caught.value)
    assert server.tools == []


@pytest.mark.parametrize(
    "refused",
    [positional_only, many, unannotated, arbitrary, unimported, aliased, asynchronous_generator],
    ids=lambda each: each.__name__,
)
def test_the_same_goes_for_prompts_resources_and_listings(refused):
    server = MCPServer("test")
    with pytest.raises(RegistrationError):
        server.prompt(refused)
    with pytest.raises(RegistrationError):
        server.resource("x://{amount}")(refused)
    with pytest.raises(RegistrationError):
        server.resource("x://y", list=refused)(lambda: "")
    assert server.prompts == []
    assert server.resources == []


@pytest.mark.parametrize("refused", [5, "find", None, User, Shop, dict], ids=repr)
def test_what_is_no_function_is_refused(refused):
    server = MCPServer("test")
    with pytest.raises(RegistrationError, match="is not a function"):
        server.tool(name="it")(refused)
    with pytest.raises(RegistrationError, match="is not a function"):
        server.completion("prompt", "argument")(refused)


@pytest.mark.parametrize("refused", [print, async_to_sync(later), functools.partial(print)])
def test_a_callable_without_a_usable_signature_is_refused(refused):
    with pytest.raises(RegistrationError):
        MCPServer("test").tool(name="it")(refused)


def ping() -> str:
    return "pong"


async def aping() -> str:
    return "pong"


BAD_NAMES = ["a b", "a/b", "größe", "a:b", "x" * 129, "a\n", "<lambda>", "a,b", "a$"]


@pytest.mark.parametrize("name", BAD_NAMES, ids=repr)
def test_a_bad_name_is_refused(name):
    server = MCPServer("test")
    with pytest.raises(RegistrationError, match="use 1 to 128 letters, digits, underscores"):
        server.tool(name=name)(ping)
    with pytest.raises(RegistrationError, match="use 1 to 128 letters"):
        server.prompt(name=name)(ping)


@pytest.mark.parametrize("name", ["a", "A-b_c.9", "admin.tools.list", "x" * 128])
def test_a_good_name_is_taken(name):
    server = MCPServer("test")
    server.tool(name=name)(ping)
    assert server.find_tool(name) is not None


def test_a_lambda_needs_a_name():
    server = MCPServer("test")
    with pytest.raises(RegistrationError, match="<lambda>"):
        server.tool(lambda: 1)
    server.tool(name="one")(lambda: 1)


def test_a_name_is_taken_once_for_each_kind():
    server = MCPServer("test")
    server.tool(ping)
    server.prompt(ping)
    server.resource("ping://")(ping)
    with pytest.raises(RegistrationError, match="already has a tool 'ping'"):
        server.tool(ping)
    with pytest.raises(RegistrationError, match="already has a prompt 'ping'"):
        server.prompt(ping)
    with pytest.raises(RegistrationError, match="already has a resource 'ping://'"):
        server.resource("ping://")(ping)


def test_names_are_case_sensitive():
    server = MCPServer("test")
    server.tool(ping)
    server.tool(name="Ping")(ping)
    assert [tool.key for tool in server.tools] == ["Ping", "ping"]


def test_a_timeout_needs_a_function_that_can_be_stopped():
    server = MCPServer("test")
    with pytest.raises(RegistrationError, match="ping: timeout= needs an `async def` function"):
        server.tool(timeout=1)(ping)
    for seconds in (0, -1):
        with pytest.raises(RegistrationError, match="aping: timeout="):
            server.tool(timeout=seconds)(aping)
    server.tool(timeout=0.5)(aping)


def test_a_permission_that_would_let_everybody_in_is_refused():
    async def may(user: Any) -> bool:
        return False

    for permission in (may, 5):
        with pytest.raises(RegistrationError, match="permission= takes a Django permission"):
            MCPServer("test").tool(permission=permission)(ping)
        with pytest.raises(RegistrationError, match="permission= takes a Django permission"):
            MCPServer("test").prompt(permission=permission)(ping)
        with pytest.raises(RegistrationError, match="permission= takes a Django permission"):
            MCPServer("test").resource("x://y", permission=permission)(ping)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"input_schema": {"type": "array"}}, 'input_schema= must have "type": "object"'),
        ({"input_schema": {}}, 'input_schema= must have "type": "object"'),
        ({"output_schema": {"type": "string"}}, "output_schema= needs a return annotation"),
        ({"title": 5}, "ping: title: "),
        ({"description": 5}, "ping: description: "),
        ({"meta": {"a": object()}}, "ping: its description is not JSON"),
        ({"icons": [{"sizes": ["1x1"]}]}, "ping: icons"),
    ],
)
def test_options_that_cannot_be_sent_are_refused(options, message):
    with pytest.raises(RegistrationError, match=message):
        MCPServer("test").tool(**options)(ping)


def test_an_explicit_schema_belongs_to_the_site():
    server = MCPServer("test")
    schema = {
        "type": "object",
        "properties": {"region": {"anyOf": [{"type": "string"}], "x-mcp-header": "Region"}},
    }
    before = json.dumps(schema)

    def find(region: str) -> str:
        return region

    server.tool(input_schema=schema)(find)
    assert json.dumps(schema) == before


def test_options_of_a_tool_are_described():
    server = MCPServer("test")
    server.tool(
        title="A ping",
        description="Says pong",
        read_only=True,
        destructive=False,
        idempotent=True,
        open_world=False,
        icons=[Icon(src="https://example.com/i.png", mime_type="image/png", sizes=["48x48"])],
        meta={"example.com/key": {"a": None}},
    )(ping)
    assert server.find_tool("ping").description == {
        "name": "ping",
        "title": "A ping",
        "description": "Says pong",
        "inputSchema": {"type": "object", "properties": {}},
        "annotations": {
            "readOnlyHint": True,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": False,
        },
        "icons": [
            {"src": "https://example.com/i.png", "mimeType": "image/png", "sizes": ["48x48"]}
        ],
        "_meta": {"example.com/key": {"a": None}},
    }


def test_options_not_given_are_not_described():
    server = MCPServer("test")
    server.tool(ping)
    assert server.find_tool("ping").description == {
        "name": "ping",
        "inputSchema": {"type": "object", "properties": {}},
    }


def test_only_the_hints_that_were_given_are_sent():
    server = MCPServer("test")
    server.tool(destructive=False)(ping)
    assert server.find_tool("ping").description["annotations"] == {"destructiveHint": False}


def test_stray_completions_are_found_by_the_check():
    server = MCPServer("test")

    @server.prompt
    def hello(name: str) -> str:
        return name

    @server.resource("y://{id}")
    def item(id: int) -> str:
        return ""

    for reference, argument in [
        ("hello", "nam"),
        ("nobody", "name"),
        ("x://{id}", "id"),
        ("y://{id}", "key"),
    ]:
        server.completion(reference, argument)(lambda value: [])
    server.completion("hello", "name")(lambda value: [])
    server.completion("y://{id}", "id")(lambda value: [])
    assert [line.split(": there")[0] for line in server.check()] == [
        "completion of 'nam' for 'hello'",
        "completion of 'name' for 'nobody'",
        "completion of 'id' for 'x://{id}'",
        "completion of 'key' for 'y://{id}'",
    ]


def test_the_server_describes_itself():
    server = MCPServer(
        "shop",
        version="1.2",
        title="The shop",
        description="Sells",
        website_url="https://example.com",
        icons=[Icon(src="https://example.com/i.png")],
    )
    assert server.implementation() == {
        "name": "shop",
        "version": "1.2",
        "title": "The shop",
        "description": "Sells",
        "websiteUrl": "https://example.com",
        "icons": [dump(Icon(src="https://example.com/i.png"))],
    }
    assert repr(server) == "<MCPServer 'shop'>"
