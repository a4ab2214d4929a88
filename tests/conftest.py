"""What every test of the project has."""

from __future__ import annotations

import signal
from copy import deepcopy
from functools import cache
from pathlib import Path

import pytest
from django.db import connection, connections
from django.test import TransactionTestCase
from django.utils import translation

from django_mcp.running.process_loop import close_process_loop
from django_mcp.store.access import rate_counters
from django_mcp.store.ledger import close_ledger
from django_mcp.store.sessions import session_cache
from tests.support.emptying import emptying, what_is_kept
from tests.wire.validator import valid_wire

from . import settings

__all__ = ["valid_wire"]

ROOT = Path(__file__).parent
SLOW = (
    "browser",
    "chaos",
    "client/test_dead_workers.py",
    "client/test_official_server.py",
    "client/test_own_server.py",
    "client/test_plants.py",
    "client/test_sync.py",
    "client/test_time.py",
    "clients",
    "delivery",
    "doctor/test_connection.py",
    "doctor/test_own_endpoint.py",
    "docs/test_errors.py",
    "docs/test_snippets.py",
    "example/test_demo.py",
    "example/test_live.py",
    "http/test_request_bodies.py",
    "http/test_costly_bodies.py",
    "running/test_worker_threads.py",
    "server/test_lists.py",
    "server/test_output.py",
    "store/test_a_day.py",
    "store/test_cleaning_beside_writers.py",
    "store/test_cleanup.py",
    "store/test_deleted_users.py",
    "store/test_members.py",
    "store/test_session_cache.py",
    "store/test_sweep.py",
    "contrib/tokens/test_admin.py",
    "wire/test_fields.py",
    "wire/test_limits.py",
    "wire/test_middleware.py",
    "wire/test_offers.py",
    "wire/test_origins.py",
    "wire/test_outages.py",
    "wire/test_properties.py",
    "wire/test_sizes.py",
    "workers",
)
"""What `make test` leaves out, below this folder: most of it starts processes, or waits."""
SLOW_ENTRANCES = ("asgi",)
"""Of the ways to the endpoint, the one that takes a loop and a thread for each request."""
OTHER_DOORS = {"entrance": ("wsgi", "asgi"), "application": ("view",)}
"""By the name of the parameter, the ways to the endpoint that write the rows that the mount writes.

SQLite shows each of them; a further database has nothing to tell of which way a request came.
"""
CONNECTIONS = (
    "delivery/test_connections.py",
    "delivery/test_outages.py",
    "delivery/test_transactions.py",
)
"""Where it does, below this folder: its connections break, are too many, or have a transaction."""
AS_WRITTEN = deepcopy(settings.DJANGO_MCP)

# A shell has what it starts in the background ignore Ctrl-C, and so would the servers of the tests.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is slow, and what comes by another door, before it is chosen by its marks."""
    for item in items:
        parameters = item.callspec.params if hasattr(item, "callspec") else {}
        if parameters.get("entrance") in SLOW_ENTRANCES or _is_slow(item.path):
            item.add_marker(pytest.mark.slow)
        is_other = any(parameters.get(name) in doors for name, doors in OTHER_DOORS.items())
        if is_other and not _is_among(CONNECTIONS, item.path):
            item.add_marker(pytest.mark.other_door)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even read what is slow, where it is not wanted."""
    leaves_out = "not slow" in config.option.markexpr
    return True if leaves_out and _is_slow(collection_path) else None


def _is_slow(path: Path) -> bool:
    return _is_among(SLOW, path)


@cache
def _is_among(places: tuple[str, ...], path: Path) -> bool:
    return any(map(path.relative_to(ROOT).is_relative_to, places))


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup, django_db_blocker):
    """Have the tables emptied quickly after each test that commits."""
    with django_db_blocker.unblock():
        empty = emptying(TransactionTestCase._fixture_teardown, what_is_kept())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", empty)
        yield


@pytest.fixture(autouse=True)
def own_ledger(request):
    """Leave no thread of the bookkeeping behind: it would write into the next test's tables."""
    # Asked for here, so that the tables are emptied after the thread has ended.
    for name in ("transactional_db", "db"):
        if name in request.fixturenames:
            request.getfixturevalue(name)
            break
    yield
    close_process_loop()
    close_ledger()


def check_settings() -> None:
    """Fail if the dictionary that all tests begin with is another than it was; mend it."""
    if settings.DJANGO_MCP != AS_WRITTEN:
        settings.DJANGO_MCP.clear()
        settings.DJANGO_MCP.update(deepcopy(AS_WRITTEN))
        pytest.fail(
            "DJANGO_MCP was changed for all tests. Set another one: "
            "settings.DJANGO_MCP = {**settings.DJANGO_MCP, ...}"
        )


@pytest.fixture(autouse=True)
def own_settings():
    """Leave no settings behind: ``settings.DJANGO_MCP |= {...}`` would."""
    yield
    check_settings()


@pytest.fixture(autouse=True)
def own_counts():
    """Leave no calls behind that count towards a limit."""
    yield
    rate_counters.forget()


@pytest.fixture(autouse=True)
def own_memory():
    """Leave no session behind that is remembered."""
    yield
    session_cache.memory().clear()
    session_cache._outage.ends()


@pytest.fixture(autouse=True)
def own_language():
    """Leave no language behind: LocaleMiddleware activates one for the thread and keeps it."""
    yield
    translation.deactivate()


@pytest.fixture
def repeatable_read(transactional_db):
    """Let transactions on MySQL and MariaDB read the past, as the servers do by default."""
    if connection.vendor == "mysql":
        # Not through the settings, as below.
        options = connections.settings["default"]["OPTIONS"]
        connections.settings["default"]["OPTIONS"] = options | {
            "isolation_level": "repeatable read"
        }
        connection.close()
    yield
    if connection.vendor == "mysql":
        connection.close()
        connections.settings["default"]["OPTIONS"] = options


@pytest.fixture
def atomic_requests():
    """Let the site want a transaction around each request."""
    # Not through the settings: the connections of this process have read theirs already.
    previous = connections.settings["default"]["ATOMIC_REQUESTS"]
    connections.settings["default"]["ATOMIC_REQUESTS"] = True
    yield
    connections.settings["default"]["ATOMIC_REQUESTS"] = previous
