"""What comes twice: refreshes, which may be retries, and codes, which never are."""

from __future__ import annotations

import datetime as dt
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.contrib.auth import get_user_model
from django.db import connections
from django.utils import timezone

from django_mcp.contrib.oauth.dot.models import AccessToken, Grant, RefreshToken
from django_mcp.contrib.oauth.dot.validator import Validator
from django_mcp.contrib.oauth.dot.views import TokenView
from django_mcp.contrib.oauth.models import ScopeChallenge
from tests.logins.visitor import Visitor

pytestmark = pytest.mark.django_db


def test_a_refresh_that_is_repeated_is_answered_as_it_was(editor):
    """Two requests at once, or an answer that was lost: with DOT's own, everybody is logged out."""
    tokens = editor.login()
    first = editor.refresh(tokens["refresh_token"])
    again = editor.refresh(tokens["refresh_token"])
    assert first.status_code == again.status_code == 200
    names = ("access_token", "refresh_token", "scope")
    assert [first.json()[each] for each in names] == [again.json()[each] for each in names]
    assert editor.call(again.json()["access_token"]).status == 200
    assert editor.refresh(again.json()["refresh_token"]).status_code == 200
    assert set(AccessToken.objects.values_list("token", flat=True)) == {""}
    assert set(RefreshToken.objects.values_list("token", flat=True)) == {""}


@pytest.mark.django_db(transaction=True)
def test_refreshes_at_once_get_one_answer(editor):
    tokens = editor.login()

    def refresh(number):
        try:
            return Visitor(None, editor.client_id).refresh(tokens["refresh_token"])
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(refresh, range(4)))
    assert [each.status_code for each in answers] == [200] * 4
    assert len({each.json()["access_token"] for each in answers}) == 1
    assert RefreshToken.objects.filter(revoked__isnull=True).count() == 1


def test_after_the_grace_it_is_taken_for_stolen(editor, configure):
    tokens = editor.login()
    fresh = editor.refresh(tokens["refresh_token"]).json()
    long_ago = timezone.now() - dt.timedelta(seconds=31)
    RefreshToken.objects.filter(revoked__isnull=False).update(revoked=long_ago)
    assert editor.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"
    assert editor.call(fresh["access_token"]).status == 401
    assert editor.refresh(fresh["refresh_token"]).status_code == 400


def test_a_login_that_nobody_uses_ends(editor):
    tokens = editor.login()
    for days, status in ((29, 200), (31, 400)):
        expired = timezone.now() - dt.timedelta(days=days)
        AccessToken.objects.filter(refresh_token__revoked__isnull=True).update(expires=expired)
        answer = editor.refresh(tokens["refresh_token"])
        assert answer.status_code == status
        tokens = answer.json() if status == 200 else tokens


def test_what_lost_its_access_token_is_not_refreshed(editor):
    tokens = editor.login()
    AccessToken.objects.all().delete()
    assert editor.refresh(tokens["refresh_token"]).status_code == 400


def test_a_refresh_that_is_overtaken_is_a_retry(editor, monkeypatch):
    """Another request of the client uses the token after this one has looked at it."""
    tokens, answers = editor.login(), []
    save = Validator._save_bearer_token

    def overtaken(*args, **kwargs):
        if not answers:
            answers.append(None)
            answers[0] = Visitor(None, editor.client_id).refresh(tokens["refresh_token"])
        return save(*args, **kwargs)

    monkeypatch.setattr(Validator, "_save_bearer_token", overtaken)
    answer = editor.refresh(tokens["refresh_token"])
    assert answer.status_code == answers[0].status_code == 200
    assert answer.json()["access_token"] == answers[0].json()["access_token"]
    assert editor.call(answer.json()["access_token"]).status == 200


def test_the_grace_can_be_none(editor, configure):
    configure(REFRESH_GRACE_SECONDS=0)
    tokens = editor.login()
    editor.refresh(tokens["refresh_token"])
    assert editor.refresh(tokens["refresh_token"]).status_code == 400


def test_what_was_replaced_twice_is_no_retry(editor):
    tokens = editor.login()
    second = editor.refresh(tokens["refresh_token"]).json()
    third = editor.refresh(second["refresh_token"]).json()
    assert editor.refresh(tokens["refresh_token"]).status_code == 400
    assert editor.call(third["access_token"]).status == 401


def test_what_was_revoked_is_no_retry(editor):
    tokens = editor.login()
    fresh = editor.refresh(tokens["refresh_token"]).json()
    RefreshToken.objects.get(revoked__isnull=True).revoke()
    assert editor.refresh(tokens["refresh_token"]).status_code == 400
    assert editor.refresh(fresh["refresh_token"]).status_code == 400


def test_a_retry_by_another_client_is_none_and_ends_nothing(editor, anna):
    tokens = editor.login()
    fresh = editor.refresh(tokens["refresh_token"]).json()
    thief = Visitor(anna)
    thief.register()
    assert thief.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"
    assert thief.refresh(fresh["refresh_token"]).json()["error"] == "invalid_grant"
    assert editor.call(fresh["access_token"]).status == 200


def test_nobody_can_tell_what_follows_without_the_key_of_the_site(editor, settings):
    tokens = editor.login()
    fresh = editor.refresh(tokens["refresh_token"]).json()
    settings.SECRET_KEY = "another one"
    assert editor.refresh(tokens["refresh_token"]).status_code == 400
    assert len(fresh["access_token"]) == len(fresh["refresh_token"]) == 43


def test_a_site_that_makes_tokens_itself_goes_on_doing_so(editor, configure, monkeypatch):
    made = iter(["first access", "first refresh", "second access", "second refresh"])
    monkeypatch.setattr(f"{__name__}.maker", lambda request: next(made), raising=False)
    configure({"ACCESS_TOKEN_GENERATOR": f"{__name__}.maker", "ALWAYS_RELOAD_OAUTHLIB_CORE": True})
    tokens = editor.login()
    fresh = editor.refresh(tokens["refresh_token"]).json()
    assert (tokens["access_token"], fresh["access_token"]) == ("first access", "second access")


# Users


def test_a_deactivated_user_gets_nothing_more(editor, anna):
    tokens = editor.login()
    code = editor.code()
    get_user_model().objects.filter(pk=anna.pk).update(is_active=False)
    assert editor.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"
    assert editor.exchange(code).json()["error"] == "invalid_grant"
    get_user_model().objects.filter(pk=anna.pk).update(is_active=True)
    assert editor.refresh(tokens["refresh_token"]).status_code == 200


# Codes


def test_a_code_that_comes_again_ends_what_was_issued_for_it(editor):
    code = editor.code()
    tokens = editor.exchange(code).json()
    fresh = editor.refresh(tokens["refresh_token"]).json()
    other = editor.login()
    assert editor.exchange(code).json()["error"] == "invalid_grant"
    assert editor.call(fresh["access_token"]).status == 401
    assert editor.refresh(fresh["refresh_token"]).status_code == 400
    assert editor.call(other["access_token"]).status == 200


def test_another_client_cannot_end_a_login_by_its_code(editor, anna):
    code = editor.code()
    tokens = editor.exchange(code).json()
    stranger = Visitor(anna)
    stranger.register()
    assert stranger.exchange(code).json()["error"] == "invalid_grant"
    assert editor.call(tokens["access_token"]).status == 200


def test_a_code_that_another_request_takes_meanwhile_gives_nobody_anything(editor, monkeypatch):
    code, save = editor.code(), Validator._save_bearer_token

    def save_and_be_late(*args, **kwargs):
        save(*args, **kwargs)
        Grant.objects.all().delete()

    monkeypatch.setattr(Validator, "_save_bearer_token", save_and_be_late)
    assert editor.exchange(code).json()["error"] == "invalid_grant"
    assert not AccessToken.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_code_that_comes_twice_at_once_gives_one_login_at_most(editor):
    code = editor.code()

    def exchange(number):
        try:
            return Visitor(None, editor.client_id).exchange(code)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(exchange, range(4)))
    assert [each.status_code for each in answers].count(200) <= 1
    assert not RefreshToken.objects.filter(revoked__isnull=True).exists()
    assert not AccessToken.objects.exists()


def test_a_login_that_has_ended_before_it_is_told_is_refused(editor, monkeypatch):
    original = TokenView.create_token_response

    def ending(*args):
        answer = original(*args)
        AccessToken.objects.all().delete()
        return answer

    monkeypatch.setattr(TokenView, "create_token_response", ending)
    answer = editor.exchange(editor.code())
    assert (answer.status_code, answer.json()) == (400, {"error": "invalid_grant"})


# Clients that refresh where they should ask


def test_a_refresh_right_after_a_challenge_makes_the_client_ask(editor):
    tokens = editor.login()
    answer = editor.call(tokens["access_token"], "pay")
    assert answer.status == 403
    assert 'error="insufficient_scope"' in answer.header("WWW-Authenticate")
    assert 'scope="orders:read orders:write"' in answer.header("WWW-Authenticate")
    # The TypeScript SDK of the first generation keeps its tokens at this error, and asks.
    assert editor.refresh(tokens["refresh_token"]).json()["error"] == "server_error"
    assert editor.refresh(tokens["refresh_token"]).status_code == 200
    assert not ScopeChallenge.objects.exists()


def test_others_are_not_disturbed(editor, django_user_model):
    berta = Visitor(django_user_model.objects.create_user("berta"), "")
    anna, hers = editor.login(), berta.login()
    editor.call(anna["access_token"], "pay")
    assert berta.refresh(hers["refresh_token"]).status_code == 200


def test_a_client_that_asks_its_user_is_not_disturbed(editor):
    tokens = editor.login()
    editor.call(tokens["access_token"], "pay")
    fresh = editor.login(scope="orders:read orders:write")
    assert editor.refresh(fresh["refresh_token"]).status_code == 200


def test_a_challenge_is_forgotten_soon(editor):
    tokens = editor.login()
    editor.call(tokens["access_token"], "pay")
    ScopeChallenge.objects.update(moment=timezone.now() - dt.timedelta(seconds=11))
    assert editor.refresh(tokens["refresh_token"]).status_code == 200


def test_challenges_of_one_client_are_one_row(editor):
    tokens = editor.login()
    for _ in range(3):
        editor.call(tokens["access_token"], "pay")
    assert ScopeChallenge.objects.count() == 1


def test_a_site_can_do_without(editor, configure):
    configure(STEP_UP_HELP=False)
    tokens = editor.login()
    editor.call(tokens["access_token"], "pay")
    assert not ScopeChallenge.objects.exists()
    assert editor.refresh(tokens["refresh_token"]).status_code == 200


def test_all_scopes_can_be_asked_for_at_once(editor, configure):
    configure(SCOPES_AT_LOGIN="all")
    about = editor.machine.get("/.well-known/oauth-protected-resource/mcp").json()
    assert about["scopes_supported"] == ["orders:read", "orders:write"]
    assert 'scope="orders:read orders:write"' in editor.call("nothing").header("WWW-Authenticate")
