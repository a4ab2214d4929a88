from __future__ import annotations

import datetime as dt
import sys
from collections import Counter
from importlib import import_module

import pytest
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext

from django_mcp.auth import Principal, Refusal
from django_mcp.clock import DatabaseNow
from django_mcp.contrib.tokens.auth import token_auth
from django_mcp.contrib.tokens.models import USE_RESOLUTION, Token
from django_mcp.contrib.tokens.secret import generate

PAST = dt.timedelta(seconds=-1)


def test_a_token_admits_its_user(token, secret, anna, request_with):
    assert token_auth(request_with(secret)) == Principal(
        user=anna, client_id=f"token:{token.pk}", scopes=None
    )


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize("scopes", [None, [], ["orders:read", "orders:write"]])
def test_the_principal_has_the_limits_of_the_token(anna, request_with, scopes, read_only):
    _, secret = Token.objects.issue(anna, scopes=scopes, read_only=read_only)
    principal = token_auth(request_with(secret))
    assert principal.scopes == (None if scopes is None else frozenset(scopes))
    assert principal.read_only is read_only


@pytest.mark.parametrize("scheme", ["bearer", "BEARER", "Bearer  "])
def test_the_scheme_is_read_leniently(secret, request_with, scheme):
    assert isinstance(token_auth(request_with(secret, scheme=scheme)), Principal)


def test_the_client_outlives_a_rotation_and_differs_by_token(token, secret, anna, request_with):
    before = token_auth(request_with(secret))
    after = token_auth(request_with(token.rotate()))
    other = token_auth(request_with(Token.objects.issue(anna)[1]))
    assert before == after
    assert other.user == before.user
    assert other.client_id != before.client_id


def test_a_token_may_be_limited_to_servers(anna, request_with):
    _, secret = Token.objects.issue(anna, servers=["staff"])
    assert isinstance(token_auth(request_with(secret, server="staff")), Principal)
    assert isinstance(token_auth(request_with(secret, server="shop")), Refusal)


def test_without_a_server_name_only_unlimited_tokens_are_admitted(anna, rf):
    _, limited = Token.objects.issue(anna, servers=["staff"])
    _, unlimited = Token.objects.issue(anna)
    outcomes = [
        token_auth(rf.post("/mcp", headers={"Authorization": f"Bearer {secret}"}))
        for secret in (limited, unlimited)
    ]
    assert [type(outcome) for outcome in outcomes] == [Refusal, Principal]


# Refusals


@pytest.mark.parametrize("header", [None, "", "Basic YTpi", "Bearer", "Bearer  ", "Bearermcp_x"])
def test_without_a_bearer_token_it_is_asked_for(rf, header, django_assert_num_queries, db):
    request = rf.post("/mcp", headers={} if header is None else {"Authorization": header})
    with django_assert_num_queries(0):
        refusal = token_auth(request)
    assert refusal.status == 401
    assert 'send "Authorization: Bearer TOKEN"' in refusal.message


def unknown(user) -> str:
    return generate()


def mistyped(user) -> str:
    return Token.objects.issue(user)[1][:-1] + "_"


def not_ours(user) -> str:
    return "eyJhbGciOiJub25lIn0.e30."


def expired(user) -> str:
    return Token.objects.issue(user, expires=PAST)[1]


def revoked(user) -> str:
    token, secret = Token.objects.issue(user)
    token.revoke()
    return secret


def deleted(user) -> str:
    token, secret = Token.objects.issue(user)
    token.delete()
    return secret


def rotated(user) -> str:
    token, secret = Token.objects.issue(user)
    token.rotate()
    return secret


def inactive_user(user) -> str:
    user.is_active = False
    user.save()
    return Token.objects.issue(user)[1]


def other_server(user) -> str:
    return Token.objects.issue(user, servers=["staff"])[1]


REFUSED = [
    unknown,
    mistyped,
    not_ours,
    expired,
    revoked,
    deleted,
    rotated,
    inactive_user,
    other_server,
]


@pytest.mark.parametrize("make", REFUSED)
def test_all_refusals_have_one_wording(anna, request_with, make):
    assert token_auth(request_with(make(anna))) == Refusal(
        "The bearer token is unknown, has ended, or is not meant for this server. "
        "Ask whoever runs this site for another."
    )


@pytest.mark.parametrize("make", [expired, revoked, inactive_user, other_server])
def test_the_log_says_why_and_not_the_secret(anna, request_with, make, caplog):
    secret = make(anna)
    with caplog.at_level("INFO", logger="django_mcp.contrib.tokens"):
        token_auth(request_with(secret))
    assert make.__name__.split("_")[0] in caplog.text
    assert Token.objects.get().prefix in caplog.text
    assert secret not in caplog.text


@pytest.mark.parametrize("make", [make for make in REFUSED if make not in (mistyped, not_ours)])
def test_every_refusal_costs_one_query(anna, request_with, make, django_assert_num_queries):
    request = request_with(make(anna))
    with django_assert_num_queries(1):
        token_auth(request)


# Use


def test_admission_costs_one_query_and_once_a_minute_a_write(
    secret, request_with, django_assert_num_queries
):
    token_auth(request_with(secret))
    assert Token.objects.get().last_used is not None
    with django_assert_num_queries(1):
        token_auth(request_with(secret))


def test_of_many_requests_one_in_a_minute_writes(secret, request_with):
    """So the last use that is shown is exact to ``USE_RESOLUTION``, and never in the future."""
    statements: list[str] = []
    for _ in range(3):
        with CaptureQueriesContext(connection) as queries:
            for _ in range(5):
                assert isinstance(token_auth(request_with(secret)), Principal)
        statements += [each["sql"].split()[0] for each in queries]
        last_used = Token.objects.get().last_used
        assert last_used <= Token.objects.annotate(now=DatabaseNow()).get().now
        Token.objects.update(last_used=last_used - USE_RESOLUTION)
    counts = Counter(each for each in statements if each in ("SELECT", "UPDATE"))
    assert counts == {"SELECT": 15, "UPDATE": 3}


def test_refused_tokens_are_not_used(anna, request_with):
    token_auth(request_with(other_server(anna)))
    assert Token.objects.get().last_used is None


def test_a_database_that_cannot_record_the_use_refuses_nobody(secret, request_with, caplog):
    def locked(execute, sql, params, many, context):
        if sql.startswith("UPDATE"):
            raise OperationalError("database is locked")
        return execute(sql, params, many, context)

    with connection.execute_wrapper(locked):
        assert isinstance(token_auth(request_with(secret)), Principal)
    assert "could not be recorded" in caplog.text
    assert Token.objects.get().last_used is None


def test_without_the_app_the_import_names_the_cure(settings, monkeypatch):
    monkeypatch.delitem(sys.modules, "django_mcp.contrib.tokens.auth")
    settings.INSTALLED_APPS = [
        app for app in settings.INSTALLED_APPS if app != "django_mcp.contrib.tokens"
    ]
    with pytest.raises(ImportError, match="INSTALLED_APPS"):
        import_module("django_mcp.contrib.tokens.auth")
