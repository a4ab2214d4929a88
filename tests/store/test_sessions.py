"""The life of a session: opened, found, used, ended; by its own principal only."""

from __future__ import annotations

import asyncio
import math
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AnonymousUser
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from django_mcp.auth import Principal
from django_mcp.clock import DatabaseHour, DatabaseNow
from django_mcp.models import PendingRequest, Session
from django_mcp.protocol.errors import SessionNotFound, Unavailable
from django_mcp.protocol.lifecycle import Sender
from django_mcp.protocol.versions import NEWEST_LEGACY
from django_mcp.store.database import is_in_transaction
from django_mcp.store.sessions import session_rows
from django_mcp.store.sessions.finding import digest, find_sessions
from django_mcp.store.sessions.liveness import live_sessions
from django_mcp.store.sessions.session_rows import end_sessions
from django_mcp.testing import MCPClient

from .aging import forget

pytestmark = pytest.mark.django_db
SERVER = "test"
NOBODY = Principal(AnonymousUser())
SENDER = Sender({"name": "client", "version": "1"}, {"roots": {}})


def make_principal(name: str, client_id: str = "") -> Principal:
    user, _ = get_user_model().objects.get_or_create(username=name)
    return Principal(user, client_id)


def open_session(principal: Principal = NOBODY) -> tuple[Session, str]:
    info, secret = session_rows.open_session(SERVER, principal, NEWEST_LEGACY, SENDER)
    return Session.objects.get(pk=info.id), secret


def age(session: Session, **how_long: float) -> None:
    hours = math.ceil(timedelta(**how_long) / timedelta(hours=1))
    Session.objects.filter(pk=session.pk).update(
        last_active=DatabaseNow() - timedelta(**how_long), used_hour=DatabaseHour() - hours
    )


def keep_busy(session: Session) -> PendingRequest:
    return PendingRequest.objects.create(
        session=session, server="test", request_id="1", method="tools/call"
    )


def test_what_a_dead_process_ran_keeps_no_session_alive():
    session, secret = open_session()
    age(session, days=2)
    running = PendingRequest.objects.filter(pk=keep_busy(session).pk)
    running.update(lease_until=DatabaseNow() + timedelta(seconds=30))
    assert session_rows.find_session(SERVER, secret, NOBODY).id == str(session.pk)
    running.update(lease_until=DatabaseNow() - timedelta(seconds=1))
    with pytest.raises(SessionNotFound):
        session_rows.find_session(SERVER, secret, NOBODY)


def test_a_session_is_found_by_its_secret_which_is_not_stored():
    session, secret = open_session()
    found = session_rows.find_session(SERVER, secret, NOBODY)
    assert found.id == str(session.pk)
    assert found.sender.info == SENDER.info
    assert found.sender.capabilities == SENDER.capabilities
    row = Session.objects.filter(pk=session.pk).values_list().get()
    assert secret not in str(row)
    assert digest(secret) in str(row)


@pytest.mark.parametrize("known", [True, False])
def test_a_session_is_found_or_not_by_one_statement_through_one_index(known):
    """However many sessions there are."""
    _, secret = open_session()
    others = (
        Session(key_digest=digest(str(number)), server="test", expires=DatabaseNow())
        for number in range(3_000)
    )
    Session.objects.bulk_create(others, batch_size=500)
    if connection.vendor == "postgresql":  # others know how many rows there are
        with connection.cursor() as cursor:
            cursor.execute(f"ANALYZE {Session._meta.db_table}")
    with CaptureQueriesContext(connection) as queries:
        if known:
            session_rows.find_session(SERVER, secret, NOBODY)
        else:
            with pytest.raises(SessionNotFound):
                session_rows.find_session(SERVER, "no such secret", NOBODY)
    (statement,) = [each["sql"] for each in queries]
    found_by = {
        "postgresql": "Index Scan using mcp_session_key on django_mcp_session",
        "mysql": "const",  # at most one row, by a unique index
        "sqlite": "SEARCH django_mcp_session USING INDEX sqlite_autoindex_django_mcp_session_2",
    }
    assert found_by[connection.vendor] in plan(statement)
    assert "Seq Scan" not in plan(statement)


def plan(statement: str) -> str:
    """Return how the database says that it finds what a statement asks for."""
    explain = "EXPLAIN QUERY PLAN" if connection.vendor == "sqlite" else "EXPLAIN"
    with connection.cursor() as cursor:
        cursor.execute(f"{explain} {statement}")
        return "\n".join(" ".join(map(str, row)) for row in cursor.fetchall())


def test_a_session_of_a_version_that_is_not_installed_is_not_live_and_harms_no_other(caplog):
    (strange, its_secret), (session, secret) = open_session(), open_session()
    Session.objects.filter(pk=strange.pk).update(revision="2999-01-01")
    found = find_sessions([digest(its_secret), digest(secret)])
    assert [each.info.id for each in found.values()] == [str(session.pk)]
    assert "2999-01-01" in caplog.text
    with pytest.raises(SessionNotFound):
        session_rows.find_session(SERVER, its_secret, NOBODY)


@pytest.mark.django_db(transaction=True)
def test_a_transaction_is_seen_on_a_loop_where_django_allows_it(monkeypatch):
    """As in tests that drive a browser, whose library runs a loop in their thread."""
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")

    async def main() -> list[bool]:
        try:
            before = is_in_transaction()
            with transaction.atomic():
                return [before, is_in_transaction()]
        finally:
            connection.close()

    assert asyncio.run(main()) == [False, True]


def test_secrets_are_visible_ascii():
    # 2025-11-25, basic/transports, "Session Management": 0x21 to 0x7E only.
    _, secret = open_session()
    assert all(0x21 <= ord(character) <= 0x7E for character in secret)
    assert len(secret) >= 43


@pytest.mark.parametrize(
    "other",
    [
        lambda: NOBODY,
        lambda: make_principal("mallory"),
        lambda: make_principal("alice", "another client"),
    ],
    ids=["anonymous", "user", "client"],
)
def test_a_foreign_session_is_as_good_as_unknown(other):
    _, secret = open_session(make_principal("alice", "a client"))
    with pytest.raises(SessionNotFound) as foreign:
        session_rows.find_session(SERVER, secret, other())
    with pytest.raises(SessionNotFound) as unknown:
        session_rows.find_session(SERVER, "no such secret", other())
    assert str(foreign.value) == str(unknown.value)


def test_a_user_without_a_row_at_hand_keeps_the_session_too():
    """What names a user in a token is text: AUTH may return an object made of nothing else."""
    alice = make_principal("alice")
    named = Principal(SimpleNamespace(pk=str(alice.user.pk), is_authenticated=True))
    _, secret = open_session(named)
    assert session_rows.find_session(SERVER, secret, named) == session_rows.find_session(
        SERVER, secret, alice
    )


def test_a_session_belongs_to_one_server():
    _, secret = open_session()
    with pytest.raises(SessionNotFound):
        session_rows.find_session("another", secret, NOBODY)


def test_an_idle_session_expires(settings):
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "SESSION_IDLE_SECONDS": 60}
    session, secret = open_session()
    age(session, seconds=30)
    session_rows.find_session(SERVER, secret, NOBODY)
    age(session, seconds=90)
    with pytest.raises(SessionNotFound):
        session_rows.find_session(SERVER, secret, NOBODY)


def test_a_session_expires_at_its_absolute_age_however_busy_its_client_was():
    session, secret = open_session()
    Session.objects.filter(pk=session.pk).update(expires=DatabaseNow() - timedelta(seconds=1))
    with pytest.raises(SessionNotFound):
        session_rows.find_session(SERVER, secret, NOBODY)


def test_a_session_never_expires_under_a_running_call():
    session, secret = open_session()
    running = keep_busy(session)
    age(session, days=365)
    Session.objects.filter(pk=session.pk).update(expires=DatabaseNow() - timedelta(days=1))
    assert session_rows.find_session(SERVER, secret, NOBODY).id == str(session.pk)
    PendingRequest.objects.filter(pk=running.pk).update(state=PendingRequest.State.ANSWERED)
    with pytest.raises(SessionNotFound):
        session_rows.find_session(SERVER, secret, NOBODY)


def test_touching_counts_in_the_database():
    session, secret = open_session()
    age(session, hours=1)
    info = session_rows.find_session(SERVER, secret, NOBODY)
    with CaptureQueriesContext(connection) as queries:
        session_rows.touch_session(info)
        session_rows.touch_session(info)
    changed = Session.objects.get(pk=session.pk)
    assert changed.request_count == 2
    assert changed.last_active > session.last_active - timedelta(minutes=1)
    assert all("log_level" not in query["sql"] for query in queries)


def test_a_late_touch_does_not_raise_a_session_from_the_dead():
    session, secret = open_session()
    info = session_rows.find_session(SERVER, secret, NOBODY)
    session_rows.end_session(SERVER, digest(secret), NOBODY)
    with pytest.raises(SessionNotFound):
        session_rows.touch_session(info)
    with pytest.raises(SessionNotFound):
        session_rows.set_log_level(info, "debug")
    session_rows.mark_initialized(info)
    assert Session.objects.get(pk=session.pk).state == Session.State.ENDED


def test_ending_is_done_once():
    session, secret = open_session()
    session_rows.end_session(SERVER, digest(secret), NOBODY)
    with pytest.raises(SessionNotFound):
        session_rows.end_session(SERVER, digest(secret), NOBODY)
    assert end_sessions(Session.objects.filter(pk=session.pk)) == 0
    assert Session.objects.get(pk=session.pk).ended is not None


def test_the_handshake_makes_a_session_ready():
    session, secret = open_session()
    info = session_rows.find_session(SERVER, secret, NOBODY)
    assert not info.initialized
    session_rows.mark_initialized(info)
    assert session_rows.find_session(SERVER, secret, NOBODY).initialized
    assert Session.objects.get(pk=session.pk).state == Session.State.READY


def test_the_longest_idle_session_of_a_user_makes_room(settings):
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "MAX_SESSIONS_PER_USER": 2}
    alice, bob = make_principal("alice"), make_principal("bob")
    first, _ = open_session(alice)
    second, _ = open_session(alice)
    other, _ = open_session(bob)
    age(second, hours=2)
    age(first, hours=1)
    age(other, hours=3)
    third, _ = open_session(alice)
    live = set(live_sessions().values_list("pk", flat=True))
    assert live == {first.pk, third.pk, other.pk}


@pytest.fixture
def limit(settings):
    """Set how many sessions there may be: in all, and which part of them of the anonymous."""

    def limited(number: int, share: float = 1, **more: int) -> None:
        own = {"MAX_SESSIONS": number, "ANONYMOUS_SESSIONS_SHARE": share, **more}
        settings.DJANGO_MCP = {**settings.DJANGO_MCP, **own}

    return limited


def live_ones() -> set[Any]:
    return set(live_sessions().values_list("pk", flat=True))


def test_all_sessions_together_have_a_cap(limit):
    limit(3)
    opened = [open_session()[0] for _ in range(5)]
    assert live_ones() == {session.pk for session in opened[2:]}


def test_anonymous_callers_push_out_each_other_and_nobody_else(limit):
    limit(4, share=0.5)
    alice, _ = open_session(make_principal("alice"))
    machine, _ = open_session(Principal(AnonymousUser(), "a client"))
    for known in (alice, machine):
        age(known, hours=20)
    anonymous = [open_session()[0] for _ in range(30)]
    assert live_ones() == {alice.pk, machine.pk, *(each.pk for each in anonymous[-2:])}


def test_anonymous_callers_have_a_share_also_where_there_is_room(limit):
    limit(10, share=0.2)
    opened = [open_session()[0] for _ in range(3)]
    assert live_ones() == {each.pk for each in opened[1:]}


def test_where_known_callers_have_all_sessions_anonymous_ones_wait(limit):
    limit(2, share=0.5)
    known = [open_session(make_principal(name))[0] for name in ("alice", "bob")]
    with pytest.raises(Unavailable):
        open_session()
    assert live_ones() == {each.pk for each in known}


def test_a_caller_makes_room_among_its_own_then_anonymous_then_the_longest_idle(limit):
    limit(4, share=0.5)
    stranger, _ = open_session()
    alice, bob = make_principal("alice"), make_principal("bob")
    first, _ = open_session(alice)
    second, _ = open_session(alice)
    other, _ = open_session(bob)
    for session, hours in ((stranger, 5), (other, 4), (first, 3), (second, 2)):
        age(session, hours=hours)
    third, _ = open_session(alice)
    assert live_ones() == {stranger.pk, other.pk, second.pk, third.pk}
    keep_busy(second)
    keep_busy(third)
    fourth, _ = open_session(alice)  # whose own are busy
    assert live_ones() == {other.pk, second.pk, third.pk, fourth.pk}
    fifth, _ = open_session(make_principal("eve"))  # who has none
    assert live_ones() == {second.pk, third.pk, fourth.pk, fifth.pk}


def test_a_client_without_a_user_has_a_cap_of_its_own(limit):
    limit(100, MAX_SESSIONS_PER_USER=2)
    machine, other = (Principal(AnonymousUser(), client) for client in ("one", "other"))
    theirs, _ = open_session(other)
    own = [open_session(machine)[0] for _ in range(3)]
    assert live_ones() == {theirs.pk, own[1].pk, own[2].pk}


def test_who_has_chosen_what_another_one_ends_looks_for_more(limit, monkeypatch):
    limit(3)
    for _ in range(3):
        open_session()
    choose = session_rows._longest_idle

    def late(*given: Any) -> Any:
        keys = choose(*given)
        monkeypatch.undo()
        open_session()
        return keys

    monkeypatch.setattr(session_rows, "_longest_idle", late)
    assert open_session()[0].pk in live_ones()
    assert len(live_ones()) == 3


def test_what_is_used_after_it_was_chosen_makes_no_room(limit, monkeypatch):
    """The last use decides once the row is locked, and another one is looked for."""
    limit(3)
    opened = [open_session()[0] for _ in range(3)]
    for number, session in enumerate(opened):
        age(session, hours=3 - number)
    choose = session_rows._longest_idle

    def late(*given: Any) -> Any:
        chosen = choose(*given)
        monkeypatch.undo()
        assert [*chosen] == [opened[0].pk]
        session_rows.touch_session(SimpleNamespace(id=str(opened[0].pk)))  # type: ignore[arg-type]
        return chosen

    monkeypatch.setattr(session_rows, "_longest_idle", late)
    newest, _ = open_session()
    assert live_ones() == {opened[0].pk, opened[2].pk, newest.pk}


def test_what_has_ended_keeps_nothing_of_what_its_client_said(limit):
    limit(1)
    ways = {
        "ended": lambda secret: session_rows.end_session(SERVER, digest(secret), NOBODY),
        "pushed out": lambda secret: open_session(),
        "expired": lambda secret: forget("expired sessions, which end"),
    }
    for way, end in ways.items():
        session, secret = open_session()
        if way == "expired":
            age(session, days=2)
        end(secret)
        row = Session.objects.get(pk=session.pk)
        said = (row.state, row.client_info, row.client_capabilities, row.client_name)
        assert said == ("ended", {}, {}, "client"), way


def test_busy_sessions_are_not_ended_to_make_room(limit):
    limit(2)
    opened = [open_session()[0] for _ in range(2)]
    for session in opened:
        keep_busy(session)
    with pytest.raises(Unavailable) as refused:
        open_session()
    assert refused.value.retry_after > 0
    assert Session.objects.count() == 2


def test_a_surplus_is_worked_off_in_bounded_steps(limit):
    opened = [open_session()[0] for _ in range(8)]
    limit(2)
    newest, _ = open_session()
    live = set(live_sessions().values_list("pk", flat=True))
    assert live == {opened[-1].pk, newest.pk}


def test_what_postgresql_cannot_store_is_left_out_of_client_info():
    client = MCPClient()
    answer = client.send(
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "nul\x00l", "version": "1"},
            },
        }
    )
    answer.assert_ok()
    assert Session.objects.get().client_name == "null"


def initialize(info=(), capabilities=()):
    """Open a session with more of what a client says of itself."""
    return MCPClient().send(
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-11-25",
                "capabilities": dict(capabilities),
                "clientInfo": {"name": "c", "version": "1", **dict(info)},
            },
        }
    )


def test_a_client_cannot_store_its_life_story():
    answer = initialize(capabilities={"experimental": {"x": {"y": "z" * 8192}}})
    answer.assert_error(-32602, "capabilities is too large; keep it to 8192 bytes")
    answer = initialize(info={"title": "z" * 8192})
    answer.assert_error(-32602, "clientInfo is too large; keep it to 8192 bytes")
    assert not Session.objects.exists()


def test_icons_that_are_whole_images_keep_no_client_out():
    icons = [{"src": f"data:image/png;base64,{'A' * size}"} for size in (10, 8192)]
    initialize(info={"icons": icons[:1]}).assert_ok()
    assert Session.objects.get().client_info["icons"] == icons[:1]
    Session.objects.all().delete()
    initialize(info={"icons": icons, "title": "Claude"}).assert_ok()
    assert Session.objects.get().client_info == {"name": "c", "version": "1", "title": "Claude"}
