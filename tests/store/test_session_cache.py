"""Sessions that are remembered: whose they are, until when, and that they are forgotten in time."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AnonymousUser
from django.core.cache import BaseCache, caches
from django.core.cache.backends.locmem import LocMemCache
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from django_mcp.auth import Principal
from django_mcp.clock import DatabaseNow
from django_mcp.models import PendingRequest, Session
from django_mcp.protocol.errors import SessionNotFound
from django_mcp.protocol.lifecycle import Sender, SessionInfo
from django_mcp.protocol.versions import NEWEST_LEGACY
from django_mcp.store.doorbell import FORGET
from django_mcp.store.ledger import ledger
from django_mcp.store.sessions import finding, session_cache, session_rows
from django_mcp.store.sessions.finding import digest, find_sessions
from django_mcp.store.sessions.session_rows import end_sessions
from tests.support.forking import in_child, needs_fork
from tests.support.services import REDIS_URL, require_redis

pytestmark = pytest.mark.django_db(transaction=True)
SERVER = "test"
NOBODY = Principal(AnonymousUser())
SENDER = Sender({"name": "client", "version": "1"}, {"roots": {}})
LOCAL = "django.core.cache.backends.locmem.LocMemCache"
REDIS = "django.core.cache.backends.redis.RedisCache"


def enter(secret: str, principal: Principal, server: str = SERVER) -> SessionInfo:
    """Return the session as the gate finds it."""
    key = digest(secret)
    return session_rows.check_owner(server, find_sessions([key]).get(key), principal)


class Clock:
    """Time that passes when a test wants it to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch) -> Clock:
    """The clock of what is remembered in memory."""
    made = Clock()
    for module in (finding, session_cache):
        monkeypatch.setattr(module, "time", made)
    return made


def test_what_is_long_is_not_kept_parsed():
    long = json.dumps({"name": "x" * finding.SHORT_CHARACTERS})
    before = finding._parsed_once.cache_info().currsize
    assert finding._parsed(long) == json.loads(long)
    assert finding._parsed_once.cache_info().currsize == before
    assert finding._parsed('{"short": 1}') is finding._parsed('{"short": 1}')


def remember(settings: Any, seconds: float = 10, **more: Any) -> None:
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "SESSION_CACHE_SECONDS": seconds, **more}


@pytest.fixture
def memory(settings) -> session_cache.ProcessCache:
    """Where this process remembers."""
    remember(settings)
    return session_cache.memory()


@pytest.fixture(params=["memory", "local", "redis"])
def place(request, settings) -> Iterator[str]:
    """Each place where sessions can be remembered; one stands for caches without a network."""
    if request.param == "redis":
        require_redis()
    backend = {"BACKEND": REDIS if request.param == "redis" else LOCAL, "KEY_PREFIX": uuid4().hex}
    where = REDIS_URL if request.param == "redis" else uuid4().hex
    settings.CACHES = {"default": {"BACKEND": LOCAL}, "shared": {**backend, "LOCATION": where}}
    remember(settings, SESSION_CACHE="" if request.param == "memory" else "shared")
    yield request.param
    caches["shared"].close()


def make_principal(name: str, client_id: str = "") -> Principal:
    user, _ = get_user_model().objects.get_or_create(username=name)
    return Principal(user, client_id)


def open_session(principal: Principal = NOBODY, *, ready: bool = True) -> tuple[SessionInfo, str]:
    info, secret = session_rows.open_session(SERVER, principal, NEWEST_LEGACY, SENDER)
    if ready:
        session_rows.mark_initialized(info)
    return info, secret


def row_of(info: SessionInfo) -> Any:
    return Session.objects.filter(pk=info.id)


def known(secret: str, principal: Principal = NOBODY) -> SessionInfo:
    """Enter a session so that it is remembered."""
    enter(secret, principal)
    return entered_for_nothing(secret, principal)


def entered_for_nothing(secret: str, principal: Principal = NOBODY) -> SessionInfo:
    with CaptureQueriesContext(connection) as queries:
        found = enter(secret, principal)
    assert len(queries) == 0
    return found


def costs(secret: str) -> int:
    """Return how many statements it takes to enter."""
    with CaptureQueriesContext(connection) as queries:
        enter(secret, NOBODY)
    return len(queries)


def is_let_in(secret: str, principal: Principal = NOBODY) -> bool:
    try:
        enter(secret, principal)
    except SessionNotFound:
        return False
    return True


def test_nothing_is_remembered_unless_it_is_wanted():
    _, secret = open_session()
    assert [costs(secret) for _ in range(3)] == [1, 1, 1]
    assert session_rows.recall_session(SERVER, secret, NOBODY) is None


def test_what_is_remembered_is_what_would_be_found(place):
    _, secret = open_session(make_principal("alice", "a client"))
    alice = make_principal("alice", "a client")
    assert known(secret, alice) == session_rows.find_session(SERVER, secret, alice)
    assert (session_rows.recall_session(SERVER, secret, alice) is not None) == (place == "memory")


@pytest.mark.parametrize(
    "other",
    [
        lambda: NOBODY,
        lambda: make_principal("mallory", "a client"),
        lambda: make_principal("alice", "another client"),
    ],
    ids=["anonymous", "user", "client"],
)
def test_a_session_that_is_remembered_is_still_its_owners_alone(place, other):
    alice, stranger = make_principal("alice", "a client"), other()
    _, secret = open_session(alice)
    known(secret, alice)
    ways = [
        lambda: enter(secret, stranger),
        lambda: enter(secret, alice, "another"),
        *(
            [lambda: session_rows.recall_session(SERVER, secret, stranger)]
            if place == "memory"
            else []
        ),
    ]
    for way in ways:
        with CaptureQueriesContext(connection) as queries, pytest.raises(SessionNotFound):
            way()
        assert len(queries) == 0


def test_of_several_only_those_that_are_not_remembered_are_asked_for(place):
    secrets = [open_session()[1] for _ in range(3)]
    keys = [digest(secret) for secret in secrets]
    known(secrets[1])
    session_rows.mark_initialized(session_rows.find_session(SERVER, secrets[0], NOBODY))
    with CaptureQueriesContext(connection) as queries:
        assert set(find_sessions(keys)) == set(keys)
    assert len(queries) == 1
    assert keys[1] not in queries[0]["sql"]
    assert keys[2] in queries[0]["sql"]
    with CaptureQueriesContext(connection) as queries:
        assert set(find_sessions(keys[:2])) == set(keys[:2])
    assert len(queries) == 0


def test_who_asks_for_a_foreign_session_first_changes_nothing_for_its_owner(place):
    alice = make_principal("alice")
    _, secret = open_session(alice)
    assert not is_let_in(secret)
    assert is_let_in(secret, alice)
    assert not is_let_in(secret)


def test_that_there_is_none_is_not_remembered(place):
    info, _ = open_session()
    assert not is_let_in("new")
    row_of(info).update(key_digest=digest("new"))
    assert is_let_in("new")


def test_a_session_that_is_not_ready_is_not_remembered(place):
    info, secret = open_session(ready=False)
    assert not enter(secret, NOBODY).initialized
    session_rows.mark_initialized(info)
    assert enter(secret, NOBODY).initialized


def delete(secret: str, info: SessionInfo, principal: Principal) -> None:
    session_rows.end_session(SERVER, digest(secret), principal)


def end_as_the_admin_does(secret: str, info: SessionInfo, principal: Principal) -> None:
    with transaction.atomic():
        assert end_sessions(row_of(info)) == 1


def evict(secret: str, info: SessionInfo, principal: Principal) -> None:
    open_session(principal)


def delete_user(secret: str, info: SessionInfo, principal: Principal) -> None:
    get_user_model().objects.get(pk=principal.user.pk).delete()


ENDS = [delete, end_as_the_admin_does, evict, delete_user]


@pytest.mark.parametrize("end", ENDS)
def test_a_session_that_ends_is_forgotten_at_once(place, settings, end):
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "MAX_SESSIONS_PER_USER": 1}
    alice = make_principal("alice")
    info, secret = open_session(alice)
    known(secret, alice)
    end(secret, info, alice)
    assert not is_let_in(secret, alice)


@pytest.mark.parametrize("end", ENDS)
def test_who_has_read_before_it_ended_comes_too_late(place, settings, monkeypatch, end):
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "MAX_SESSIONS_PER_USER": 1}
    alice = make_principal("alice")
    info, secret = open_session(alice)
    read = finding._rows

    def read_and_be_slow(*args: Any) -> list[Any]:
        row = read(*args)
        monkeypatch.setattr(finding, "_rows", read)
        end(secret, info, alice)
        return row

    monkeypatch.setattr(finding, "_rows", read_and_be_slow)
    assert is_let_in(secret, alice)
    assert not is_let_in(secret, alice)


def test_what_was_read_before_the_end_was_committed_is_forgotten(memory):
    """It was read, and remembered, by somebody who could not see it yet."""
    info, secret = open_session()
    known(secret)
    key = digest(secret)
    found = memory.get(key)
    with transaction.atomic():
        end_sessions(row_of(info))
        memory.put(key, found, 10, memory.mark())
        assert memory.get(key) is not None
    assert not is_let_in(secret)


def test_an_end_that_is_rolled_back_is_none(place):
    info, secret = open_session()
    known(secret)
    with transaction.atomic():
        end_sessions(row_of(info))
        transaction.set_rollback(True)
    assert is_let_in(secret)


def test_an_end_whose_commit_was_not_confirmed_is_heard_of_too(place):
    """Whoever tries again ends nothing any more, and yet others remember it."""
    info, secret = open_session()
    known(secret)
    row_of(info).update(state=Session.State.ENDED)
    assert end_sessions(row_of(info)) == 0
    assert not is_let_in(secret)


def test_the_log_level_counts_at_once(place):
    _, secret = open_session()
    info = known(secret)
    session_rows.set_log_level(info, "error")
    assert enter(secret, NOBODY).log_level == "error"


def test_within_a_transaction_nothing_is_remembered_or_looked_up(place):
    _, secret = open_session()
    with transaction.atomic():
        assert [costs(secret), costs(secret)] == [1, 1]
    assert costs(secret) == 1
    entered_for_nothing(secret)
    with transaction.atomic():
        assert costs(secret) == 1
        assert session_rows.recall_session(SERVER, secret, NOBODY) is None


def test_it_is_remembered_for_so_long_from_before_it_was_read(memory, clock, monkeypatch):
    _, secret = open_session()
    read = finding._rows

    def read_for_a_while(*args: Any) -> list[Any]:
        clock.now += 4
        return read(*args)

    monkeypatch.setattr(finding, "_rows", read_for_a_while)
    enter(secret, NOBODY)
    clock.now += 5.9
    entered_for_nothing(secret)
    clock.now += 0.2
    assert costs(secret) == 1


def test_one_who_reads_for_longer_than_that_remembers_nothing(place, clock, monkeypatch):
    _, secret = open_session()
    read = finding._rows

    def read_for_long(*args: Any) -> list[Any]:
        clock.now += 11
        return read(*args)

    monkeypatch.setattr(finding, "_rows", read_for_long)
    assert [costs(secret), costs(secret)] == [1, 1]


def test_nobody_remembers_a_session_for_longer_than_it_lives(memory, clock):
    info, secret = open_session()
    row_of(info).update(expires=DatabaseNow() + timedelta(seconds=5))
    known(secret)
    clock.now += 5.1
    assert costs(secret) == 1


def test_a_session_that_lives_only_as_long_as_its_calls_is_not_remembered(place):
    info, secret = open_session()
    row_of(info).update(expires=DatabaseNow() - timedelta(seconds=1))
    PendingRequest.objects.create(
        session_id=info.id, server="test", request_id="1", method="tools/call"
    )
    assert [costs(secret), costs(secret)] == [1, 1]


def test_nobody_remembers_a_session_for_longer_than_it_may_be_idle(settings, clock):
    remember(settings, SESSION_IDLE_SECONDS=3)
    _, secret = open_session()
    known(secret)
    clock.now += 3.1
    assert costs(secret) == 1


def test_a_process_remembers_only_so_many(memory, monkeypatch):
    monkeypatch.setattr(session_cache, "MAX_SESSIONS", 2)
    secrets = [open_session()[1] for _ in range(3)]
    for secret in secrets:
        enter(secret, NOBODY)
    assert len(memory._found) == 2
    assert session_rows.recall_session(SERVER, secrets[0], NOBODY) is None
    assert session_rows.recall_session(SERVER, secrets[2], NOBODY) is not None


def test_what_is_too_old_does_not_stay(memory, clock):
    for _ in range(5):
        enter(open_session()[1], NOBODY)
    clock.now += 11
    enter(open_session()[1], NOBODY)
    assert len(memory._found) == 1


@needs_fork
def test_a_fork_remembers_nothing(memory):
    _, secret = open_session()
    known(secret)
    assert in_child(lambda: session_rows.recall_session(SERVER, secret, NOBODY) is None) == 0


@pytest.fixture
def told(monkeypatch) -> list[str]:
    """What other processes are told."""
    words: list[str] = []

    def call(word: str) -> None:
        words.append(word)

    started = ledger()
    started.wake()
    monkeypatch.setattr(started.doorbell, "_send_to_all", call)
    return words


@pytest.mark.parametrize("end", ENDS)
def test_other_processes_are_told_of_the_end(memory, settings, told, end):
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "MAX_SESSIONS_PER_USER": 1}
    alice = make_principal("alice")
    info, secret = open_session(alice)
    assert FORGET not in told
    end(secret, info, alice)
    assert told.count(FORGET) == 1


def test_other_processes_are_told_of_the_level(memory, told):
    info, _ = open_session()
    session_rows.set_log_level(info, "error")
    assert told == [FORGET]


@pytest.mark.parametrize("where", ["nowhere", "shared"])
def test_nobody_is_told_who_has_nothing_to_forget(settings, told, where):
    if where == "shared":
        settings.CACHES = {"shared": {"BACKEND": LOCAL, "LOCATION": uuid4().hex}}
        remember(settings, SESSION_CACHE="shared")
    _, secret = open_session()
    session_rows.end_session(SERVER, digest(secret), NOBODY)
    assert told == []


def test_a_process_that_is_told_forgets_everything(memory):
    _, secret = open_session()
    known(secret)
    mark = memory.mark()
    ledger().doorbell._handlers[FORGET]()
    assert session_rows.recall_session(SERVER, secret, NOBODY) is None
    assert memory.mark() != mark


class Away(LocMemCache):
    """A cache that fails."""

    def __init__(self, failing: Callable[[str], bool]) -> None:
        super().__init__(uuid4().hex, {})
        self.failing = failing

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name in ("get", "add", "set", "set_many") and self.failing(name):
            raise ConnectionError("away")
        return found


@pytest.fixture
def failing(settings, monkeypatch) -> set[str]:
    """Which operations of the shared cache fail."""
    names: set[str] = set()
    remember(settings, SESSION_CACHE="shared")
    away: BaseCache = Away(lambda name: name in names)
    monkeypatch.setattr(session_cache, "caches", {"shared": away})
    return names


def test_without_the_cache_the_database_is_asked_and_one_line_says_so(failing, caplog):
    _, secret = open_session()
    known(secret)
    failing |= {"get", "add", "set", "set_many"}
    with caplog.at_level(logging.WARNING, "django_mcp.store"):
        assert [costs(secret) for _ in range(3)] == [1, 1, 1]
        session_rows.end_session(SERVER, digest(secret), NOBODY)
    (line,) = caplog.messages
    assert "the database is asked instead: away" in line
    assert not is_let_in(secret)
    failing.clear()
    _, secret = open_session()
    known(secret)


def test_what_nobody_here_has_written_is_no_session(failing):
    _, secret = open_session()
    name = session_cache._name(digest(secret))
    session_cache.caches["shared"].set(name, '["test", "", ""]')
    assert costs(secret) == 1


def test_a_shared_cache_holds_no_secret_and_no_key_that_another_site_has(place, settings):
    _, secret = open_session()
    name = session_cache._name(digest(secret))
    settings.SECRET_KEY = "another"
    assert session_cache._name(digest(secret)) != name
    assert secret not in name
    assert digest(secret) not in name


def test_users_with_keys_of_any_kind_are_told_apart(memory):
    """As rows have them, whatever AUTH makes of the claims of a token."""
    alice, bob = make_principal("alice"), make_principal("bob")
    named = Principal(SimpleNamespace(pk=str(alice.user.pk), is_authenticated=True))
    _, secret = open_session(named)
    assert known(secret, alice) == session_rows.recall_session(SERVER, secret, named)
    assert not is_let_in(secret, bob)
