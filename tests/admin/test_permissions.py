from __future__ import annotations

import pytest
from django.contrib.admin.templatetags.admin_urls import admin_urlname
from django.urls import reverse

from django_mcp.auth import Principal
from django_mcp.models import PendingRequest, Session
from django_mcp.protocol.lifecycle import Sender
from django_mcp.protocol.versions import R2025_11_25
from django_mcp.store.sessions.finding import digest
from django_mcp.store.sessions.session_rows import open_session

from .rows import REQUESTS, SESSIONS, plant_requests, plant_sessions


@pytest.fixture
def urls(db) -> dict[str, str]:
    """The page of a session and the page of a request."""
    [session] = plant_sessions()
    [request] = plant_requests(session=session)
    return {"session": f"{SESSIONS}{session.pk}/", "request": f"{REQUESTS}{request.pk}/"}


# Nothing is added, changed or deleted


@pytest.mark.parametrize("url", [SESSIONS, REQUESTS])
def test_nobody_adds_rows(admin_client, url):
    assert admin_client.get(f"{url}add/").status_code == 403
    assert "/add/" not in admin_client.get(url).content.decode().split('id="content"')[1]


@pytest.mark.parametrize("kind", ["session", "request"])
def test_nobody_changes_rows(admin_client, urls, kind):
    page = admin_client.get(f"{urls[kind]}change/").content.decode()
    assert 'name="_save"' not in page
    assert admin_client.post(f"{urls[kind]}change/", {"server": "other"}).status_code == 403


@pytest.mark.parametrize("kind", ["session", "request"])
def test_nobody_deletes_rows(admin_client, urls, kind):
    assert "deletelink" not in admin_client.get(f"{urls[kind]}change/").content.decode()
    assert admin_client.get(f"{urls[kind]}delete/").status_code == 403
    assert admin_client.post(f"{urls[kind]}delete/", {"post": "yes"}).status_code == 403
    assert Session.objects.exists()
    assert PendingRequest.objects.exists()


@pytest.mark.parametrize("url", [SESSIONS, REQUESTS])
def test_there_is_no_action_that_deletes(admin_client, urls, url):
    assert "delete_selected" not in admin_client.get(url).content.decode()


def test_a_user_can_be_deleted_together_with_their_sessions(admin_client, anna):
    [session] = plant_sessions(user=anna)
    plant_requests(session=session, user=anna)
    url = reverse(admin_urlname(anna._meta, "delete"), args=[anna.pk])
    admin_client.post(url, {"post": "yes"})
    assert not Session.objects.exists()
    assert not PendingRequest.objects.exists()


# Who sees what


@pytest.mark.parametrize(
    ("permission", "seen"),
    [
        ("view_session", "session"),
        ("change_session", "session"),
        ("view_pendingrequest", "request"),
    ],
)
def test_seeing_takes_the_permission_to_view(staff, urls, permission, seen):
    client = staff(permission)
    lists = {"session": SESSIONS, "request": REQUESTS}
    for kind, url in lists.items():
        expected = 200 if kind == seen else 403
        assert client.get(url).status_code == expected
        assert client.get(f"{urls[kind]}change/").status_code == expected


def test_the_requests_of_a_session_take_their_own_permission(staff, urls):
    page = staff("view_session").get(f"{urls['session']}change/").content.decode()
    assert "find_orders" not in page


def test_strangers_are_sent_to_the_login(client, urls):
    for url in (SESSIONS, REQUESTS, urls["session"] + "change/"):
        assert client.get(url)["Location"].startswith("/admin/login/")


# Secrets


def test_no_page_shows_the_secret_of_a_session_or_its_digest(admin_client, admin_user):
    principal = Principal(user=admin_user)
    sender = Sender({"name": "claude-code"}, {}, "info")
    info, secret = open_session("support-desk", principal, R2025_11_25, sender)
    [request] = plant_requests(session_id=info.id, user=admin_user)
    pages = (
        SESSIONS,
        f"{SESSIONS}{info.id}/change/",
        f"{SESSIONS}{info.id}/history/",
        REQUESTS,
        f"{REQUESTS}{request.pk}/change/",
    )
    for url in pages:
        page = admin_client.get(url).content.decode()
        assert info.id[:8] in page or url.endswith("/history/")
        assert secret not in page
        assert digest(secret) not in page


@pytest.mark.parametrize(
    "lookup",
    ["key_digest__startswith=a", "key_digest=a", "client_info__contains=a", "user__password=a"],
)
def test_no_digest_can_be_guessed_by_filtering(admin_client, lookup):
    assert admin_client.get(f"{SESSIONS}?{lookup}").status_code == 400
    assert admin_client.get(f"{REQUESTS}?session__{lookup}").status_code == 400
