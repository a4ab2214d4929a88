"""Calls that a member of staff cancels: by the button on a page, or several in the list."""

from __future__ import annotations

import uuid

import pytest
from django.contrib.admin.models import LogEntry

from django_mcp.models import PendingRequest
from django_mcp.store.ledger import ledger

from .rows import REQUESTS, plant_requests


def cancelled() -> set[uuid.UUID]:
    return set(PendingRequest.objects.filter(cancel_requested=True).values_list("pk", flat=True))


def press(client, row: PendingRequest) -> list[str]:
    """Press the button on the request's page and return what the page says afterwards."""
    response = client.post(f"{REQUESTS}{row.pk}/cancel/", follow=True)
    return [str(message) for message in response.context["messages"]]


def cancel(client, *rows: PendingRequest) -> list[str]:
    """Run the action and return what the page says afterwards."""
    data = {"action": "cancel_selected", "_selected_action": [row.pk for row in rows]}
    response = client.post(REQUESTS, data, follow=True)
    return [str(message) for message in response.context["messages"]]


def test_the_button_tells_a_call_to_end_and_its_process_to_look(admin_client, monkeypatch):
    row, other = plant_requests(2, channel="mcp!elsewhere")
    rung: list[str] = []
    monkeypatch.setattr(ledger().doorbell, "wake", rung.extend)
    page = admin_client.get(f"{REQUESTS}{row.pk}/change/").content.decode()
    assert f'action="{REQUESTS}{row.pk}/cancel/"' in page
    assert press(admin_client, row) == ["1 request is told to end."]
    assert cancelled() == {row.pk}
    assert rung == ["mcp!elsewhere"]
    assert "/cancel/" not in admin_client.get(f"{REQUESTS}{row.pk}/change/").content.decode()
    assert press(admin_client, row) == ["No request was cancelled: none was in flight."]
    other.refresh_from_db()
    assert other.state == "running"


@pytest.mark.parametrize("values", [{"state": "answered"}, {"direction": "to"}], ids=str)
def test_what_is_no_call_in_flight_is_left_alone(admin_client, values):
    [row] = plant_requests(**values)
    assert "/cancel/" not in admin_client.get(f"{REQUESTS}{row.pk}/change/").content.decode()
    assert press(admin_client, row) == ["No request was cancelled: none was in flight."]
    assert cancelled() == set()


def test_the_action_cancels_the_selected_calls_and_the_history_says_so(admin_client, admin_user):
    *chosen, _ = plant_requests(3)
    assert cancel(admin_client, *chosen) == ["2 requests are told to end."]
    assert cancelled() == {row.pk for row in chosen}
    entries = LogEntry.objects.filter(user=admin_user, change_message="Cancelled.")
    assert {entry.object_id for entry in entries} == {str(row.pk) for row in chosen}


@pytest.mark.parametrize(
    ("permission", "may"), [("view_pendingrequest", False), ("change_pendingrequest", True)]
)
def test_cancelling_takes_the_permission_to_change(staff, permission, may):
    client = staff(permission)
    [row] = plant_requests()
    page = client.get(f"{REQUESTS}{row.pk}/change/").content.decode()
    assert ("/cancel/" in page) is may
    assert ("cancel_selected" in client.get(REQUESTS).content.decode()) is may
    client.post(REQUESTS, {"action": "cancel_selected", "_selected_action": [row.pk]})
    assert client.post(f"{REQUESTS}{row.pk}/cancel/").status_code == (302 if may else 403)
    assert bool(cancelled()) is may
