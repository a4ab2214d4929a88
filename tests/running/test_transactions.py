"""What a failing tool wrote is rolled back where a transaction is open or was asked for."""

from __future__ import annotations

import asyncio

import pytest
from django.contrib.auth.models import Group
from django.core.asgi import get_asgi_application
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from django_mcp import MCPServer, ToolError, endpoint
from django_mcp.asgi import mount
from django_mcp.models import Session
from django_mcp.store.ledger import close_ledger
from django_mcp.testing import MCPClient
from tests.support.asgi import call
from tests.support.sites import run, urlconf

server = MCPServer("writing", version="1")


@server.tool
def write_and_fail(kind: str) -> None:
    """Write a row, then fail."""
    Group.objects.create(name="half done")
    raise ToolError("no") if kind == "tool" else RuntimeError("no")


@server.tool(atomic=False)
def write_and_fail_outside() -> None:
    """Write a row and fail, on purpose without a savepoint."""
    Group.objects.create(name="half done")
    raise ToolError("no")


@server.tool
def write() -> bool:
    """Write a row; say whether a transaction was open."""
    Group.objects.create(name="done")
    return connection.in_atomic_block


@server.tool
async def awrite_and_fail() -> None:
    """Write a row asynchronously, then fail."""
    await Group.objects.acreate(name="half done")
    raise ToolError("no")


@pytest.mark.django_db
@pytest.mark.parametrize("kind", ["tool", "bug"])
def test_inside_an_open_transaction_a_tool_has_a_savepoint(kind):
    Group.objects.create(name="before")
    answer = MCPClient(server).tool("write_and_fail", kind=kind)
    assert answer.error or answer.assert_failed()
    assert [group.name for group in Group.objects.all()] == ["before"]


@pytest.mark.django_db
def test_a_tool_may_opt_out_of_the_savepoint():
    MCPClient(server).tool("write_and_fail_outside").assert_failed("no")
    assert Group.objects.filter(name="half done").exists()


@pytest.mark.django_db(transaction=True)
def test_without_a_transaction_each_statement_stands():
    assert MCPClient(server).tool("write").assert_ok().text == "false"
    MCPClient(server).tool("write_and_fail", kind="tool").assert_failed()
    assert Group.objects.filter(name="half done").exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kind", ["tool", "bug"])
def test_atomic_requests_is_kept_for_each_tool_at_the_view(atomic_requests, kind):
    client = MCPClient(server)
    assert client.tool("write").assert_ok().text == "true"
    client.tool("write_and_fail", kind=kind)
    assert [group.name for group in Group.objects.all()] == ["done"]
    # The protocol's own rows are outside of the tool's transaction, and written a little later.
    close_ledger()
    assert Session.objects.get().request_count == 3


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kind", ["tool", "bug"])
def test_atomic_requests_is_kept_for_each_tool_at_the_mount(settings, atomic_requests, kind):
    settings.ROOT_URLCONF = urlconf(endpoint("mcp", server=server))
    served = mount(get_asgi_application())

    async def main() -> str:
        await call(served, "write_and_fail", arguments={"kind": kind})
        return (await call(served, "write")).json()["result"]["content"][0]["text"]

    assert run(main()) == "true"
    assert [group.name for group in Group.objects.all()] == ["done"]


@pytest.mark.django_db
def test_asynchronous_tools_share_the_tests_connection():
    MCPClient(server).tool("awrite_and_fail").assert_failed("no")
    assert Group.objects.filter(name="half done").exists()


@pytest.mark.django_db(transaction=True)
def test_the_view_itself_is_in_no_transaction(client, settings, atomic_requests):
    settings.ROOT_URLCONF = urlconf(endpoint("mcp", server=server))
    seen = []
    original = transaction.Atomic.__enter__
    transaction.Atomic.__enter__ = lambda self: seen.append(self.using) or original(self)
    try:
        client.post("/mcp", b"not json", content_type="application/json")
    finally:
        transaction.Atomic.__enter__ = original
    assert seen == []


@pytest.mark.django_db
@pytest.mark.parametrize("tool", ["add", "aadd"])
def test_a_plain_call_in_a_session_costs_two_statements(tool):
    client = MCPClient()
    client.initialize()
    with CaptureQueriesContext(connection) as queries:
        client.tool(tool, a=1, b=2).assert_ok()
    statements = [query["sql"] for query in queries if "SAVEPOINT" not in query["sql"]]
    assert len(statements) == 2, statements


@pytest.mark.django_db
def test_a_refused_request_costs_one_statement_and_leaves_no_row():
    client = MCPClient()
    client.session_id = "no such session"
    with CaptureQueriesContext(connection) as queries:
        client.tool("add", a=1, b=2).assert_error(-32001)
    assert len(queries) == 1
    assert not Session.objects.exists()


def test_a_modern_call_needs_no_database():
    # No django_db mark: touching the database would fail.
    MCPClient(revision="2026-07-28").tool("add", a=1, b=2).assert_ok()


def test_a_timeout_ends_an_asynchronous_tool():
    slow = MCPServer("slow", version="1")
    ended = []

    @slow.tool(timeout=0.05)
    async def sleep() -> None:
        """Sleep for ever."""
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    answer = MCPClient(slow, revision="2026-07-28").tool("sleep")
    answer.assert_failed("did not finish within 0.05 seconds")
    assert ended == [True]
