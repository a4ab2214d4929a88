"""The page on which people make, see and revoke tokens of their own."""

from __future__ import annotations

import datetime as dt
import re
import sys
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.contrib.sessions.models import Session
from django.core.exceptions import PermissionDenied
from django.core.signals import got_request_exception
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import include, path
from django.utils import timezone
from django.utils.formats import date_format
from django.views.debug import ExceptionReporter

from django_mcp.contrib.tokens import views
from django_mcp.contrib.tokens.models import Token
from django_mcp.contrib.tokens.secret import PATTERN
from tests.support.sites import urlconf

from .shop import PAGE, SCOPES, URLS, open_shop

TOKENS = "/tokens/"
PAST = dt.timedelta(seconds=-1)


@pytest.fixture(autouse=True)
def site(settings) -> None:
    open_shop(settings)


def allow(user: Any) -> None:
    user.user_permissions.add(Permission.objects.get(codename="manage_own_tokens"))


def logged_in(user: Any, **options: Any) -> Client:
    client = Client(**options)
    client.force_login(user)
    return client


@pytest.fixture
def owner(anna) -> Client:
    """The browser of somebody who may make tokens of their own, and nothing else."""
    allow(anna)
    return logged_in(anna)


@pytest.fixture
def bob(django_user_model) -> Any:
    return django_user_model.objects.create_user("bob")


def make(client: Client, query: str = "", **fields: Any):
    return client.post(f"{TOKENS}{query}", {"name": "laptop", "days": "90", **fields})


def secret_in(response) -> str:
    found = PATTERN.search(response.content.decode())
    assert found, response.content.decode()
    return found.group()


def text_of(response) -> str:
    """Return what a page says."""
    return " ".join(unescape(re.sub("<[^>]*>", " ", response.content.decode())).split())


def errors_of(response) -> dict[str, list[str]]:
    return dict(response.context["form"].errors)


# Who may


def test_who_is_not_logged_in_is_sent_to_the_login_and_back(client, db):
    response = client.get(f"{TOKENS}?next=/shop/")
    assert response.status_code == 302
    assert response["Location"] == "/accounts/login/?next=/tokens/%3Fnext%3D%252Fshop%252F"
    response = client.post(f"{TOKENS}7/revoke/")
    assert response["Location"] == "/accounts/login/?next=/tokens/"


def test_who_lacks_the_permission_is_refused(anna):
    client = logged_in(anna)
    assert client.get(TOKENS).status_code == 403
    assert make(client).status_code == 403
    token, _ = Token.objects.issue(anna)
    assert client.post(f"{TOKENS}{token.pk}/revoke/").status_code == 403
    assert Token.objects.get().revoked is None


def test_users_that_know_of_no_permissions_have_none(rf):
    request = rf.get(TOKENS)
    request.user = SimpleNamespace(is_authenticated=True)
    with pytest.raises(PermissionDenied):
        views.own_tokens(request)


def test_the_permission_opens_no_page_of_the_admin(anna):
    allow(anna)
    anna.is_staff = True
    anna.save()
    assert logged_in(anna).get("/admin/django_mcp_tokens/token/").status_code == 403


@pytest.mark.parametrize("method", ["put", "delete", "patch"])
def test_other_methods_are_refused(owner, method):
    assert getattr(owner, method)(TOKENS).status_code == 405


def test_revoking_takes_a_post(owner, anna):
    token, _ = Token.objects.issue(anna)
    assert owner.get(f"{TOKENS}{token.pk}/revoke/").status_code == 405
    assert Token.objects.get().revoked is None


def test_forms_of_other_sites_are_refused(anna, settings):
    """Also where the middleware that does so is not there."""
    allow(anna)
    token, _ = Token.objects.issue(anna)
    settings.MIDDLEWARE = [each for each in settings.MIDDLEWARE if "Csrf" not in each]
    strict = logged_in(anna, enforce_csrf_checks=True)
    assert make(strict).status_code == 403
    assert strict.post(f"{TOKENS}{token.pk}/revoke/").status_code == 403
    assert Token.objects.get().revoked is None
    page = strict.get(TOKENS).content.decode()
    fields = re.findall('name="csrfmiddlewaretoken" value="(.*?)"', page)
    assert len(fields) == 2
    assert make(strict, csrfmiddlewaretoken=fields[0]).status_code == 200
    assert Token.objects.count() == 2


# Making


def test_a_token_is_made_for_oneself_and_shown_once(owner, anna, bob):
    response = make(owner, user=bob.pk, scopes=["orders:read"], read_only="on", days="30")
    assert response.status_code == 200
    secret = secret_in(response)
    assert response.content.decode().count(secret) == 1
    token = Token.objects.presented(secret)
    assert (token.user, token.name, token.servers) == (anna, "laptop", [])
    assert (token.scopes, token.read_only) == (["orders:read"], True)
    assert token.expires - token.created == pytest.approx(
        dt.timedelta(days=30), abs=dt.timedelta(seconds=1)
    )
    again = owner.get(TOKENS)
    assert secret not in again.content.decode()
    assert token.prefix in again.content.decode()


def test_what_is_shown_of_a_token(owner, anna):
    Token.objects.issue(
        anna, name="bot", scopes=["orders:read", "stock:write"], servers=["shop"], read_only=True
    )
    shown = text_of(owner.get(TOKENS))
    assert "bot active" in shown
    assert "May See orders, stock:write; only what changes nothing Where shop" in shown
    assert "Made just now Last used never Ends never" in shown
    Token.objects.update(scopes=None, read_only=False, expires=timezone.now() + dt.timedelta(3, 60))
    Token.objects.update(last_used=timezone.now() - dt.timedelta(hours=2, seconds=9))
    shown = text_of(owner.get(TOKENS))
    assert "May all that you may Where" in shown
    day = date_format(timezone.template_localtime(timezone.now() + dt.timedelta(3, 60)))
    assert f"Last used 2 hours ago Ends {day}" in shown
    Token.objects.update(expires=timezone.now() + dt.timedelta(hours=3, minutes=1))
    assert "Ends in 3 hours" in text_of(owner.get(TOKENS))


def test_a_name_is_text(owner):
    for page in (make(owner, name="<script>alert(1)</script>"), owner.get(TOKENS)):
        source = page.content.decode()
        assert "<script>alert" not in source
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in source


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("name", "x" * 101),
        ("name", "a\x00b"),
        ("days", ""),
        ("days", "366"),
        ("days", "-1"),
        ("days", "soon"),
        ("scopes", ["admin"]),
        ("scopes", ["orders:read", ""]),
        ("servers", ["open"]),  # where nobody looks at tokens
        ("servers", ["nowhere"]),
    ],
)
def test_what_is_not_offered_is_refused(owner, field, value):
    response = make(owner, **{field: value})
    assert list(errors_of(response)) == [field]
    assert not Token.objects.exists()
    assert PATTERN.search(response.content.decode()) is None


def test_the_scopes_are_those_of_the_servers_with_their_sentences(owner):
    form = owner.get(TOKENS).context["form"]
    assert [scope for scope, _ in form.fields["scopes"].choices] == SCOPES
    assert dict(form.fields["scopes"].choices)["orders:read"] == "See orders (orders:read)"
    assert [name for name, _ in form.fields["servers"].choices] == ["shop", "staff"]


def test_where_there_is_nothing_to_choose_nothing_is_asked(owner, settings):
    settings.ROOT_URLCONF = "tests.contrib.tokens.urls_plain"
    settings.DJANGO_MCP = {"AUTH": "django_mcp.contrib.tokens.auth.token_auth"}
    assert list(owner.get(TOKENS).context["form"].fields) == ["name", "read_only", "days"]
    make(owner, scopes=["orders:read"], servers=["shop"])
    token = Token.objects.get()
    assert (token.scopes, token.servers) == (None, [])


# What the settings allow


def test_without_a_choice_no_scopes_limit_the_token(owner):
    make(owner)
    assert Token.objects.get().scopes is None


def test_the_settings_say_which_scopes_people_may_give(owner, settings):
    open_shop(settings, OWN_TOKEN_SCOPES=["orders:write"])
    form = owner.get(TOKENS).context["form"]
    assert [scope for scope, _ in form.fields["scopes"].choices] == ["orders:write", "orders:read"]
    assert "scopes" in errors_of(make(owner)), "without any, none would limit it"
    assert "scopes" in errors_of(make(owner, scopes=["stock:write"]))
    assert "scopes" in errors_of(make(owner, scopes=["orders:read", "back-office"]))
    assert not Token.objects.exists()
    make(owner, scopes=["orders:read"])
    assert Token.objects.get().scopes == ["orders:read"]


def test_a_misspelt_scope_of_the_settings_lifts_no_limit(owner, settings):
    open_shop(settings, OWN_TOKEN_SCOPES=["order:read"])
    assert "scopes" in errors_of(make(owner))
    assert not Token.objects.exists()
    make(owner, scopes=["order:read"])
    assert Token.objects.get().scopes == ["order:read"]


@pytest.mark.parametrize(
    ("longest", "offered", "initial"),
    [
        (365, ["7", "30", "90", "365"], 90),
        (45, ["7", "30", "45"], 45),
        (1, ["1"], 1),
        (400, ["7", "30", "90", "365", "400"], 90),
        (None, ["7", "30", "90", "365", ""], 90),
    ],
)
def test_the_settings_say_how_long_a_token_may_work(owner, settings, longest, offered, initial):
    open_shop(settings, OWN_TOKEN_MAX_DAYS=longest)
    page = owner.get(TOKENS)
    assert [str(days) for days, _ in page.context["form"].fields["days"].choices] == offered
    assert f'<option value="{initial}" selected>' in page.content.decode()
    make(owner, days=offered[-1])
    expires = Token.objects.get().expires
    assert (expires is None) is (longest is None)


def test_whoever_has_many_revokes_one_first(owner, anna, monkeypatch):
    monkeypatch.setattr(views, "MAX_OWN_TOKENS", 2)
    Token.objects.issue(anna, expires=PAST)
    first, _ = Token.objects.issue(anna)
    make(owner)
    refused = make(owner)
    assert "You have 2 tokens. Revoke one first." in text_of(refused)
    assert Token.objects.count() == 3
    first.revoke()
    secret_in(make(owner))


# Revoking


def test_a_token_is_revoked_by_its_owner(owner, anna, bob):
    token, _ = Token.objects.issue(anna)
    other, _ = Token.objects.issue(bob)
    page = owner.get(TOKENS).content.decode()
    assert f'action="{TOKENS}{token.pk}/revoke/"' in page
    response = owner.post(f"{TOKENS}{token.pk}/revoke/", follow=True)
    assert response.redirect_chain == [(f"{TOKENS}#mcp-token-{token.pk}", 302)]
    assert "revoked" in text_of(response)
    assert set(Token.objects.filter(revoked__isnull=True)) == {other}
    assert f"{TOKENS}{token.pk}/revoke/" not in response.content.decode()
    assert owner.post(f"{TOKENS}{token.pk}/revoke/").status_code == 302


def test_tokens_of_others_are_neither_seen_nor_revoked(owner, bob):
    token, _ = Token.objects.issue(bob, name="his own")
    page = owner.get(TOKENS).content.decode()
    assert "his own" not in page
    assert token.prefix not in page
    for key in (token.pk, 10**30):
        assert owner.post(f"{TOKENS}{key}/revoke/").status_code == 404
    assert Token.objects.get().revoked is None


def test_of_what_has_ended_the_newest_are_shown(owner, anna, monkeypatch):
    monkeypatch.setattr(views, "SHOWN_ENDED", 2)
    for number in range(4):
        Token.objects.issue(anna, name=f"old {number}", expires=PAST)
    Token.objects.issue(anna, name="new")
    shown = text_of(owner.get(TOKENS))
    assert re.findall(r"(new|old \d) (?:active|expired)", shown) == ["new", "old 3", "old 2"]


def test_the_page_costs_the_same_for_many(owner, anna, django_assert_num_queries):
    Token.objects.issue(anna)
    owner.get(TOKENS)
    with CaptureQueriesContext(connection) as few:
        owner.get(TOKENS)
    for _ in range(20):
        Token.objects.issue(anna, scopes=["orders:read"])
    with django_assert_num_queries(len(few)):
        owner.get(TOKENS)


# The secret


@pytest.mark.parametrize("query", ["", "?next=/shop/"])
def test_the_secret_is_in_the_page_and_nowhere_else(owner, query, caplog):
    with caplog.at_level("DEBUG"), CaptureQueriesContext(connection) as queries:
        response = make(owner, query)
    secret = secret_in(response)
    assert "no-store" in response["Cache-Control"]
    assert "private" in response["Cache-Control"]
    assert response["X-Frame-Options"] == "DENY"
    sent = [each.OutputString() for each in response.cookies.values()]
    kept = [repr(dict(each.get_decoded())) for each in Session.objects.all()]
    statements = [each["sql"] for each in queries]
    said = [*sent, *kept, *statements, str(response.headers), caplog.text]
    assert [each for each in said if secret in each] == []
    assert f"has made the token {Token.objects.get().pk}" in caplog.text


@pytest.mark.parametrize("method", ["get", "post"])
def test_no_page_is_kept(owner, anna, method):
    response = getattr(owner, method)(TOKENS)
    assert "no-store" in response["Cache-Control"]
    token, _ = Token.objects.issue(anna)
    assert "no-store" in owner.post(f"{TOKENS}{token.pk}/revoke/")["Cache-Control"]


def test_no_report_of_an_error_shows_the_secret(owner, settings, tmp_path, monkeypatch):
    """Not even where the site's own base cannot be rendered."""
    lay_base(settings, tmp_path, '{% url "nowhere" %}{% block content %}{% endblock %}')
    made: list[str] = []
    issue = views.OwnTokenForm.issue

    def noting(form: Any, user: Any) -> Any:
        token, secret = issue(form, user)
        made.append(secret)
        return token, secret

    reports: list[str] = []

    def report(request: Any, **kwargs: Any) -> None:
        reports.append(ExceptionReporter(request, *sys.exc_info()).get_traceback_html())

    monkeypatch.setattr(views.OwnTokenForm, "issue", noting)
    got_request_exception.connect(report)
    owner.raise_request_exception = False
    try:
        assert make(owner).status_code == 500
    finally:
        got_request_exception.disconnect(report)
    assert "own_tokens" in reports[0]
    assert "&lt;secret&gt;" in reports[0], "the variables of its frames are in the report"
    assert made[0] not in reports[0]


# Around the page


@pytest.mark.parametrize(
    ("address", "is_ours"),
    [
        ("/shop/?a=1&b=2", True),
        ("http://testserver/shop/", True),
        ("https://evil.example/", False),
        ("//evil.example", False),
        ("/\\evil.example", False),
        ("javascript:alert(1)", False),
        ("", False),
    ],
)
def test_the_way_back_is_on_this_site(owner, anna, address, is_ours):
    token, _ = Token.objects.issue(anna)
    page = owner.get(TOKENS, {"next": address}).content.decode()
    assert ("Back</a>" in page) is is_ours
    for action in re.findall('action="(.*?)"', page):
        assert ("?next=" in action) is is_ours
    assert "evil" not in page
    assert "javascript:" not in page
    [url] = [each for each in re.findall('action="(.*?)"', page) if "/revoke/" in each]
    back = owner.post(unescape(url))["Location"]
    assert back.startswith(f"{TOKENS}?next=" if is_ours else f"{TOKENS}#")
    assert back.endswith(f"#mcp-token-{token.pk}")


def test_the_page_needs_no_inline_style_or_script(owner, anna):
    Token.objects.issue(anna)
    for page in (owner.get(TOKENS), make(owner)):
        source = page.content.decode()
        assert "<style" not in source
        assert " style=" not in source
        assert re.findall(r"\son\w+=", source) == []
        assert re.findall(r"<script(?![^>]* src=)", source) == []


def test_the_patterns_may_be_among_others_with_a_namespace(owner, anna, settings):
    account = ([PAGE], "account")
    settings.ROOT_URLCONF = urlconf(*URLS, path("account/", include(account)))
    token, _ = Token.objects.issue(anna)
    page = owner.get("/account/tokens/").content.decode()
    assert f'action="/account/tokens/{token.pk}/revoke/"' in page
    response = owner.post(f"/account/tokens/{token.pk}/revoke/")
    assert response["Location"] == f"/account/tokens/#mcp-token-{token.pk}"


def test_a_site_has_its_own_base(owner, settings, tmp_path):
    lay_base(settings, tmp_path, "<p>The shop</p>{% block content %}{% endblock %}")
    page = owner.get(TOKENS).content.decode()
    assert page.startswith("<p>The shop</p>")
    assert "own_tokens.css" in page


def lay_base(settings: Any, directory: Path, text: str) -> None:
    """Let the site have a base of its own."""
    base = directory / "django_mcp_tokens" / "base.html"
    base.parent.mkdir()
    base.write_text(text)
    settings.TEMPLATES = [{**settings.TEMPLATES[0], "DIRS": [str(directory)]}]
