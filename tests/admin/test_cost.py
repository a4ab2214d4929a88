"""What the pages cost: the same for a handful of rows and for very many."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.contrib import admin
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_mcp.admin import readonly
from django_mcp.admin.changelist import LISTED
from django_mcp.models import PendingRequest, Session

from .rows import REQUESTS, SESSIONS, plant_requests, plant_sessions

MANY = 20_000
LISTS = [
    SESSIONS,
    f"{SESSIONS}?p=20",
    f"{SESSIONS}?o=6",
    f"{SESSIONS}?state=ready&active=7d&revision=2025-11-25&server=support-desk",
    f"{SESSIONS}?state=expired",
    f"{SESSIONS}?q=claude",
    f"{SESSIONS}?q=ann",
    f"{SESSIONS}?_facets=True",
    f"{SESSIONS}?all=",
    REQUESTS,
    f"{REQUESTS}?p=20",
    f"{REQUESTS}?state=running&direction=from&server=support-desk",
    f"{REQUESTS}?q=find",
]
SORTING = ("Seq Scan on django_mcp", "TEMP B-TREE", "filesort")
"""How SQLite, PostgreSQL and MariaDB say that they have not found an index for an order."""


def statements(client, url: str) -> list[str]:
    """Return the SQL of a page that touches protocol rows, and check that there is a page."""
    with CaptureQueriesContext(connection) as context:
        assert client.get(url).status_code == 200
    return [query["sql"] for query in context if "django_mcp_" in query["sql"]]


@pytest.fixture
def many(db, anna) -> None:
    """More rows than any list shows."""
    sessions = plant_sessions(MANY, user=anna)
    plant_requests(MANY // 4, session=sessions[0], user=anna)
    if connection.vendor != "mysql":  # where it would commit
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")


@pytest.mark.parametrize("url", [SESSIONS, REQUESTS])
def test_rows_cost_no_statements(admin_client, django_user_model, url):
    def plant(number: int) -> None:
        for _ in range(number):
            user = django_user_model.objects.create_user(f"user{Session.objects.count()}")
            [session] = plant_sessions(user=user)
            plant_requests(session=session, user=user)

    plant(5)
    few = statements(admin_client, url)
    plant(45)
    assert len(statements(admin_client, url)) == len(few)


def test_the_requests_of_a_session_cost_no_statements(admin_client):
    [session] = plant_sessions()
    url = f"{SESSIONS}{session.pk}/change/"
    plant_requests(2, session=session)
    few = statements(admin_client, url)
    plant_requests(30, session=session)
    assert len(statements(admin_client, url)) == len(few)


@pytest.mark.slow
def test_many_rows_are_never_counted_nor_read(admin_client, many):
    for url in LISTS:
        found = statements(admin_client, url)
        assert 2 <= len(found) <= 4, url
        for sql in found:
            assert not re.search(r"\bcount\(|\bdistinct\b", sql, re.IGNORECASE), url
            assert re.search(r"LIMIT \d+|\bIN \(", sql), sql


def test_lists_leave_wide_and_secret_columns_alone(admin_client):
    plant_sessions(3)
    for sql in statements(admin_client, SESSIONS):
        for column in ("key_digest", "client_info", "client_capabilities"):
            assert column not in sql


@pytest.mark.slow
def test_an_index_orders_the_rows(rf, admin_user, many):
    for model, ordering in ((Session, "6"), (Session, "-6"), (PendingRequest, "4")):
        request = rf.get("/", {"o": ordering})
        request.user = admin_user
        rows = admin.site.get_model_admin(model).get_changelist_instance(request).queryset
        plan = rows.values_list("pk", flat=True)[: LISTED + 1].explain()
        assert not [sign for sign in SORTING if sign in plan], plan


def test_names_are_looked_for_among_the_newest_rows(admin_client, monkeypatch):
    monkeypatch.setattr(readonly, "SEARCHED", 10)
    plant_sessions(10)
    plant_sessions(client_name="claude-ai", idle=timedelta(days=1))
    assert admin_client.get(f"{SESSIONS}?q=claude-c").context["cl"].result_count == 10
    assert admin_client.get(f"{SESSIONS}?q=claude-a").context["cl"].result_count == 0


def test_parts_of_users_names_are_looked_for_among_the_newest_rows(admin_client, anna, monkeypatch):
    monkeypatch.setattr(readonly, "SEARCHED", 10)
    plant_sessions(10)
    plant_sessions(user=anna, idle=timedelta(days=1))
    assert admin_client.get(f"{SESSIONS}?q=ann").context["cl"].result_count == 0
    assert admin_client.get(f"{SESSIONS}?q=anna").context["cl"].result_count == 1
