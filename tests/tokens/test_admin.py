from __future__ import annotations

import datetime as dt
import re

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import path, reverse

from django_mcp.contrib.tokens.models import Token
from django_mcp.contrib.tokens.secret import PATTERN

urlpatterns = [path("admin/", admin.site.urls)]

pytestmark = pytest.mark.urls(__name__)

LIST = "admin:django_mcp_tokens_token_changelist"
ADD = "admin:django_mcp_tokens_token_add"
CHANGE = "admin:django_mcp_tokens_token_change"
DELETE = "admin:django_mcp_tokens_token_delete"

PAST = dt.timedelta(seconds=-1)


@pytest.fixture
def clerk(db, django_user_model) -> Client:
    """A member of staff who may do everything with tokens, and nothing else."""
    user = django_user_model.objects.create_user("clerk", is_staff=True)
    user.user_permissions.set(
        Permission.objects.filter(content_type__app_label="django_mcp_tokens")
    )
    client = Client()
    client.force_login(user)
    return client


def post_new(client: Client, user, **fields: str):
    data = {"user": user.pk, "name": "", "servers": "", "expires_0": "", "expires_1": "", **fields}
    return client.post(reverse(ADD), data, follow=True)


def act(client: Client, action: str, *tokens: Token, **fields: str):
    data = {"action": action, "_selected_action": [token.pk for token in tokens], **fields}
    return client.post(reverse(LIST), data, follow=True)


# List


def test_the_list_shows_each_state_and_no_secret(admin_client, anna):
    token, secret = Token.objects.issue(anna, name="laptop", servers=["shop", "staff"])
    Token.objects.issue(anna, expires=PAST)
    Token.objects.issue(anna)[0].revoke()
    page = admin_client.get(reverse(LIST)).content.decode()
    for text in ("laptop", token.prefix, "shop, staff", "active", "expired", "revoked", "anna"):
        assert text in page
    assert secret not in page
    assert token.digest not in page


def test_the_list_costs_the_same_whatever_its_length(
    admin_client, django_user_model, django_assert_num_queries
):
    def issue(number: int) -> None:
        for index in range(number):
            user = django_user_model.objects.create_user(f"user{Token.objects.count()}-{index}")
            Token.objects.issue(user)

    issue(2)
    admin_client.get(reverse(LIST))
    with CaptureQueriesContext(connection) as few:
        admin_client.get(reverse(LIST))
    issue(30)
    with django_assert_num_queries(len(few)):
        admin_client.get(reverse(LIST))


@pytest.mark.parametrize("state", ["active", "expired", "revoked"])
def test_the_list_is_filtered_by_state(admin_client, anna, state):
    tokens = {
        "active": Token.objects.issue(anna)[0],
        "expired": Token.objects.issue(anna, expires=PAST)[0],
        "revoked": Token.objects.issue(anna)[0],
    }
    tokens["revoked"].revoke()
    response = admin_client.get(reverse(LIST), {"state": state})
    assert list(response.context["cl"].queryset) == [tokens[state]]


@pytest.mark.parametrize("ordering", range(1, 9))
def test_the_list_is_ordered_by_any_column(admin_client, token, ordering):
    assert admin_client.get(reverse(LIST), {"o": ordering}).status_code == 200


@pytest.mark.parametrize("by", ["name", "prefix", "user"])
def test_the_list_is_searched(admin_client, token, django_user_model, by):
    Token.objects.issue(django_user_model.objects.create_user("bob"))
    query = {"name": "lapt", "prefix": token.prefix, "user": "ann"}[by]
    response = admin_client.get(reverse(LIST), {"q": query})
    assert list(response.context["cl"].queryset) == [token]


# Add


def test_adding_shows_the_secret_once(admin_client, anna):
    response = post_new(admin_client, anna, name="laptop", servers="shop\r\n\r\n staff \r\n")
    token = Token.objects.get()
    page = response.content.decode()
    secret = PATTERN.search(page).group()
    assert page.count(f"<code>{secret}</code>") == page.count(secret) == 1
    assert Token.objects.presented(secret) == token
    assert (token.user, token.name, token.servers) == (anna, "laptop", ["shop", "staff"])
    for url in (reverse(LIST), reverse(CHANGE, args=[token.pk])):
        assert secret not in admin_client.get(url).content.decode()
    assert not LogEntry.objects.filter(change_message__contains=secret).exists()
    assert not LogEntry.objects.filter(object_repr__contains=secret).exists()


def test_adding_may_set_an_expiry(admin_client, anna):
    post_new(admin_client, anna, expires_0="2100-01-02", expires_1="03:04:05")
    assert Token.objects.get().expires.year == 2100


def test_the_form_offers_oneself(admin_client, admin_user):
    response = admin_client.get(reverse(ADD))
    assert response.context["adminform"].form["user"].value() == admin_user.pk


def test_only_superusers_issue_tokens_of_others(clerk, anna, django_user_model):
    response = post_new(clerk, anna)
    assert "user" in response.context["adminform"].form.errors
    assert not Token.objects.exists()
    post_new(clerk, django_user_model.objects.get(username="clerk"))
    assert Token.objects.get().user.username == "clerk"


# Change


def test_a_token_is_shown_and_not_changed(admin_client, token):
    url = reverse(CHANGE, args=[token.pk])
    page = admin_client.get(url).content.decode()
    assert token.prefix in page
    assert token.digest not in page
    assert 'name="_save"' not in page
    assert admin_client.post(url, {"name": "other"}).status_code == 403
    assert Token.objects.get().name == "laptop"


# Revoke


def test_revoke(admin_client, anna, token):
    other, _ = Token.objects.issue(anna)
    gone, _ = Token.objects.issue(anna)
    gone.revoke()
    response = act(admin_client, "revoke", token, gone)
    assert "1 token was revoked." in response.content.decode()
    assert set(Token.objects.filter(revoked__isnull=True)) == {other}
    assert LogEntry.objects.get().object_id == str(token.pk)


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
    user = django_user_model.objects.get(username="clerk")
    user.user_permissions.remove(Permission.objects.get(codename="change_token"))
    act(clerk, "revoke", token)
    assert Token.objects.get().revoked is None


# Delete


def test_a_token_is_deleted_only_once_it_is_revoked(admin_client, token):
    url = reverse(DELETE, args=[token.pk])
    assert "which has to be revoked first" in admin_client.get(url).content.decode()
    admin_client.post(url, {"post": "yes"})
    assert Token.objects.exists()
    token.revoke()
    assert re.search("Are you sure", admin_client.get(url).content.decode())
    admin_client.post(url, {"post": "yes"})
    assert not Token.objects.exists()


def test_a_selection_with_a_live_token_is_not_deleted(admin_client, anna, token):
    revoked, _ = Token.objects.issue(anna)
    revoked.revoke()
    act(admin_client, "delete_selected", token, revoked, post="yes")
    assert Token.objects.count() == 2
    act(admin_client, "delete_selected", revoked, post="yes")
    assert Token.objects.get() == token


def test_users_with_live_tokens_can_be_deleted(admin_client, anna, token):
    url = reverse("admin:auth_user_delete", args=[anna.pk])
    admin_client.post(url, {"post": "yes"})
    assert not Token.objects.exists()
