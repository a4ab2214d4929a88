"""How often tools may be called; 429 at each entrance, in each era."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.core.cache import caches
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext

from django_mcp import MCPServer, endpoint
from django_mcp.auth import Principal
from django_mcp.http.rate_limits import _neighbourhood
from django_mcp.models import CallCount, PendingRequest, Session
from django_mcp.rates import Rate
from django_mcp.store.access import rate_counters
from tests.support.caller import Caller
from tests.support.entrances import open_entrance
from tests.support.messages import IDS, LEGACY, MODERN, notification, request
from tests.support.sites import urlconf

from .test_errors import assert_error

server = MCPServer("limited", version="1")
made: list[str] = []
allowed: list[bool] = []


@server.tool
def free() -> str:
    """Be called as often as the setting lets."""
    made.append("free")
    return "made"


@server.tool(rate_limit="2/h")
def rare() -> str:
    """Be called twice."""
    made.append("rare")
    return "made"


@server.tool(rate_limit="2/h per process")
async def arare() -> str:
    """Be called twice, at each process."""
    made.append("arare")
    return "made"


@server.tool(rate_limit="1/h", permission=lambda user: bool(allowed))
def hidden() -> str:
    """Be there for some."""
    return "made"


def by_header(request: Any) -> Principal:
    """Know nobody but the client that a header names, and how a proxy would count it."""
    headers = request.headers
    return Principal(
        AnonymousUser(),
        client_id=headers.get("X-Client", ""),
        limited_as=headers.get("X-Counted", ""),
    )


@pytest.fixture(autouse=True)
def _limited(settings: Any) -> Iterator[None]:
    settings.ROOT_URLCONF = urlconf(endpoint("mcp", server=server))
    settings.DJANGO_MCP = {"AUTH": by_header, "WORKER_THREADS": 2, "RATE_LIMIT": ""}
    made.clear()
    allowed.clear()
    yield
    rate_counters._availability.note_success()


def limit(settings: Any, rate: str, **more: Any) -> None:
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "RATE_LIMIT": rate, **more}


@pytest.fixture(params=[MODERN, *LEGACY])
def member(caller: Caller, request: pytest.FixtureRequest) -> Caller:
    """A client of each revision."""
    return caller if request.param == MODERN else caller.opened(request.param)


def statuses(caller: Caller, name: str, times: int) -> list[int]:
    return [caller.call("tools/call", name=name, arguments={}).status for _ in range(times)]


@pytest.mark.parametrize("name", ["rare", "arare"])
def test_one_call_too_many_is_429_with_its_id_and_runs_nothing(member, name):
    assert statuses(member, name, 2) == [200, 200]
    for request_id in IDS:
        answer = member.call("tools/call", request_id, name=name, arguments={})
        assert_error(answer, 429, -32600, request_id)
        assert 3000 < int(answer.header("Retry-After")) <= 3600
        assert answer.error["data"] == {"retryAfterSeconds": int(answer.header("Retry-After"))}
        assert f"the tool {name}: at most 2 in an hour" in answer.error["message"]
    assert made == [name] * 2
    assert not PendingRequest.objects.exists()
    assert statuses(member, "free", 3) == [200] * 3


@pytest.mark.parametrize("rate", ["3/m", "3/d per process"])
def test_the_setting_counts_all_tools_together(member, settings, rate):
    limit(settings, rate)
    assert statuses(member, "free", 1) == [200]
    member.call("tools/call", name="unknown", arguments={})
    assert statuses(member, "rare", 2) == [200, 429]
    answer = member.call("tools/call", name="free", arguments={})
    assert_error(answer, 429, -32600, 1)
    assert "calls of tools" in answer.error["message"]
    assert member.call("tools/list").status == 200


def test_of_a_batch_only_what_is_too_much_is_refused(caller):
    """2025-03-26 has batches; an item has no status and no header of its own."""
    member = caller.opened("2025-03-26")
    calls = [
        request("tools/call", number, name=name, arguments={})
        for number, name in enumerate(["rare", "rare", "rare", "free"])
    ]
    answer = member.post([*calls, request("ping", "p")])
    assert answer.status == 200
    found = {each["id"]: each for each in answer.message}
    assert [("result" in found[key]) for key in (0, 1, 2, 3, "p")] == [
        True,
        True,
        False,
        True,
        True,
    ]
    assert found[2]["error"]["code"] == -32600
    assert found[2]["error"]["data"]["retryAfterSeconds"] > 0
    assert made == ["rare", "rare", "free"]


def test_everybody_has_a_count_of_their_own(caller):
    ada, bob = caller.with_headers(X_Client="ada"), caller.with_headers(X_Client="bob")
    assert statuses(ada, "rare", 3) == [200, 200, 429]
    assert statuses(bob, "rare", 3) == [200, 200, 429]
    # Callers of whom nothing is known are told apart by their addresses: here there is one.
    assert statuses(caller, "rare", 3) == [200, 200, 429]


def test_auth_may_say_whom_limits_count(caller):
    one, other = caller.with_headers(X_Counted="one"), caller.with_headers(X_Counted="other")
    assert statuses(one.with_headers(X_Client="ada"), "rare", 2) == [200, 200]
    assert statuses(one.with_headers(X_Client="bob"), "rare", 1) == [429]
    assert statuses(other.with_headers(X_Client="ada"), "rare", 1) == [200]


def cancellation(number: int) -> dict[str, Any]:
    return notification("notifications/cancelled", requestId=number)


@pytest.mark.parametrize("rate", ["3/m", "3/d per process"])
def test_opening_sessions_is_counted_by_itself(caller, settings, rate):
    limit(settings, rate)
    assert [caller.initialize("2025-11-25").status for _ in range(3)] == [200] * 3
    answer = caller.initialize("2025-11-25")
    assert_error(answer, 429, -32600, 1)
    assert "Too many calls of initialize, subscriptions/listen" in answer.error["message"]
    assert Session.objects.count() == 3
    counted = caller.with_headers(X_Counted="somebody else")
    assert counted.initialize("2025-11-25").status == 200
    assert statuses(caller, "free", 3) == [200] * 3


def test_cancellations_are_counted_as_they_leave_rows(caller, settings):
    limit(settings, "4/m")
    member = caller.opened("2025-11-25")
    assert [member.post(cancellation(number)).status for number in range(4)] == [202] * 3 + [429]
    assert PendingRequest.objects.count() == 3
    # What leaves nothing is not counted.
    assert member.post(notification("notifications/progress")).status == 202
    assert statuses(member, "free", 1) == [200]


def test_cancellations_of_a_batch_that_are_too_many_are_dropped(caller, settings):
    limit(settings, "4/m")
    member = caller.opened("2025-03-26")
    answer = member.post([*(cancellation(number) for number in range(6)), request("ping", "p")])
    assert answer.status == 200
    assert [each["id"] for each in answer.message] == ["p"]
    assert PendingRequest.objects.count() == 3


def test_a_limit_does_not_tell_that_there_is_a_tool(caller):
    hidden_ones = [caller.call("tools/call", name="hidden", arguments={}) for _ in range(3)]
    unknown = caller.call("tools/call", name="nowhere", arguments={})
    assert {each.status for each in hidden_ones} == {unknown.status}
    assert all("Unknown tool" in each.error["message"] for each in hidden_ones)
    allowed.append(True)
    assert statuses(caller, "hidden", 2) == [200, 429]


def test_a_period_that_has_ended_is_followed_by_another(caller):
    assert statuses(caller, "rare", 3) == [200, 200, 429]
    CallCount.objects.update(ends="2020-01-01T00:00:00Z")
    assert statuses(caller, "rare", 3) == [200, 200, 429]
    assert CallCount.objects.count() == 1


@pytest.mark.django_db
def test_counts_of_periods_long_gone_are_removed():
    CallCount.objects.create(key="a", number=1, ends="2020-01-01T00:00:00Z")
    CallCount.objects.create(key="b", number=1, ends="2120-01-01T00:00:00Z")
    assert rate_counters.prune() == 1
    assert CallCount.objects.get().key == "b"


@pytest.mark.django_db
@pytest.mark.parametrize(("rate", "cost"), [(None, 0), ("", 0), ("9/h per process", 0), ("9/h", 1)])
def test_a_call_costs_a_statement_only_where_all_processes_count(settings, rate, cost):
    """By default, too, a modern call needs no database."""
    given = {} if rate is None else {"RATE_LIMIT": rate}
    settings.DJANGO_MCP = {"AUTH": by_header, **given}
    caller = Caller(open_entrance("wsgi"))
    assert statuses(caller, "free", 1) == [200]
    with CaptureQueriesContext(connection) as captured:
        assert statuses(caller, "free", 1) == [200]
    statements = [each["sql"] for each in captured if "SAVEPOINT" not in each["sql"]]
    assert len(statements) == cost


# Where calls are counted


@pytest.fixture
def shared(settings: Any) -> Any:
    """A cache that counts; no process of this test but this one uses it."""
    settings.CACHES = {"counts": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
    limit(settings, "", RATE_LIMIT_CACHE="counts")
    yield caches["counts"]
    caches["counts"].clear()


def test_a_cache_may_count_instead_of_the_database(caller, shared):
    assert statuses(caller, "rare", 4) == [200, 200, 429, 429]
    assert not CallCount.objects.exists()
    shared.clear()
    assert statuses(caller, "rare", 3) == [200, 200, 429]


def test_a_cache_that_is_away_lets_each_process_count_for_itself(
    caller, shared, monkeypatch, caplog
):
    """Slower, or here looser, but nobody is turned away; said once."""

    def away(*args: Any, **kwargs: Any) -> None:
        raise ConnectionError("planted")

    monkeypatch.setattr(type(shared), "incr", away)
    assert statuses(caller, "rare", 3) == [200, 200, 429]
    assert sum("cannot be counted" in each.message for each in caplog.records) == 1
    monkeypatch.undo()
    assert statuses(caller, "rare", 3) == [200, 200, 429]


def test_without_the_database_calls_go_on(caller, monkeypatch):
    def away(*args: Any) -> None:
        raise OperationalError("planted")

    monkeypatch.setattr(rate_counters, "_count", away)
    assert statuses(caller, "rare", 3) == [200, 200, 429]


def test_a_process_forgets_whom_it_counted_first_when_it_counts_too_many(monkeypatch):
    monkeypatch.setattr(rate_counters, "MAX_COUNTS", 2)
    rate = Rate.parse("1/h per process")
    assert [rate_counters.spend(key, rate) > 0 for key in "aabca"] == [
        False,
        True,
        False,
        False,
        False,
    ]
    assert len(rate_counters._process._counts) == 2


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("192.0.2.1", "192.0.2.2", False),
        ("2001:db8:0:1::1", "2001:db8:0:1:ffff::2", True),
        ("2001:db8:0:1::1", "2001:db8:0:2::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("fe80::1%eth0", "fe80::2%eth1", True),
        ("", "", True),
        ("a socket", "", False),
    ],
)
def test_addresses_that_cost_nothing_to_change_are_one(one, other, same):
    assert (_neighbourhood(one) == _neighbourhood(other)) is same


@pytest.mark.parametrize("name", [[], {}, 7, None, ["hidden"]])
def test_a_tool_without_a_name_is_an_error_of_the_request(name, member, settings):
    """Where calls are counted by tool, what is no name is not looked up."""
    limit(settings, "9/m")
    answer = member.call("tools/call", 5, name=name, arguments={})
    assert answer.message["id"] == 5
    assert answer.message["error"]["code"] in (-32602, -32020)


def test_whose_row_goes_again_and_again_comes_back_in_a_second(monkeypatch):
    begun: list[str] = []
    monkeypatch.setattr(rate_counters, "_count", lambda key, rate: False)
    monkeypatch.setattr(rate_counters, "_waiting", lambda key, rate: 0.0)
    monkeypatch.setattr(rate_counters, "_begin", lambda key, rate: begun.append(key))
    assert rate_counters._spend_in_rows("anna", Rate(1, 60)) == 1.0
    assert begun == ["anna"] * 3


def test_each_time_that_calls_cannot_be_counted_is_said_once(monkeypatch, caplog, db):
    rate, results = Rate.parse("9/m"), iter([OSError("away"), OSError("away"), None, OSError("x")])

    def spend(key: str, rate: Rate) -> float:
        if (error := next(results)) is not None:
            raise error
        return 0.0

    monkeypatch.setattr(rate_counters, "_spend_in_rows", spend)
    for _ in range(4):
        rate_counters.spend("key", rate)
    said = [each for each in caplog.records if "cannot be counted" in each.getMessage()]
    assert len(said) == 2
