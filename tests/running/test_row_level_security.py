"""Row-level security by a variable of the connection: everybody sees his own rows, at each way in.

The variable is set as sites do it, by a middleware or by ``AUTH``, and by ``CALL_CONTEXT`` on the
threads that these do not reach.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth import get_user_model
from django.core.asgi import get_asgi_application
from django.db import connection, connections
from django.db.backends.signals import connection_created
from django.http import HttpRequest, HttpResponse
from django.test import Client

from django_mcp import Context, MCPServer, endpoint
from django_mcp.asgi import mount
from django_mcp.auth import Principal
from tests.support.asgi import call as call_asgi
from tests.support.messages import HEADERS, encoded, modern
from tests.support.sites import run, urlconf

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "postgresql", reason="only PostgreSQL has policies"),
]
server = MCPServer("rows", version="1")
BOUND = 20
ROUNDS = 4
ANNA, BERT = "1", "2"
NOTES = {ANNA: ["anna's"], BERT: ["bert's"]}


def set_user(user: str) -> None:
    """Let the policy of the table know who asks, on the present connection."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('app.user_id', %s, false)", [user])


@contextmanager
def only_own_rows(request: HttpRequest) -> Iterator[None]:
    """Do so on a thread that no middleware has seen, and take it back."""
    set_user(str(request.user.pk))
    try:
        yield
    finally:
        set_user("")


class SetsUser:
    """A middleware that does so, and leaves the variable behind, as many do."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        set_user(request.headers["X-User"])
        return self.get_response(request)


def auth(request: HttpRequest) -> Principal:
    return Principal(get_user_model().objects.get(pk=request.headers["X-User"]))


def auth_that_sets(request: HttpRequest) -> Principal:
    set_user(request.headers["X-User"])
    return auth(request)


class Meeting:
    """Where two calls meet in the middle, if the test wants them to be under way at once."""

    barrier: threading.Barrier | None = None


def visible() -> list[str]:
    """Return the notes that the present connection may see, before and after others have asked."""
    found: list[str] = []
    for _ in range(2):
        with connection.cursor() as cursor:
            cursor.execute("SELECT text FROM rls_note ORDER BY text")
            found += [text for (text,) in cursor.fetchall()]
        if Meeting.barrier is not None:
            Meeting.barrier.wait(BOUND)
    return sorted({*found})


@server.tool
def takes_request(request: HttpRequest) -> list[str]:
    """List the notes."""
    return visible()


@server.tool
def takes_neither() -> list[str]:
    """List the notes."""
    return visible()


@server.tool
def takes_context(ctx: Context) -> list[str]:
    """List the notes."""
    return visible()


@server.tool
async def runs_on_loop() -> list[str]:
    """List the notes."""
    return await sync_to_async(visible)()


TOOLS = ["takes_request", "takes_neither", "takes_context", "runs_on_loop"]


def notes_of(answer: Any) -> Any:
    result = answer.json()["result"]
    assert not result["isError"], result
    return result["structuredContent"]


def at_wsgi(tool: str, rounds: list[tuple[str, ...]]) -> list[list[Any]]:
    """Call a tool for the users of each round at once, each on a thread of the server's."""
    message, mirrored = modern("tools/call", name=tool, arguments={})
    headers = {**HEADERS, **mirrored}
    del headers["Content-Type"]

    def call(user: str) -> Any:
        response: Any = Client().generic(
            "POST",
            "/mcp",
            encoded(message),
            content_type="application/json",
            headers={**headers, "X-User": user},
            # Django's client says that there is one thread.
            **{"wsgi.multithread": True},
        )
        return notes_of(response)

    with ThreadPoolExecutor(2) as threads:
        try:
            return [list(threads.map(call, users)) for users in rounds]
        finally:
            both = threading.Barrier(2)
            list(threads.map(lambda _: (both.wait(BOUND), connections.close_all()), range(2)))


def at_application(application: Any, tool: str, rounds: list[tuple[str, ...]]) -> list[list[Any]]:
    async def main() -> list[list[Any]]:
        found = []
        for users in rounds:
            calls = (call_asgi(application, tool, headers={"X-User": user}) for user in users)
            found.append([notes_of(answer) for answer in await asyncio.gather(*calls)])
        return found

    return run(main())


def at_asgi(tool: str, rounds: list[tuple[str, ...]]) -> list[list[Any]]:
    return at_application(get_asgi_application(), tool, rounds)


def at_mount(tool: str, rounds: list[tuple[str, ...]]) -> list[list[Any]]:
    return at_application(mount(get_asgi_application()), tool, rounds)


WAYS = {"wsgi": at_wsgi, "asgi": at_asgi, "mount": at_mount}


def check_everybody_sees_his_own(way: str, tool: str) -> None:
    """Call a tool for one user after the other, and for both at once."""
    one_by_one = [(ANNA,), (BERT,)] * ROUNDS
    found = WAYS[way](tool, one_by_one)
    assert found == [[NOTES[user] for user in users] for users in one_by_one]
    at_once = [(ANNA, BERT), (BERT, ANNA)] * ROUNDS
    Meeting.barrier = threading.Barrier(2)
    found = WAYS[way](tool, at_once)
    assert found == [[NOTES[user] for user in users] for users in at_once]


@pytest.fixture(autouse=True)
def site(settings):
    Meeting.barrier = None
    settings.MIDDLEWARE = [f"{__name__}.SetsUser"]
    settings.ROOT_URLCONF = urlconf(endpoint("mcp", server=server))
    own = {"AUTH": auth, "CALL_CONTEXT": only_own_rows, "WSGI_STREAMS": 4, "WORKER_THREADS": 2}
    # Also on a busy machine no answer is a stream.
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, **own, "STREAM_AFTER_SECONDS": 60}


@pytest.fixture(autouse=True)
def _policy(transactional_db):
    """A table with a policy, and connections that last, of a role to which it applies."""
    # Not through the settings: the connections of this process have read theirs already.
    options = connections.settings["default"]
    role, age = f"{options['NAME']}_reader", options["CONN_MAX_AGE"]
    for user in NOTES:
        get_user_model().objects.create(pk=user, username=user)
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE rls_note (owner text, text text)")
        cursor.execute("INSERT INTO rls_note VALUES ('1', 'anna''s'), ('2', 'bert''s')")
        cursor.execute("ALTER TABLE rls_note ENABLE ROW LEVEL SECURITY")
        cursor.execute("ALTER TABLE rls_note FORCE ROW LEVEL SECURITY")
        cursor.execute(
            "CREATE POLICY own ON rls_note USING (owner = current_setting('app.user_id', true))"
        )
        # A superuser, which tests like to be, sees every row.
        # Roles outlive databases: a run that was killed has left its own.
        cursor.execute(f'DROP ROLE IF EXISTS "{role}"')
        cursor.execute(f'CREATE ROLE "{role}" NOLOGIN NOBYPASSRLS')
        cursor.execute(f'GRANT ALL ON ALL TABLES IN SCHEMA public TO "{role}"')
        cursor.execute(f'GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO "{role}"')
    connection.close()

    def take_role(connection: Any, **kwargs: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f'SET ROLE "{role}"')

    options["CONN_MAX_AGE"] = None
    connection_created.connect(take_role)
    yield
    connection_created.disconnect(take_role)
    options["CONN_MAX_AGE"] = age
    connection.close()
    with closing(connection), connection.cursor() as cursor:
        cursor.execute("DROP TABLE rls_note")
        cursor.execute(f'DROP OWNED BY "{role}"')
        cursor.execute(f'DROP ROLE "{role}"')


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("tool", TOOLS)
def test_everybody_sees_his_own_rows(way, tool):
    check_everybody_sees_his_own(way, tool)


@pytest.mark.parametrize("sets", ["middleware", "auth"])
@pytest.mark.parametrize(
    ("way", "tool"),
    [("wsgi", "takes_request"), ("wsgi", "takes_neither"), ("asgi", "takes_request")],
)
def test_in_the_thread_of_the_request_middleware_or_auth_is_enough(settings, sets, way, tool):
    own = {"CALL_CONTEXT": None, "AUTH": auth if sets == "middleware" else auth_that_sets}
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, **own}
    if sets == "auth":
        settings.MIDDLEWARE = []
    check_everybody_sees_his_own(way, tool)


@pytest.mark.parametrize(
    ("way", "tool"),
    [
        ("wsgi", "takes_context"),
        ("asgi", "takes_neither"),
        ("asgi", "runs_on_loop"),
        ("mount", "takes_request"),
        ("mount", "runs_on_loop"),
    ],
)
def test_without_a_call_context_other_threads_see_nothing(settings, way, tool):
    """Nothing that ``AUTH`` or a middleware has set for anybody."""
    own = {"CALL_CONTEXT": None, "AUTH": auth_that_sets}
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, **own}
    rounds = [(ANNA,), (BERT,)] * ROUNDS
    assert WAYS[way](tool, rounds) == [[[]]] * len(rounds)


class SetOnce:
    """What would be around the code if it were entered once for each thread, and never left."""

    threads: set[int]

    def __init__(self, request: HttpRequest) -> None:
        self._user = str(request.user.pk)

    def __enter__(self) -> None:
        if threading.get_ident() not in self.threads:
            self.threads.add(threading.get_ident())
            set_user(self._user)

    def __exit__(self, *error: object) -> None:
        pass


@pytest.mark.parametrize("tool", ["takes_context", "runs_on_loop"])
@pytest.mark.parametrize("way", WAYS)
def test_a_connection_that_keeps_the_variable_of_the_one_before_is_noticed(settings, way, tool):
    """The fault that all of this is against."""
    SetOnce.threads = set()
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "CALL_CONTEXT": SetOnce}
    with pytest.raises(AssertionError, match="anna's"):
        check_everybody_sees_his_own(way, tool)
