"""Sessions that are found together: by one statement, whatever their number and state."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_mcp.models import Session
from django_mcp.store.prepared import MOST, SIZES
from django_mcp.store.sessions.finding import digest, find_sessions

from .visiting import Visit

pytestmark = pytest.mark.django_db


def keys_of(visits: list[Visit]) -> list[str]:
    return [digest(visit.secret) for visit in visits]


@pytest.mark.parametrize("number", sorted({1, 2, 3, *SIZES}))
def test_several_are_found_by_one_statement(number):
    visits = [Visit() for _ in range(number)]
    find_sessions(keys_of(visits))
    with CaptureQueriesContext(connection) as queries:
        found = find_sessions(keys_of(visits))
    assert len(queries) == 1
    assert {key: each.info.id for key, each in found.items()} == {
        digest(visit.secret): visit.info.id for visit in visits
    }


def test_more_are_found_by_several():
    visits = [Visit() for _ in range(MOST + 1)]
    with CaptureQueriesContext(connection) as queries:
        found = find_sessions(keys_of(visits))
    assert len(queries) == 2
    assert len(found) == MOST + 1


def test_those_that_have_ended_or_never_were_are_not_among_them():
    visits = [Visit() for _ in range(3)]
    visits[1].leave()
    found = find_sessions([*keys_of(visits), digest("another")])
    assert set(found) == {digest(visits[0].secret), digest(visits[2].secret)}


def test_what_is_stored_comes_back_as_it_was():
    visit = Visit()
    Session.objects.update(client_info={"name": "é", "deep": [1, {"a": None}]})
    found = find_sessions(keys_of([visit, Visit()]))[digest(visit.secret)]
    assert found.info.sender.info == {"name": "é", "deep": [1, {"a": None}]}
    assert found.info.id == visit.info.id
