"""What ends tokens in the admin, and what then deletes them."""

from __future__ import annotations

import datetime as dt

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.admin.templatetags.admin_urls import admin_urlname
from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from django_mcp.contrib.tokens.models import Token

LIST = "admin:django_mcp_tokens_token_changelist"
CHANGE = "admin:django_mcp_tokens_token_change"
REVOKE = "admin:django_mcp_tokens_token_revoke"
DELETE = "admin:django_mcp_tokens_token_delete"

PAST = dt.timedelta(seconds=-1)


@pytest.fixture
def expired(anna) -> Token:
    return Token.objects.issue(anna, name="expired", expires=PAST)[0]


@pytest.fixture
def revoked(anna) -> Token:
    token, _ = Token.objects.issue(anna, name="revoked")
    token.revoke()
    return token


def act(client: Client, action: str, *tokens: Token, **fields: str):
    data = {"action": action, "_selected_action": [token.pk for token in tokens], **fields}
    return client.post(reverse(LIST), data, follow=True)


def press(client: Client, token: Token):
    """Press the button on the token's page."""
    return client.post(reverse(REVOKE, args=[token.pk]), follow=True)


def said(response) -> list[str]:
    """Return the messages of a page."""
    return [str(message) for message in response.context["messages"]]


def page_of(client: Client, token: Token) -> str:
    return client.get(reverse(CHANGE, args=[token.pk])).content.decode()


def forbid(codename: str, django_user_model) -> None:
    """Take a permission from the clerk."""
    clerk = django_user_model.objects.get(username="clerk")
    clerk.user_permissions.remove(Permission.objects.get(codename=codename))


# Revoke: the button


def test_the_button_revokes_the_token(clerk, token, expired):
    url = reverse(REVOKE, args=[token.pk])
    assert f'action="{url}"' in page_of(clerk, token)
    response = press(clerk, token)
    assert response.redirect_chain[0][0] == reverse(CHANGE, args=[token.pk])
    assert said(response) == ["1 token was revoked."]
    assert set(Token.objects.filter(revoked__isnull=True)) == {expired}
    assert LogEntry.objects.get().object_id == str(token.pk)


def test_only_an_active_token_has_the_button(admin_client, expired, revoked):
    assert "/revoke/" not in page_of(admin_client, expired)
    assert "/revoke/" not in page_of(admin_client, revoked)


def test_a_token_is_revoked_once(admin_client, revoked):
    assert said(press(admin_client, revoked))[0].startswith("No token was revoked")
    assert Token.objects.get().revoked == revoked.revoked
    assert not LogEntry.objects.exists()


def test_the_button_wants_a_post_that_comes_from_the_admin(admin_client, admin_user, token):
    url = reverse(REVOKE, args=[token.pk])
    assert admin_client.get(url).status_code == 405
    assert "csrfmiddlewaretoken" in page_of(admin_client, token).split(f'action="{url}"')[1]
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(admin_user)
    assert strict.post(url).status_code == 403
    assert Token.objects.get().revoked is None


def test_the_button_takes_the_permission_to_change(clerk, token, django_user_model):
    forbid("change_token", django_user_model)
    assert "/revoke/" not in page_of(clerk, token)
    assert press(clerk, token).status_code == 403
    assert Token.objects.get().revoked is None


def test_strangers_are_sent_to_the_login(client, token):
    assert press(client, token).redirect_chain[0][0].startswith("/admin/login/")
    assert Token.objects.get().revoked is None


def test_the_button_of_an_unknown_token_finds_nothing(admin_client):
    assert admin_client.post(reverse(REVOKE, args=["nonsense"])).status_code == 404


# Revoke: the action


def test_the_action_revokes_the_selected_tokens(admin_client, anna, token, revoked):
    other, _ = Token.objects.issue(anna)
    assert said(act(admin_client, "revoke", token, revoked)) == ["1 token was revoked."]
    assert set(Token.objects.filter(revoked__isnull=True)) == {other}
    assert LogEntry.objects.get().object_id == str(token.pk)


def test_an_expired_token_can_be_revoked(admin_client, expired):
    assert said(act(admin_client, "revoke", expired)) == ["1 token was revoked."]


def test_revoking_costs_the_same_for_many(admin_client, anna, django_assert_num_queries):
    few = [Token.objects.issue(anna)[0] for _ in range(2)]
    many = [Token.objects.issue(anna)[0] for _ in range(20)]
    data = {"action": "revoke", "_selected_action": [token.pk for token in few]}
    ContentType.objects.get_for_model(Token)  # is cached from then on
    with CaptureQueriesContext(connection) as first:
        admin_client.post(reverse(LIST), data)
    data["_selected_action"] = [token.pk for token in many]
    with django_assert_num_queries(len(first)):
        admin_client.post(reverse(LIST), data)


def test_revoking_needs_the_permission_to_change(clerk, token, django_user_model):
    forbid("change_token", django_user_model)
    act(clerk, "revoke", token)
    assert Token.objects.get().revoked is None


# Delete


def test_only_the_page_of_a_token_that_has_ended_leads_to_its_deletion(
    admin_client, token, expired, revoked
):
    pages = [page_of(admin_client, each) for each in (token, expired, revoked)]
    assert ["deletelink" in page for page in pages] == [False, True, True]


def test_an_active_token_is_not_deleted(admin_client, token):
    url = reverse(DELETE, args=[token.pk])
    assert "which has to be revoked first" in admin_client.get(url).content.decode()
    admin_client.post(url, {"post": "yes"})
    assert Token.objects.exists()


@pytest.mark.parametrize("state", ["expired", "revoked"])
def test_a_token_that_has_ended_is_deleted(admin_client, state, request):
    url = reverse(DELETE, args=[request.getfixturevalue(state).pk])
    assert "Are you sure" in admin_client.get(url).content.decode()
    admin_client.post(url, {"post": "yes"})
    assert not Token.objects.exists()


def test_of_a_selection_the_active_tokens_are_left(admin_client, token, expired, revoked):
    selected = (token, expired, revoked)
    response = act(admin_client, "delete_selected", *selected)
    assert said(response) == ["1 active token is not deleted: revoke it first."]
    assert set(response.context["queryset"]) == {expired, revoked}
    assert Token.objects.count() == 3
    response = act(admin_client, "delete_selected", *selected, post="yes")
    assert "Successfully deleted 2 tokens." in said(response)
    assert Token.objects.get() == token
    assert {entry.object_id for entry in LogEntry.objects.all()} == {
        str(expired.pk),
        str(revoked.pk),
    }


def test_a_selection_of_active_tokens_leads_back_to_the_list(admin_client, anna, token):
    other, _ = Token.objects.issue(anna)
    response = act(admin_client, "delete_selected", token, other, post="yes")
    assert response.redirect_chain[0][0] == reverse(LIST)
    assert said(response) == ["2 active tokens are not deleted: revoke them first."]
    assert Token.objects.count() == 2


def test_deleting_takes_the_permission_to_delete(clerk, revoked, django_user_model):
    assert 'value="delete_selected"' in clerk.get(reverse(LIST)).content.decode()
    forbid("delete_token", django_user_model)
    assert 'value="delete_selected"' not in clerk.get(reverse(LIST)).content.decode()
    act(clerk, "delete_selected", revoked, post="yes")
    assert Token.objects.exists()


def test_a_site_without_the_action_has_none_for_tokens(admin_client, revoked, monkeypatch):
    monkeypatch.delitem(admin.site._actions, "delete_selected")  # as disable_action() does
    assert 'value="delete_selected"' not in admin_client.get(reverse(LIST)).content.decode()
    act(admin_client, "delete_selected", revoked, post="yes")
    assert Token.objects.exists()


def test_users_with_live_tokens_can_be_deleted(admin_client, anna, token):
    url = reverse(admin_urlname(anna._meta, "delete"), args=[anna.pk])
    admin_client.post(url, {"post": "yes"})
    assert not Token.objects.exists()
