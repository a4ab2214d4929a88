from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest

from django_mcp.models import PendingRequest, Session

from .rows import SESSIONS, plant_requests, plant_sessions

DAY = timedelta(days=1)


def listed(client, query: str = "") -> list[Session]:
    """Return the sessions on the page, in the order shown."""
    return list(client.get(f"{SESSIONS}{query}").context["cl"].result_list)


def text(client, path: str = "") -> str:
    return str(client.get(f"{SESSIONS}{path}").content, "utf-8")


# List


def test_the_list_shows_who_does_what_since_when(admin_client, anna):
    [session] = plant_sessions(
        user=anna, client_id="laptop", request_count=34, idle=timedelta(seconds=200)
    )
    page = text(admin_client)
    shown = (str(session.pk)[:8], "support-desk", "ready", "anna", "laptop", "claude-code")
    for fact in (*shown, "2025-11-25", ">34<", "3\xa0minutes ago</time>", "active <time"):
        assert fact in page


def test_a_session_may_have_neither_user_nor_name(admin_client):
    plant_sessions(client_name="")
    page = text(admin_client)
    assert "anonymous" in page
    assert "unnamed" in page


def test_the_list_may_be_empty(admin_client):
    assert "0 sessions" in text(admin_client)


def test_the_session_that_was_opened_last_comes_first(admin_client):
    old, new = (plant_sessions(idle=idle)[0] for idle in (DAY / 2, timedelta()))
    assert listed(admin_client) == [new, old]
    assert listed(admin_client, "?o=6") == [old, new]


def test_columns_without_an_index_are_not_sorted_by(admin_client):
    idle, busy = (
        plant_sessions(idle=DAY / 2, request_count=1)[0],
        plant_sessions(request_count=9)[0],
    )
    assert listed(admin_client, "?o=5") == [busy, idle]
    assert listed(admin_client, "?o=-5") == [busy, idle]


@pytest.mark.parametrize(
    ("values", "label", "tone"),
    [
        ({"state": "opened"}, "opened", "new"),
        ({"state": "ready"}, "ready", "good"),
        ({"state": "ready", "idle": 2 * DAY}, "expired", "warning"),
        ({"state": "opened", "idle": 31 * DAY}, "expired", "warning"),
        ({"state": "ended"}, "ended", "off"),
    ],
)
def test_the_badge_says_the_state(admin_client, values, label, tone):
    [session] = plant_sessions(**values)
    badge = f'<span class="mcp-badge mcp-{tone}">{label}</span>'
    assert badge in text(admin_client)
    assert badge in text(admin_client, f"{session.pk}/change/")


def test_a_busy_session_never_expires(admin_client):
    [session] = plant_sessions(idle=2 * DAY)
    plant_requests(session=session, state=PendingRequest.State.RUNNING)
    assert ">ready</span>" in text(admin_client)


# Pages


def test_no_more_is_listed_than_can_be_paged_through(admin_client):
    plant_sessions(1_001)
    page = text(admin_client)
    assert "1000 sessions" in page
    assert "There are more than 1000 sessions" in page
    assert len(listed(admin_client, "?p=20")) == 50
    assert admin_client.get(f"{SESSIONS}?p=21").status_code == 302


def test_pages_follow_each_other(admin_client):
    planted = plant_sessions(70)
    assert listed(admin_client) == planted[:50]
    assert listed(admin_client, "?p=2") == planted[50:]
    assert "There are more than" not in text(admin_client)


# Filters


@pytest.fixture
def some(db) -> dict[str, Session]:
    """One session in each state."""
    return {
        "opened": plant_sessions(state="opened")[0],
        "ready": plant_sessions(state="ready", idle=DAY / 2)[0],
        "expired": plant_sessions(state="ready", idle=2 * DAY)[0],
        "ended": plant_sessions(state="ended", idle=8 * DAY)[0],
    }


@pytest.mark.parametrize("state", ["opened", "ready", "expired", "ended"])
def test_the_list_filters_by_the_state_that_it_shows(admin_client, some, state):
    assert listed(admin_client, f"?state={state}") == [some[state]]


@pytest.mark.parametrize(
    ("span", "states"),
    [
        ("5m", ["opened"]),
        ("1d", ["opened", "ready"]),
        ("7d", ["opened", "ready", "expired"]),
        ("nonsense", ["opened", "ready", "expired", "ended"]),
    ],
)
def test_the_list_filters_by_activity(admin_client, some, span, states):
    assert listed(admin_client, f"?active={span}") == [some[state] for state in states]


def test_filters_combine(admin_client, some):
    assert listed(admin_client, "?state=ready&active=1d") == [some["ready"]]
    assert listed(admin_client, "?state=ready&active=5m") == []


def test_the_list_filters_by_revision(admin_client):
    [old], _ = plant_sessions(revision="2025-03-26"), plant_sessions()
    assert listed(admin_client, "?revision=2025-03-26") == [old]
    page = text(admin_client)
    for revision in ("2025-03-26", "2025-06-18", "2025-11-25"):
        assert f"?revision={revision}" in page
    assert "?revision=2026-07-28" not in page


def test_the_list_filters_by_server_where_there_are_several(admin_client):
    plant_sessions(server="shop")
    assert "By server" not in text(admin_client)
    [other] = plant_sessions(server="staff")
    page = text(admin_client)
    assert "?server=shop" in page
    assert "?server=staff" in page
    assert listed(admin_client, "?server=staff") == [other]


# Search


def test_search_finds_a_session_by_its_public_id(admin_client):
    wanted, _ = plant_sessions(2)
    assert listed(admin_client, f"?q={wanted.pk}") == [wanted]
    assert listed(admin_client, f"?q={wanted.pk.hex}") == [wanted]
    assert listed(admin_client, f"?q={uuid4()}") == []


def test_search_finds_the_sessions_of_a_user(admin_client, anna):
    mine, _ = plant_sessions(user=anna), plant_sessions(client_name="annabel")
    assert listed(admin_client, "?q=anna") == mine


@pytest.mark.parametrize("part", ["ANNA", "Anna.K", "nna.kar", "KARENINA"])
def test_search_finds_sessions_by_part_of_a_user_s_name_in_any_case(
    admin_client, django_user_model, part
):
    karenina = django_user_model.objects.create_user("Anna.Karenina")
    mine, _ = plant_sessions(user=karenina), plant_sessions(client_name="anniversary")
    plant_sessions(user=django_user_model.objects.create_user("vronsky"))
    assert listed(admin_client, f"?q={part}") == mine


def test_search_for_a_part_finds_all_whose_name_has_it(admin_client, anna, django_user_model):
    joanna = django_user_model.objects.create_user("JoAnna")
    sessions = plant_sessions(user=joanna) + plant_sessions(user=anna, idle=DAY / 2)
    sessions += plant_sessions(client_name="ANNotator", idle=DAY)
    assert listed(admin_client, "?q=ann") == sessions


def test_what_a_search_means_by_itself_is_looked_for_as_it_is(admin_client, django_user_model):
    wanted = plant_sessions(user=django_user_model.objects.create_user("a%_b"))
    plant_sessions(user=django_user_model.objects.create_user("axxb"))
    assert listed(admin_client, "?q=%25_") == wanted


def test_search_finds_sessions_by_the_beginning_of_a_client_s_name(admin_client):
    wanted, _ = plant_sessions(client_name="Visual Studio Code"), plant_sessions()
    assert listed(admin_client, "?q=visual+studio") == wanted
    assert listed(admin_client, "?q=studio") == []


def test_search_and_filters_combine(admin_client, anna):
    [ended] = plant_sessions(user=anna, state="ended")
    plant_sessions(user=anna)
    assert listed(admin_client, "?q=anna&state=ended") == [ended]


def test_search_for_nothing_lists_all(admin_client):
    planted = plant_sessions(2)
    assert listed(admin_client, "?q=+") == planted


# Page of a session


def test_the_page_shows_what_the_client_said(admin_client):
    [session] = plant_sessions(
        client_info={"name": "claude-code", "version": "<2>"},
        client_capabilities={"roots": {"listChanged": True}},
        log_level="warning",
    )
    page = text(admin_client, f"{session.pk}/change/")
    for fact in (str(session.pk), "&lt;2&gt;", "listChanged", "warning", "in 4\xa0weeks"):
        assert fact in page
    assert "<2>" not in page


def test_the_page_shows_the_newest_requests_of_the_session(admin_client):
    [session], [other] = plant_sessions(), plant_sessions()
    plant_requests(session=session, name="forgotten")
    plant_requests(20, session=session)
    plant_requests(session=session, name="newest")
    plant_requests(session=other, name="foreign")
    response = admin_client.get(f"{SESSIONS}{session.pk}/change/")
    forms = response.context["inline_admin_formsets"][0].formset.initial_forms
    assert [form.instance.name for form in forms] == ["newest", *["find_orders"] * 19]
    assert "tools/call newest" in response.content.decode()


def test_the_page_says_that_a_session_has_no_requests(admin_client):
    [idle], [busy] = plant_sessions(), plant_sessions()
    plant_requests(session=busy)
    nothing = '<p class="mcp-none">None</p>'
    page = text(admin_client, f"{idle.pk}/change/")
    assert "Newest pending requests" in page
    assert nothing in page
    assert "<table" not in page.split('id="content"')[1]
    assert nothing not in text(admin_client, f"{busy.pk}/change/")


def test_an_unknown_session_leads_back(admin_client):
    assert admin_client.get(f"{SESSIONS}{uuid4()}/change/").status_code == 302
    assert admin_client.get(f"{SESSIONS}nonsense/change/").status_code == 302
