"""Where a question may be asked, and where it is refused at once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import Group
from django.core.asgi import get_asgi_application
from django.db import transaction
from mcp_types import ResourceLink

from django_mcp import Context, MCPServer, endpoint
from django_mcp.asgi import mount
from django_mcp.server.errors import QuestionMisplaced
from django_mcp.testing import MCPClient
from django_mcp.testing.scripted_user import CAPABILITIES
from tests.support import asgi, messages, sites

from .support import MODERN, Client, accepted, legacy, modern, requests_of, text_of

ERAS = ("2025-11-25", MODERN)
ELSEWHERE = "only the functions of tools, resources and prompts may ask"

server = MCPServer("places")
kept: list[Context] = []


@server.prompt
def ask(topic: str) -> str:
    """Ask about a topic."""
    return topic


@server.completion("ask", "topic")
def complete(ctx: Context, value: str) -> list[str]:
    return [ctx.elicit("Which one?", str)]


def listed(ctx: Context) -> list[ResourceLink]:
    return [ctx.elicit("Which one?", str)]


@server.resource("note://{id}", list=listed)
def note(id: str) -> str:
    """Read a note."""
    return id


@server.tool
def keep(ctx: Context) -> str:
    """Keep the context."""
    kept.append(ctx)
    return "kept"


@pytest.mark.django_db
@pytest.mark.parametrize("revision", ERAS)
def test_completions_and_listings_ask_nobody(caplog, revision: str):
    client = MCPClient(server, revision=revision, capabilities=CAPABILITIES)
    client.complete("ask", "topic").assert_error(-32603)
    assert ELSEWHERE in caplog.text
    caplog.clear()
    client.request("resources/list").assert_error(-32603)
    assert ELSEWHERE in caplog.text


@pytest.mark.django_db
def test_handlers_of_exceptions_ask_nobody(caplog):
    """The call they are for has been rolled back, and would not go on with an answer."""
    offers = MCPServer("handlers")

    @offers.tool(name="it")
    def fail(ctx: Context) -> None:
        raise LookupError

    @offers.exception_handler(LookupError)
    def explain(error: LookupError, ctx: Context) -> str:
        return ctx.elicit("What now?", str)

    refused(caplog, offers, ELSEWHERE)


@pytest.mark.django_db
@pytest.mark.parametrize("revision", ERAS)
def test_nothing_is_asked_once_the_function_has_returned(revision: str):
    MCPClient(server, revision=revision, capabilities=CAPABILITIES).tool("keep").assert_ok()
    with pytest.raises(QuestionMisplaced, match="only while they run"):
        kept.pop().elicit("Too late?")


def both(function: Any, **options: Any) -> list[str]:
    """Call ``function`` in both eras, and return the text of its results."""
    answered = legacy(function, Client(["Ada"] * 3), options=options)
    return [
        text_of(answered),
        modern(function, answers=["Ada"] * 3, **options).tool("it").assert_ok().text,
    ]


def refused(caplog: pytest.LogCaptureFixture, function: Any, text: str, **options: Any) -> None:
    """Assert that ``function`` is refused in both eras, with ``text`` in the log."""
    legacy(function, Client(["Ada"]), options=options)
    assert text in caplog.text
    caplog.clear()
    modern(function, answers=["Ada"], **options).tool("it").assert_failed("The tool failed.")
    assert text in caplog.text


# Transactions


def greet(ctx: Context) -> str:
    """Greet the user."""
    return f"Hello {ctx.elicit('Name?', str)}"


async def agreet(ctx: Context) -> str:
    """Greet the user."""
    return f"Hello {await ctx.aelicit('Name?', str)}"


def greet_in_a_transaction(ctx: Context) -> str:
    """Greet the user."""
    with transaction.atomic():
        Group.objects.create(name="written")
        return greet(ctx)


async def agreet_in_a_transaction(ctx: Context) -> str:
    """Greet the user."""

    @sync_to_async
    def begin() -> Any:
        (block := transaction.atomic()).__enter__()
        return block

    block = await begin()
    try:
        return await agreet(ctx)
    finally:
        await sync_to_async(block.__exit__)(None, None, None)


@pytest.fixture(params=["in a test's transaction", "in none"])
def _database(request: pytest.FixtureRequest) -> None:
    request.getfixturevalue("db" if "test" in request.param else "transactional_db")


@pytest.mark.usefixtures("_database")
@pytest.mark.parametrize("function", [greet, agreet])
@pytest.mark.parametrize("atomic", [True, False])
def test_without_a_transaction_of_the_sites_anything_may_ask(function: Any, atomic: bool):
    assert both(function, atomic=atomic) == ["Hello Ada"] * 2


@pytest.mark.usefixtures("_database")
@pytest.mark.parametrize("function", [greet_in_a_transaction, agreet_in_a_transaction])
@pytest.mark.parametrize("atomic", [True, False])
def test_a_transaction_of_the_functions_is_no_place_to_ask(caplog, function: Any, atomic: bool):
    refused(caplog, function, "Ask before `with transaction.atomic():`", atomic=atomic)


@pytest.mark.usefixtures("_database", "atomic_requests")
def test_under_atomic_requests_who_asks_opts_out(caplog):
    refused(caplog, greet, "register the function with atomic=False")
    assert both(greet, atomic=False) == ["Hello Ada"] * 2
    assert both(agreet) == ["Hello Ada"] * 2


@pytest.mark.usefixtures("_database", "atomic_requests")
@pytest.mark.parametrize("atomic", [True, False])
def test_prompts_and_resources_may_opt_out_too(atomic: bool):
    offers = MCPServer("offers")
    offers.prompt(name="it", atomic=atomic)(greet)
    offers.resource("greet://you", atomic=atomic)(greet)
    client = modern(offers, answers=["Ada", "Ada"])
    for answer in (client.prompt("it"), client.read("greet://you")):
        if atomic:
            answer.assert_error(-32603)
        else:
            answer.assert_contains("Hello Ada")


@pytest.mark.usefixtures("_database")
def test_a_transaction_around_everything_is_no_place_to_ask_either(caplog):
    with transaction.atomic():
        refused(caplog, greet, "Ask before `with transaction.atomic():`")


@pytest.mark.django_db
def test_a_function_in_a_test_may_insist_on_a_transaction_of_its_own():
    def durable() -> str:
        with transaction.atomic(durable=True):
            return "durable"

    modern(durable).tool("it").assert_ok()


@pytest.mark.django_db
def test_it_is_refused_even_where_nobody_would_wait(caplog):
    def ask(ctx: Context) -> str:
        with transaction.atomic():
            return ctx.elicit("Name?", str, fallback="nobody")

    modern(ask, capabilities={}).tool("it").assert_failed("The tool failed.")


# The event loop


async def blocking(ctx: Context) -> str:
    """Ask without await."""
    return ctx.elicit("Name?", str)


@pytest.mark.django_db
def test_asynchronous_code_is_told_to_await(caplog):
    refused(caplog, blocking, "`await ctx.aelicit(...)`")


async def in_a_thread(ctx: Context) -> str:
    """Ask from a thread."""
    return await asyncio.to_thread(greet, ctx)


@pytest.mark.django_db
def test_its_threads_may_wait():
    assert both(in_a_thread) == ["Hello Ada"] * 2


# At the mount


asking = MCPServer("asking")
asking.tool(name="greet")(greet)
asking.tool(name="agreet")(agreet)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("tool", ["greet", "agreet"])
def test_the_rounds_at_the_mount(settings, tool: str):
    settings.ROOT_URLCONF = sites.urlconf(endpoint("mcp", server=asking))
    served = mount(get_asgi_application())

    async def send(**more: Any) -> Any:
        message, headers = messages.modern("tools/call", 1, name=tool, arguments={}, **more)
        message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = CAPABILITIES
        return (await asgi.post(served, message, headers=headers)).json()["result"]

    async def main() -> Any:
        question = await send()
        assert question["resultType"] == "input_required"
        (key,) = question["inputRequests"]
        state = question["requestState"]
        return await send(requestState=state, inputResponses={key: accepted(value="Ada")})

    assert sites.run(main())["content"][0]["text"] == "Hello Ada"


def test_requests_of_is_about_questions(db):
    with pytest.raises(AssertionError):
        requests_of(modern(agreet, answers=["Ada"]).tool("it"))
