"""What may be registered: any callable with a signature, and any parameter names."""

from __future__ import annotations

import asyncio
import functools
from typing import Annotated, Any, Optional

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from pydantic import validate_call

from django_mcp import Context, MCPServer
from tests.server.support import call, client_of, describe_tool, input_schema, serve_tool


def find(query: str, limit: int = 5) -> str:
    """Find things."""
    return f"{query} {limit}"


async def afind(query: str, limit: int = 5) -> str:
    """Find things."""
    await asyncio.sleep(0)
    return f"{query} {limit}"


class Shop:
    """A shop."""

    def __init__(self, name: str = "shop") -> None:
        self.name = name

    def find(self, query: str, limit: int = 5) -> str:
        """Find things."""
        return f"{query} {limit}"

    async def afind(self, query: str, limit: int = 5) -> str:
        """Find things."""
        return f"{query} {limit}"

    @classmethod
    def find_anywhere(cls, query: str, limit: int = 5) -> str:
        """Find things."""
        return f"{query} {limit}"

    @staticmethod
    def find_nowhere(query: str, limit: int = 5) -> str:
        """Find things."""
        return f"{query} {limit}"


class Finder:
    """Find things."""

    def __call__(self, query: str, limit: int = 5) -> str:
        return f"{query} {limit}"


class AsyncFinder:
    async def __call__(self, query: str, limit: int = 5) -> str:
        """Find things."""
        return f"{query} {limit}"


def logged(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


def alogged(function: Any) -> Any:
    @functools.wraps(function)
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        return await function(*args, **kwargs)

    return wrapper


def find_for(tenant: str, query: str, limit: int = 5) -> str:
    """Find things."""
    return f"{query} {limit}"


async def afind_for(tenant: str, query: str, limit: int = 5) -> str:
    """Find things."""
    return f"{query} {limit}"


CALLABLES = {
    "function": find,
    "coroutine function": afind,
    "bound method": Shop().find,
    "bound coroutine method": Shop().afind,
    "class method": Shop.find_anywhere,
    "static method": Shop.find_nowhere,
    "callable object": Finder(),
    "asynchronous callable object": AsyncFinder(),
    "wrapped": logged(find),
    "wrapped twice": logged(logged(find)),
    "wrapped coroutine function": alogged(afind),
    "partial by position": functools.partial(find_for, "acme"),
    "partial by name": functools.partial(find_for, tenant="acme"),
    "partial of a partial": functools.partial(functools.partial(find_for, tenant="acme")),
    "partial coroutine function": functools.partial(afind_for, tenant="acme"),
    "partial of a method": functools.partial(Shop().find),
    "partial of a callable object": functools.partial(AsyncFinder()),
    "cached": functools.lru_cache(find),
    "made asynchronous": sync_to_async(find),
    "validated": validate_call(find),
}


@pytest.mark.parametrize("function", CALLABLES.values(), ids=CALLABLES)
def test_a_callable_of_any_kind_is_a_tool(function):
    described = describe_tool(function)
    assert described["description"] == "Find things."
    assert described["inputSchema"] == {
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "limit": {"type": "integer", "default": 5},
        },
        "required": ["query"],
        "additionalProperties": False,
    }
    assert call(function, query="a").text == "a 5"
    assert call(function, query="a", limit=2).text == "a 2"


def test_what_a_partial_has_fixed_is_not_for_the_client_to_choose():
    def search(tenant: str, query: str) -> str:
        return f"{tenant} {query}"

    fixed = functools.partial(search, tenant="acme")
    assert list(input_schema(fixed)["properties"]) == ["query"]
    call(fixed, query="a", tenant="other").assert_failed("tenant: unknown argument")
    assert call(fixed, query="a").text == "acme a"


def test_the_name_is_that_of_what_was_written():
    server = MCPServer("test")
    server.tool(functools.partial(find_for, "acme"))
    server.tool(Finder())
    server.tool(Shop().find)
    assert [tool.key for tool in server.tools] == ["Finder", "find", "find_for"]


def test_the_decorator_returns_the_function_itself():
    server = MCPServer("test")
    assert server.tool(find) is find
    assert server.tool(name="again")(find) is find
    assert server.prompt(name="p")(find) is find
    assert server.resource("x://{query}")(find) is find
    assert server.completion("p", "query")(lambda value: []) is not None


def test_a_function_may_be_registered_with_several_servers():
    first, second = MCPServer("first"), MCPServer("second")
    first.tool(find)
    second.tool(find)
    assert client_of(second).tool("find", query="a").text == "a 5"


NAMES = [
    "schema",
    "json",
    "copy",
    "dict",
    "model_config",
    "model_fields",
    "model_validate",
    "model_dump",
    "construct",
    "validate",
    "__pydantic_extra__",
    "_private",
    "__mangled",
    "field_0",
    "field_1",
    "id",
    "type",
    "arguments",
    "context",
    "exchange",
    "größe",
    "class_",
    "self_",
    "name",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_parameter_may_have_any_name(name):
    got = {}
    source = f"def take(field_9: int, {name}: int, after: int = 0): got[{name!r}] = {name}"
    names = {"got": got}
    exec(source, names)
    schema = input_schema(names["take"])
    assert list(schema["properties"]) == ["field_9", name, "after"]
    assert schema["required"] == ["field_9", name]
    call(names["take"], **{"field_9": 1, name: 2}).assert_ok()
    assert got == {name: 2}


def test_the_neutral_names_behind_the_parameters_are_not_names_of_arguments():
    def take(field_1: int = 1, field_0: int = 0) -> str:
        return f"{field_1} {field_0}"

    assert call(take, field_0=5).text == "1 5"
    assert call(take, field_1=5).text == "5 0"

    def other(amount: int = 1) -> str:
        return str(amount)

    call(other, field_0=5).assert_failed("field_0: unknown argument (this takes amount)")


class ShopContext(Context):
    """A context that knows the shop."""

    @property
    def shop(self) -> str:
        return f"shop of {self.user}"


def with_context(ctx: Context, amount: int) -> str:
    return f"{ctx.protocol_version} {amount}"


def with_last_context(amount: int, whatever: Context) -> str:
    return f"{whatever.protocol_version} {amount}"


def with_optional_context(amount: int, ctx: Context | None = None) -> str:
    return f"{ctx.protocol_version if ctx else '?'} {amount}"


def with_old_optional_context(
    amount: int,
    ctx: Optional[Context] = None,  # noqa: UP045 - the old spelling, too
) -> str:
    return f"{ctx.protocol_version if ctx else '?'} {amount}"


def with_annotated_context(amount: int, ctx: Annotated[Context, "the context"]) -> str:
    return f"{ctx.protocol_version} {amount}"


def with_keyword_context(amount: int, *, ctx: Context) -> str:
    return f"{ctx.protocol_version} {amount}"


async def with_context_async(schema: Context, amount: int) -> str:
    return f"{schema.protocol_version} {amount}"


@pytest.mark.parametrize(
    "function",
    [
        with_context,
        with_last_context,
        with_optional_context,
        with_old_optional_context,
        with_annotated_context,
        with_keyword_context,
        with_context_async,
    ],
    ids=lambda function: function.__name__,
)
def test_a_context_is_passed_in_and_not_asked_for(function):
    schema = input_schema(function)
    assert list(schema["properties"]) == ["amount"]
    assert schema["required"] == ["amount"]
    assert call(function, amount=3).text == "2026-07-28 3"


def test_a_client_cannot_send_a_context():
    call(with_context, amount=3, ctx={}).assert_failed("ctx: unknown argument (this takes amount)")


def test_a_context_of_the_sites_own_class_is_made():
    def shop(ctx: ShopContext | None) -> str:
        return ctx.shop

    client = client_of(serve_tool(shop)).as_user(User(username="bob"))
    assert client.tool("it").text == "shop of bob"


def test_a_context_reaches_prompts_resources_listings_and_completions():
    server = MCPServer("test")

    @server.prompt
    def hello(ctx: ShopContext, name: str) -> str:
        return f"{name}: {ctx.shop}"

    def listed(ctx: ShopContext):
        return []

    @server.resource("shop://{name}", list=listed)
    def shop(ctx: ShopContext, name: str) -> str:
        return f"{name}: {ctx.shop}"

    @server.completion("hello", "name")
    def names(value: str, ctx: ShopContext) -> list[str]:
        return [ctx.shop]

    client = client_of(server).as_user(User(username="bob"))
    assert client.prompt("hello", name="a").text == "a: shop of bob"
    assert client.read("shop://a").text == "a: shop of bob"
    assert client.list_resources() == []
    answer = client.complete("hello", "name", "")
    assert answer.result["completion"]["values"] == ["shop of bob"]


def test_the_context_knows_the_caller_and_the_client():
    def about(ctx: Context) -> dict[str, Any]:
        return {
            "user": ctx.user.username,
            "client": ctx.client_id,
            "scopes": sorted(ctx.scopes),
            "info": ctx.client_info["name"],
            "path": ctx.request.path,
            "session": ctx.session,
            "capabilities": ctx.client_capabilities,
            "repr": repr(ctx),
        }

    client = client_of(serve_tool(about)).as_user(User(username="bob"), client_id="c1")
    assert client.tool("it").structured == {
        "user": "bob",
        "client": "c1",
        "scopes": [],
        "info": "django_mcp.testing",
        "path": "/mcp",
        "session": None,
        "capabilities": {},
        "repr": "<Context tools/call 2026-07-28 bob>",
    }
