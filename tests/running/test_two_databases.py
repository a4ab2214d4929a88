"""``ATOMIC_REQUESTS`` on two databases: what a failing tool wrote is rolled back where it is on."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import Group
from django.core.asgi import get_asgi_application
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.http import HttpRequest

from django_mcp import Context, MCPServer, ToolError, endpoint
from django_mcp.asgi import mount
from django_mcp.models import Session
from django_mcp.running.process_loop import close_process_loop
from django_mcp.store.ledger import close_ledger
from tests.support.caller import Caller
from tests.support.databases import SQLITE_OPTIONS
from tests.support.entrances import ASGIEntrance, Entrance, WSGIEntrance
from tests.support.lasting import last
from tests.support.sites import run, urlconf

pytestmark = pytest.mark.django_db(transaction=True)
server = MCPServer("writing", version="1")
ERRORS = {"tool": ToolError("no"), "bug": RuntimeError("no")}


def write(kind: str) -> list[bool]:
    """Write a row to each database; say whether transactions are open, or fail."""
    Group.objects.create(name="written")
    with connections["other"].cursor() as cursor:
        cursor.execute("INSERT INTO note (text) VALUES ('written')")
    if kind in ERRORS:
        raise ERRORS[kind]
    return [connections[alias].in_atomic_block for alias in ("default", "other")]


@server.tool
def takes_request(request: HttpRequest, kind: str) -> list[bool]:
    """Write."""
    return write(kind)


@server.tool
def takes_neither(kind: str) -> list[bool]:
    """Write."""
    return write(kind)


@server.tool
def quiet(ctx: Context, kind: str) -> list[bool]:
    """Write, and say nothing, although that would be possible."""
    return write(kind)


@server.tool
def streamed(ctx: Context, kind: str) -> list[bool]:
    """Write once the answer is a stream."""
    ctx.log("info", "before")
    last(ctx)
    return write(kind)


@server.tool
async def runs_on_loop(kind: str) -> list[bool]:
    """Write on the thread that the ORM of asynchronous functions has."""
    return await sync_to_async(write)(kind)


def threaded() -> Entrance:
    entrance = WSGIEntrance()
    # Django's client says that there is one thread.
    entrance.client.defaults["wsgi.multithread"] = True
    return entrance


WAYS: dict[str, Callable[[], Entrance]] = {
    "wsgi": threaded,
    "asgi": lambda: ASGIEntrance("asgi", get_asgi_application, run),
    "mount": lambda: ASGIEntrance("mount", lambda: mount(get_asgi_application()), run),
}
SYNCHRONOUS = ["takes_request", "takes_neither", "quiet", "streamed"]


@pytest.fixture(autouse=True)
def _other(tmp_path, transactional_db):
    """Give the site another database, that wants transactions, too."""
    # Not through the settings: the connections of this process have read theirs already.
    own = {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(tmp_path / "other.sqlite3"),
        "OPTIONS": SQLITE_OPTIONS,
        "ATOMIC_REQUESTS": True,
    }
    configured = connections.configure_settings({"default": {}, "other": own})
    connections.settings["other"] = configured["other"]
    refusing = BaseDatabaseWrapper.ensure_connection

    def ensure_connection(connection: BaseDatabaseWrapper) -> None:
        # Django's test cases refuse databases that were not there when they began.
        if connection.alias != "other":
            refusing(connection)
        elif connection.connection is None:
            connection.connect()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BaseDatabaseWrapper, "ensure_connection", ensure_connection)
        with connections["other"].cursor() as cursor:
            cursor.execute("CREATE TABLE note (text text)")
        yield
        connections["other"].close()
        # Of the process's loop, whose threads have it open.
        close_process_loop()
    del connections["other"], connections.settings["other"]


@pytest.fixture(params=WAYS)
def member(request, settings, _other):
    """A client in a session, at each way in."""
    settings.ROOT_URLCONF = urlconf(endpoint("mcp", server=server))
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "WSGI_STREAMS": 4}
    return Caller(WAYS[request.param]()).opened()


def rows() -> tuple[int, int]:
    """Return how many rows there are in each database."""
    with connections["other"].cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM note")
        (number,) = cursor.fetchone()
    return Group.objects.count(), number


@pytest.mark.parametrize("kind", ERRORS)
@pytest.mark.parametrize("tool", SYNCHRONOUS)
def test_what_a_failing_tool_wrote_is_rolled_back_on_both(atomic_requests, member, tool, kind):
    said = member.tool(tool, kind=kind).messages()
    assert said[-1]["result"]["isError"] is True
    assert rows() == (0, 0)
    # What was said before, and all that the protocol needs, is in no transaction of the tool's.
    logged = [each["params"]["data"] for each in said if "method" in each]
    assert logged == (["before"] if tool == "streamed" else [])
    assert member.call("ping").result == {}
    close_ledger()
    assert Session.objects.get().request_count == 3


@pytest.mark.parametrize("tool", SYNCHRONOUS)
def test_what_a_tool_wrote_that_ends_well_stays_on_both(atomic_requests, member, tool):
    said = member.tool(tool, kind="").messages()
    assert said[-1]["result"]["structuredContent"] == {"result": [True, True]}
    assert rows() == (1, 1)


@pytest.mark.parametrize("tool", ["takes_request", "streamed"])
def test_a_database_without_the_setting_keeps_what_was_written(member, tool):
    assert member.tool(tool, kind="bug").messages()[-1]["result"]["isError"] is True
    assert rows() == (1, 0)


@pytest.mark.parametrize("kind", ["", "bug"])
def test_an_asynchronous_tool_has_no_transaction_on_either(atomic_requests, member, kind):
    """Django's are synchronous: the documentation says what to do."""
    result = member.tool("runs_on_loop", kind=kind).result
    assert result["isError"] or result["structuredContent"] == {"result": [False, False]}
    assert rows() == (1, 1)
