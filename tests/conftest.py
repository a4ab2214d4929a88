"""What every test of the project has."""

from __future__ import annotations

import pytest
from django.db import connection, connections
from django.test import TransactionTestCase
from django.utils import translation

from django_mcp.store.access import rate_counters
from django_mcp.store.ledger import close_ledger
from django_mcp.store.sessions import session_cache
from tests.emptying import emptying, what_is_kept
from tests.wire.validator import valid_wire

__all__ = ["valid_wire"]


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
    close_ledger()


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
