from __future__ import annotations

import datetime as dt
import re

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.sessions.models import Session
from django.db import connection
from django.db.models import JSONField, Value
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from django_mcp.contrib.tokens.models import Token
from django_mcp.contrib.tokens.secret import PATTERN

LIST = "admin:django_mcp_tokens_token_changelist"
ADD = "admin:django_mcp_tokens_token_add"
CHANGE = "admin:django_mcp_tokens_token_change"

PAST = dt.timedelta(seconds=-1)


def post_new(client: Client, user, **fields: str):
    data = {"user": user.pk, "name": "", "servers": "", "expires_0": "", "expires_1": "", **fields}
    return client.post(reverse(ADD), data, follow=True)


# List


def test_the_list_shows_tokens_and_no_secret(admin_client, anna):
    token, secret = Token.objects.issue(anna, name="laptop", servers=["shop", "staff"])
    page = admin_client.get(reverse(LIST)).content.decode()
    for text in ("laptop", token.prefix, "shop, staff", "anna"):
        assert text in page
    assert secret not in page
    assert token.digest not in page


@pytest.mark.parametrize(
    ("servers", "shown"),
    [([], "all"), (["shop"], "shop"), ("staff", "none"), (None, "none"), ({"shop": 1}, "none")],
)
def test_the_list_names_the_servers_that_a_token_opens(admin_client, token, servers, shown):
    """What other code has written there may be no list of names, and opens none."""
    token.servers = servers
    assert token.opens("shop") is (shown in ("all", "shop"))
    Token.objects.filter(pk=token.pk).update(servers=Value(servers, JSONField()))
    page = admin_client.get(reverse(LIST)).content.decode()
    assert re.findall('<td class="field-opened_servers">(.*?)</td>', page) == [shown]


@pytest.mark.parametrize(
    "lookup",
    [
        *["digest", "digest__startswith", "digest__gt", "digest__in", "digest__regex"],
        *["user__mcp_tokens__digest__startswith", "user__password__startswith"],
    ],
)
@pytest.mark.parametrize("guess", ["right", "wrong"])
def test_nobody_looks_for_a_digest(admin_client, token, lookup, guess):
    """Not even a letter of it."""
    value = token.digest[:3] if guess == "right" else "x"
    assert admin_client.get(reverse(LIST), {lookup: value}).status_code == 400


@pytest.mark.parametrize(
    ("lookup", "found"), [("name", True), ("name__startswith", True), ("user__id__exact", True)]
)
def test_other_look_ups_go_on(admin_client, token, lookup, found):
    value = token.user.pk if lookup.startswith("user") else token.name
    response = admin_client.get(reverse(LIST), {lookup: value})
    assert list(response.context["cl"].queryset) == [token]


@pytest.mark.parametrize(
    ("state", "tone"), [("active", "good"), ("expired", "warning"), ("revoked", "off")]
)
def test_the_badge_says_the_state(admin_client, anna, state, tone):
    token, _ = Token.objects.issue(anna, expires=PAST if state == "expired" else None)
    if state == "revoked":
        token.revoke()
    badge = f'<span class="mcp-badge mcp-{tone}">{state}</span>'
    for url in (reverse(LIST), reverse(CHANGE, args=[token.pk])):
        page = admin_client.get(url).content.decode()
        assert badge in page
        assert "django_mcp/admin.css" in page


def test_state_and_expiry_come_first(admin_client, token):
    columns = admin_client.get(reverse(LIST)).context["cl"].list_display
    assert columns[1:4] == ["label", "badge", "remaining"]  # after the box that selects


@pytest.mark.parametrize(
    ("expires", "revoked", "shown"),
    [
        (dt.timedelta(minutes=3, seconds=30), False, "in 3\xa0minutes"),
        (PAST, False, "just now"),
        (None, False, "never"),
        (dt.timedelta(hours=1), True, "-"),
    ],
)
def test_the_list_says_how_long_a_token_works(admin_client, anna, expires, revoked, shown):
    token, _ = Token.objects.issue(anna, expires=expires)
    if revoked:
        token.revoke()
    page = admin_client.get(reverse(LIST)).content.decode()
    [cell] = re.findall('<td class="field-remaining[^>]*>(.*?)</td>', page)
    assert re.sub("<[^>]+>", "", cell) == shown


def test_the_page_says_when_what_happened(admin_client, anna):
    token, _ = Token.objects.issue(anna, expires=dt.timedelta(hours=1, minutes=5))
    token.revoke()
    page = admin_client.get(reverse(CHANGE, args=[token.pk])).content.decode()
    for field, shown in {
        "expiry": "in 1\xa0hour",
        "revocation": "just now",
        "age": "just now",
        "used": "never",
    }.items():
        box = rf'fieldBox field-{field}\b.*?class="readonly">(.*?)</div>'
        [cell] = re.findall(box, page, re.DOTALL)
        assert re.sub("<[^>]+>", "", cell) == shown


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


@pytest.mark.parametrize("ordering", range(1, 7))
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
    assert page.count(f'<code class="mcp-secret">{secret}</code>') == page.count(secret) == 1
    assert Token.objects.presented(secret) == token
    assert (token.user, token.name, token.servers) == (anna, "laptop", ["shop", "staff"])
    for url in (reverse(LIST), reverse(CHANGE, args=[token.pk])):
        assert secret not in admin_client.get(url).content.decode()
    assert not LogEntry.objects.filter(change_message__contains=secret).exists()
    assert not LogEntry.objects.filter(object_repr__contains=secret).exists()


def test_adding_may_set_an_expiry(admin_client, anna):
    post_new(admin_client, anna, expires_0="2100-01-02", expires_1="03:04:05")
    assert Token.objects.get().expires.year == 2100


@pytest.mark.parametrize("storage", ["fallback.Fallback", "cookie.Cookie", "session.Session"])
def test_the_secret_is_in_the_page_and_nowhere_else(admin_client, anna, settings, storage):
    settings.MESSAGE_STORAGE = f"django.contrib.messages.storage.{storage}Storage"
    data = {"user": anna.pk, "name": "", "servers": "", "expires_0": "", "expires_1": ""}
    response = admin_client.post(reverse(ADD), data)
    secret = PATTERN.search(response.content.decode()).group()
    assert Token.objects.presented(secret) is not None
    assert "no-store" in response["Cache-Control"]
    sent = [each.OutputString() for each in response.cookies.values()]
    kept = [repr(dict(each.get_decoded())) for each in Session.objects.all()]
    assert [each for each in (*sent, *kept, str(response.headers)) if secret in each] == []
    assert "messages" not in response.cookies


@pytest.mark.parametrize("button", ["_save", "_addanother", "_continue", "_popup"])
def test_whichever_button_is_pressed_the_secret_comes_next(admin_client, anna, button):
    page = post_new(admin_client, anna, **{button: "1"}).content.decode()
    assert Token.objects.presented(PATTERN.search(page).group()) == Token.objects.get()


def test_the_form_has_the_button_that_leads_there(admin_client):
    page = admin_client.get(reverse(ADD)).content.decode()
    assert 'name="_save"' in page
    assert 'name="_addanother"' not in page
    assert 'name="_continue"' not in page


# The user


def autocomplete(client: Client, term: str):
    names = {"app_label": "django_mcp_tokens", "model_name": "token", "field_name": "user"}
    return client.get(reverse("admin:autocomplete"), {"term": term, **names})


def field(client: Client) -> str:
    """Return the field of the form in which the user is chosen."""
    page = client.get(reverse(ADD)).content.decode()
    return page.split('class="form-row field-user')[1].split('class="form-row')[0]


@pytest.fixture(params=["is not in the admin", "cannot be searched", "may not be viewed"])
def unsearchable(request, monkeypatch, django_user_model) -> None:
    """A site in which users cannot be searched in the admin, for one reason or another."""
    if request.param == "is not in the admin":
        # The admin's URLs are those of the apps that it has when they are first asked for: later
        # tests have them, too.
        reverse("admin:index")
        monkeypatch.delitem(admin.site._registry, django_user_model)
        return
    users = admin.site.get_model_admin(django_user_model)
    if request.param == "cannot be searched":
        monkeypatch.setattr(users, "search_fields", ())
    else:
        monkeypatch.setattr(users, "has_view_permission", lambda request, obj=None: False)


def test_the_user_is_searched(admin_client, anna):
    assert "admin-autocomplete" in field(admin_client)
    assert [each["text"] for each in autocomplete(admin_client, "ANN").json()["results"]] == [
        "anna"
    ]


@pytest.mark.usefixtures("unsearchable")
def test_or_is_named_where_they_cannot_be_searched(admin_client, anna):
    shown = field(admin_client)
    assert "admin-autocomplete" not in shown
    assert 'value="admin"' in shown  # oneself
    data = {"name": "", "servers": "", "expires_0": "", "expires_1": ""}
    refused = admin_client.post(reverse(ADD), {"user": "ana", **data}).content.decode()
    assert "Nobody logs in with this name." in refused
    assert 'value="ana"' in refused
    admin_client.post(reverse(ADD), {"user": "anna", **data})
    assert Token.objects.get().user == anna


@pytest.mark.usefixtures("unsearchable")
def test_whose_token_it_is_is_shown_there_too(admin_client, token):
    for url in (reverse(LIST), reverse(CHANGE, args=[token.pk])):
        assert "anna" in admin_client.get(url).content.decode()
    assert [each for each in admin.site.check(None) if "token" in str(each).lower()] == []


def test_who_may_issue_tokens_of_their_own_alone_is_offered_nobody_else(clerk, anna):
    shown = field(clerk)
    assert re.findall(r"<option[^>]*>(.*?)</option>", shown) == ["clerk"]
    assert autocomplete(clerk, "ann").status_code == 403


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
