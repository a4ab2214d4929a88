from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from django_mcp.models import PendingRequest

from .rows import REQUESTS, plant_requests, plant_sessions


def listed(client, query: str = "") -> list[PendingRequest]:
    """Return the requests on the page, in the order shown."""
    return list(client.get(f"{REQUESTS}{query}").context["cl"].result_list)


def text(client, path: str = "") -> str:
    return str(client.get(f"{REQUESTS}{path}").content, "utf-8")


def test_the_list_shows_who_waits_for_what(admin_client, anna):
    [session] = plant_sessions(user=anna)
    deadline = timezone.now() + timedelta(minutes=5, seconds=30)
    plant_requests(session=session, user=anna, client_id="laptop", deadline=deadline)
    page = text(admin_client)
    shown = ("tools/call find_orders", "from the client", "running", "anna", "laptop")
    for fact in (*shown, str(session.pk)[:8], f"/session/{session.pk}/change/", "support-desk"):
        assert fact in page
    assert "due <time" in page
    assert "in 5\xa0minutes" in page


def test_a_request_may_have_neither_session_nor_user(admin_client):
    plant_requests()
    assert "anonymous" in text(admin_client)


@pytest.mark.parametrize(
    ("values", "label", "tone"),
    [
        ({"state": "running"}, "running", "good"),
        ({"state": "running", "cancel_requested": True}, "cancel requested", "warning"),
        ({"state": "running", "lease_until": timezone.now()}, "process lost", "bad"),
        ({"state": "answered", "lease_until": timezone.now()}, "answered", "off"),
        ({"state": "failed"}, "failed", "bad"),
        ({"state": "timed_out"}, "timed out", "warning"),
        ({"state": "cancelled", "cancel_requested": True}, "cancelled", "warning"),
    ],
)
def test_the_badge_says_the_state(admin_client, values, label, tone):
    [row] = plant_requests(**values)
    badge = f'<span class="mcp-badge mcp-{tone}">{label}</span>'
    assert badge in text(admin_client)
    assert badge in text(admin_client, f"{row.pk}/change/")


def test_every_state_has_a_badge(admin_client):
    for state in PendingRequest.State:
        plant_requests(state=state)
    page = text(admin_client)
    for state in PendingRequest.State:
        assert f">{state.label}</span>" in page


def test_what_has_been_answered_is_not_due(admin_client):
    plant_requests(state="answered", deadline=timezone.now())
    assert "due <time" not in text(admin_client)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.04, "0.0\xa0s"), (1.26, "1.3\xa0s"), (42.4, "42\xa0s"), (3700, "1\xa0hour")],
)
def test_it_is_said_how_long_a_request_took(admin_client, seconds, shown):
    moment = timezone.now()
    [row] = plant_requests(
        state="answered", created=moment, ended=moment + timedelta(seconds=seconds)
    )
    assert f'class="field-took">{shown}<' in text(admin_client)
    assert shown in text(admin_client, f"{row.pk}/change/")


def test_it_is_said_how_long_a_request_has_been_running(admin_client):
    plant_requests(created=timezone.now() - timedelta(hours=2, minutes=1))
    plant_requests(state="answered")
    page = text(admin_client)
    assert 'class="field-took">2\xa0hours<' in page
    assert 'class="field-took">-<' in page


def test_the_newest_request_comes_first(admin_client):
    newest_first = plant_requests(3)
    assert listed(admin_client) == newest_first
    assert listed(admin_client, "?o=5") == newest_first[::-1]


def test_the_list_filters_by_state_direction_and_server(admin_client):
    [failed] = plant_requests(state="failed")
    [question] = plant_requests(direction="to")
    [foreign] = plant_requests(server="staff")
    assert listed(admin_client, "?state=failed") == [failed]
    assert listed(admin_client, "?direction=to") == [question]
    assert listed(admin_client, "?server=staff") == [foreign]


def test_search_finds_requests_by_session_user_and_name(admin_client, anna):
    [session] = plant_sessions()
    [of_session] = plant_requests(session=session)
    [of_user] = plant_requests(user=anna)
    [named] = plant_requests(name="Refund")
    assert listed(admin_client, f"?q={session.pk}") == [of_session]
    assert listed(admin_client, "?q=anna") == [of_user]
    assert listed(admin_client, "?q=ref") == [named]


def test_the_page_shows_the_request(admin_client, anna):
    [session] = plant_sessions(user=anna)
    [row] = plant_requests(session=session, user=anna, request_id='"a<b"', owner="9f3c1b2a")
    page = text(admin_client, f"{row.pk}/change/")
    for fact in ("find_orders", "&quot;a&lt;b&quot;", "9f3c1b2a", f"/session/{session.pk}/change/"):
        assert fact in page


@pytest.mark.parametrize(("requested", "word"), [(False, "No"), (True, "Yes")])
def test_the_page_says_in_words_whether_a_cancel_is_requested(admin_client, requested, word):
    [row] = plant_requests(cancel_requested=requested)
    page = text(admin_client, f"{row.pk}/change/")
    assert f'<div class="readonly">{word}</div>' in page
    assert "icon-no" not in page
    assert "icon-yes" not in page
