from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from django_mcp.admin.changelist import LISTED
from django_mcp.models import Session

from .rows import SESSIONS, plant_sessions

IDLE = timedelta(days=2)


def end(client, *sessions: Session, query: str = "", across: bool = False) -> list[str]:
    """Run the action and return what the page says afterwards."""
    data = {
        "action": "end_selected",
        "_selected_action": [session.pk for session in sessions],
        "select_across": str(int(across)),
    }
    response = client.post(f"{SESSIONS}{query}", data, follow=True)
    return [str(message) for message in response.context["messages"]]


def press(client, session: Session) -> list[str]:
    """Press the button on the session's page and return what the page says afterwards."""
    response = client.post(f"{SESSIONS}{session.pk}/end/", follow=True)
    return [str(message) for message in response.context["messages"]]


def live_keys() -> set[object]:
    return set(Session.objects.exclude(state="ended").values_list("pk", flat=True))


def test_the_action_ends_the_selected_sessions(admin_client):
    *chosen, other = plant_sessions(3)
    assert end(admin_client, *chosen) == ["2 sessions were ended."]
    assert live_keys() == {other.pk}
    assert Session.objects.get(pk=chosen[0].pk).ended is not None


def test_those_that_had_ended_before_are_neither_counted_nor_touched(admin_client):
    [live], [ended] = plant_sessions(), plant_sessions(state="ended")
    assert end(admin_client, live, ended) == ["1 session was ended."]
    ended.refresh_from_db()
    assert ended.ended is None


def test_nothing_to_end_is_said(admin_client):
    [ended] = plant_sessions(state="ended")
    [message] = end(admin_client, ended)
    assert message.startswith("No session was ended")


@pytest.mark.parametrize("query", ["?state=ready", "?state=expired", "?q=anna", "?active=7d"])
def test_the_action_works_on_any_list(admin_client, anna, query):
    idle = IDLE if "expired" in query else timedelta()
    [session] = plant_sessions(user=anna, idle=idle)
    plant_sessions(state="ended", idle=timedelta(days=9))
    assert end(admin_client, session, query=query) == ["1 session was ended."]


def test_selecting_all_reaches_what_the_list_shows_and_no_more(admin_client):
    plant_sessions(LISTED + 5)
    hidden = set(Session.objects.order_by("last_active").values_list("pk", flat=True)[:5])
    selected = Session.objects.first()
    assert selected is not None
    assert end(admin_client, selected, across=True) == [f"{LISTED} sessions were ended."]
    assert live_keys() == hidden


def test_the_button_ends_the_session(admin_client):
    session, other = plant_sessions(2)
    page = admin_client.get(f"{SESSIONS}{session.pk}/change/").content.decode()
    assert f'action="{SESSIONS}{session.pk}/end/"' in page
    assert press(admin_client, session) == ["1 session was ended."]
    assert live_keys() == {other.pk}
    page = admin_client.get(f"{SESSIONS}{session.pk}/change/").content.decode()
    assert "/end/" not in page
    assert press(admin_client, session)[0].startswith("No session was ended")


def test_an_expired_session_can_be_ended(admin_client):
    [session] = plant_sessions(idle=IDLE)
    assert press(admin_client, session) == ["1 session was ended."]


def test_the_history_says_who_ended_a_session(admin_client, admin_user):
    sessions = plant_sessions(3)
    press(admin_client, sessions[0])
    end(admin_client, *sessions)
    entries = LogEntry.objects.filter(user=admin_user, change_message="Ended.")
    assert {entry.object_id for entry in entries} == {str(session.pk) for session in sessions}
    assert len(entries) == len(sessions)
    page = admin_client.get(f"{SESSIONS}{sessions[0].pk}/history/").content.decode()
    assert "Ended." in page


def test_the_button_wants_a_post_that_comes_from_the_admin(admin_client, admin_user):
    [session] = plant_sessions()
    assert admin_client.get(f"{SESSIONS}{session.pk}/end/").status_code == 405
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(admin_user)
    assert strict.post(f"{SESSIONS}{session.pk}/end/").status_code == 403
    assert live_keys() == {session.pk}


def test_the_button_of_an_unknown_session_finds_nothing(admin_client):
    assert admin_client.post(f"{SESSIONS}nonsense/end/").status_code == 404


@pytest.mark.parametrize(
    ("permissions", "may"),
    [(("view_session",), False), (("change_session",), True), (("view_pendingrequest",), False)],
)
def test_ending_takes_the_permission_to_change(staff, permissions, may):
    client = staff(*permissions)
    [session] = plant_sessions()
    page = client.get(f"{SESSIONS}{session.pk}/change/").content.decode()
    assert ("/end/" in page) is may
    assert ("end_selected" in client.get(SESSIONS).content.decode()) is may
    client.post(SESSIONS, {"action": "end_selected", "_selected_action": [session.pk]})
    assert bool(live_keys()) is not may


def test_without_that_permission_the_button_refuses(staff):
    [session] = plant_sessions()
    assert staff("view_session").post(f"{SESSIONS}{session.pk}/end/").status_code == 403
    assert live_keys() == {session.pk}
