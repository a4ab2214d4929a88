from __future__ import annotations

import datetime as dt
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from django_mcp.contrib.tokens.models import USE_RESOLUTION, State, Token
from django_mcp.contrib.tokens.secret import digest_of, is_well_formed

PAST = dt.timedelta(seconds=-1)


def state_of(token: Token) -> str:
    return Token.objects.with_state().get(pk=token.pk).state


# Issue


def test_issue_returns_the_secret_and_stores_its_digest_only(anna):
    token, secret = Token.objects.issue(anna, name="laptop", servers=["shop"])
    token.refresh_from_db()
    assert is_well_formed(secret)
    assert token.digest == digest_of(secret)
    assert secret.startswith(token.prefix)
    assert (token.user, token.name, token.servers) == (anna, "laptop", ["shop"])
    stored = Token.objects.filter(pk=token.pk).values_list().get()
    assert secret not in map(str, stored)


def test_an_issued_token_knows_its_times(anna):
    token, _ = Token.objects.issue(anna, expires=dt.timedelta(hours=1))
    assert isinstance(token.created, dt.datetime)
    assert isinstance(token.expires, dt.datetime)
    assert token.last_used is None
    assert token.revoked is None


def test_expiry_may_be_a_moment(anna):
    moment = timezone.now() + dt.timedelta(days=1)
    token, _ = Token.objects.issue(anna, expires=moment)
    assert token.expires == moment


def test_a_lone_server_name_is_one_name(anna):
    assert Token.objects.issue(anna, servers="staff")[0].servers == ["staff"]


@pytest.mark.parametrize(
    ("scopes", "stored"), [(None, None), ([], []), (["a", "b"], ["a", "b"]), ("a:b", ["a:b"])]
)
def test_scopes_are_stored_and_none_is_not_the_same_as_no_limit(anna, scopes, stored):
    token, _ = Token.objects.issue(anna, scopes=scopes, read_only=True)
    token.refresh_from_db()
    assert (token.scopes, token.read_only) == (stored, True)
    assert token.granted_scopes == (None if stored is None else frozenset(stored))
    assert Token.objects.filter(scopes__isnull=True).exists() is (stored is None)


def test_a_process_that_knows_nothing_of_scopes_issues_tokens_without_limits(token):
    """As before the migration, while others have been deployed already."""
    known = [each.column for each in Token._meta.local_fields if each.name not in NEW]
    into = ", ".join(map(connection.ops.quote_name, known))
    values = into.replace(connection.ops.quote_name("digest"), "%s")
    values = values.replace(connection.ops.quote_name("id"), "%s", 1)
    table = connection.ops.quote_name(Token._meta.db_table)
    with connection.cursor() as cursor:
        arguments = [token.pk + 1, "0" * 64]
        cursor.execute(f"INSERT INTO {table} ({into}) SELECT {values} FROM {table}", arguments)
    old = Token.objects.get(digest="0" * 64)
    assert (old.granted_scopes, old.read_only, old.servers) == (None, False, [])


NEW = ("scopes", "read_only")


@pytest.mark.parametrize(
    "arguments",
    [
        *[{"servers": [""]}, {"servers": [1]}, {"name": "x" * 101}],
        *[{"scopes": ["a b"]}, {"scopes": [""]}, {"scopes": [1]}, {"scopes": ["offline_access"]}],
    ],
)
def test_issue_refuses_what_would_not_be_stored_rightly(anna, arguments):
    with pytest.raises(ValidationError):
        Token.objects.issue(anna, **arguments)
    assert not Token.objects.exists()


def test_digests_are_unique(token, anna):
    with pytest.raises(IntegrityError), transaction.atomic():
        Token.objects.create(user=anna, digest=token.digest, created=timezone.now())


def test_people_see_the_name_and_the_prefix(anna):
    named, _ = Token.objects.issue(anna, name="laptop")
    nameless, _ = Token.objects.issue(anna)
    assert str(named) == f"laptop ({named.prefix}…)"
    assert str(nameless) == f"{nameless.prefix}…"


# State


def test_a_token_is_active_expired_or_revoked(anna):
    active, _ = Token.objects.issue(anna, expires=dt.timedelta(hours=1))
    expired, _ = Token.objects.issue(anna, expires=PAST)
    revoked, _ = Token.objects.issue(anna, expires=PAST)
    revoked.revoke()
    assert [state_of(token) for token in (active, expired, revoked)] == [
        State.ACTIVE,
        State.EXPIRED,
        State.REVOKED,
    ]


@pytest.mark.parametrize(
    ("servers", "opens"),
    [
        ([], True),
        (["shop"], True),
        (["staff", "shop"], True),
        (["staff"], False),
        # Rows that this package never writes open nothing.
        (None, False),
        ({}, False),
        ("", False),
        ("shopping", False),
    ],
)
def test_a_token_opens_the_servers_that_it_names(servers, opens):
    assert Token(servers=servers).opens("shop") is opens


def test_a_limited_token_does_not_open_a_server_without_a_name():
    assert not Token(servers=["shop"]).opens("")


# Revocation and rotation


def test_revocation_happens_once(token):
    same = Token.objects.get(pk=token.pk)
    assert token.revoke()
    first = token.revoked
    assert first is not None
    assert not same.revoke()
    assert Token.objects.get().revoked == first


def test_revoking_in_bulk_counts_what_it_changed(anna):
    tokens = [Token.objects.issue(anna)[0] for _ in range(3)]
    tokens[0].revoke()
    assert Token.objects.all().revoke() == 2


def test_revoking_a_deleted_token_changes_nothing(token):
    Token.objects.all().delete()
    assert not token.revoke()


def test_rotation_replaces_the_secret_and_keeps_the_token(token, secret):
    fresh = token.rotate()
    assert fresh != secret
    assert fresh.startswith(token.prefix)
    assert Token.objects.presented(fresh) == token
    assert Token.objects.presented(secret) is None


def test_of_two_rotations_at_once_one_wins(token):
    same = Token.objects.get(pk=token.pk)
    fresh = token.rotate()
    with pytest.raises(Token.DoesNotExist):
        same.rotate()
    assert Token.objects.presented(fresh) == token


@pytest.mark.parametrize("end", [{"expires": PAST}, {"revoke": True}])
def test_what_has_ended_is_not_rotated(anna, end):
    token, _ = Token.objects.issue(anna, expires=end.get("expires"))
    if "revoke" in end:
        token.revoke()
    with pytest.raises(Token.DoesNotExist):
        token.rotate()


# Look-up


def test_a_secret_is_looked_up_by_its_digest_in_one_query(token, secret, django_assert_num_queries):
    with django_assert_num_queries(1) as queries:
        found = Token.objects.presented(secret)
        assert found.user.get_username() == "anna"
        assert found.state == State.ACTIVE
    statement = queries.captured_queries[0]["sql"]
    assert digest_of(secret) in statement
    assert secret not in statement
    assert token.prefix not in statement


def test_the_look_up_uses_the_unique_index(secret):
    lookup = Token.objects.filter(digest=digest_of(secret)).order_by()
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":  # a table of one row is scanned otherwise
            cursor.execute("SET LOCAL enable_seqscan = off")
    plan = lookup.explain().lower()
    assert "digest" in plan
    assert "seq scan" not in plan


def test_typos_cost_no_query(secret, django_assert_num_queries):
    with django_assert_num_queries(0):
        assert Token.objects.presented(secret[:-1] + ("0" if secret[-1] != "0" else "1")) is None


# Use


def test_use_is_written_once_a_minute(token):
    assert token.record_use()
    first = Token.objects.get().last_used
    assert not token.record_use()
    assert Token.objects.get().last_used == first
    Token.objects.update(last_used=first - USE_RESOLUTION)
    assert token.record_use()
    assert Token.objects.get().last_used >= first


def test_the_look_up_says_whether_use_is_due(token, secret):
    assert Token.objects.presented(secret).use_due
    token.record_use()
    assert not Token.objects.presented(secret).use_due


def test_of_two_requests_that_saw_it_due_one_writes(token, secret):
    first, second = Token.objects.presented(secret), Token.objects.presented(secret)
    assert first.use_due
    assert second.use_due
    assert [first.record_use(), second.record_use()] == [True, False]


def test_recording_use_undoes_no_revocation(token, secret):
    seen = Token.objects.presented(secret)
    token.revoke()
    seen.record_use()
    assert state_of(token) == State.REVOKED


@pytest.mark.django_db(transaction=True)
def test_many_requests_at_once_write_one_use(token):
    if connection.vendor == "sqlite" and connection.is_in_memory_db():
        pytest.skip("connections of an in-memory database share one transaction lock")
    barrier = Barrier(8, timeout=10)

    def use() -> bool:
        try:
            connection.ensure_connection()
            barrier.wait()
            return token.record_use()
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        uses = [pool.submit(use) for _ in range(8)]
        assert sorted(future.result(timeout=30) for future in uses) == [False] * 7 + [True]
