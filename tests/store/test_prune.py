"""``manage.py mcp prune``: what it says, and that apps join in."""

from __future__ import annotations

import datetime as dt
from io import StringIO

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.db import OperationalError

from django_mcp.contrib.tokens.models import Token
from django_mcp.models import Session
from django_mcp.store import cleanup

from .aging import let_pass, row_counts
from .visiting import Visit, resource

pytestmark = pytest.mark.django_db


def run(*arguments: str) -> str:
    out, err = StringIO(), StringIO()
    call_command("mcp", "prune", *arguments, stdout=out, stderr=err, no_color=True)
    assert err.getvalue() == ""
    return out.getvalue()


def leave_something() -> None:
    visit = Visit()
    visit.subscribe(resource(1))
    visit.call().ask().end()
    visit.leave()
    Visit()
    user = get_user_model().objects.create(username="anna")
    Token.objects.issue(user)[0].revoke()
    Token.objects.issue(user)
    let_pass(days=7, minutes=2)


SAID = """\
         1 expired sessions, which end
         1 subscriptions
         3 messages
         2 requests
         1 streams
         1 ended sessions
         1 tokens that have ended
"""


def test_it_says_what_it_has_removed():
    leave_something()
    assert run() == SAID
    assert Session.objects.get().state == "ended"
    assert Token.objects.get().revoked is None
    assert run() == "There is nothing to remove.\n"


def test_a_dry_run_says_the_same_and_changes_nothing():
    leave_something()
    before = row_counts()
    assert run("--dry-run") == run("--dry-run") == SAID
    assert row_counts() == before


def test_a_dry_run_does_not_count_for_ever(monkeypatch):
    leave_something()
    monkeypatch.setattr(cleanup, "COUNTED_ROWS", 1)
    assert "         1 messages or more\n" in run("--dry-run")


def test_it_is_silent_for_cron():
    leave_something()
    assert run("-v", "0") == ""
    assert Session.objects.count() == 1


def test_it_says_more_to_who_wants_to_know():
    assert len(run("--verbosity=2").splitlines()) == len(cleanup.cleanup_rules()) + 1


@pytest.mark.parametrize("size", ["0", "-1", "1001", "many", "1.5"])
def test_a_batch_has_a_size(size):
    with pytest.raises(CommandError, match="from 1 to 1000"):
        run(f"--batch-size={size}")


def test_small_batches_come_to_the_same():
    leave_something()
    assert run("--batch-size", "1") == SAID


def test_a_database_that_is_away_is_an_error_that_says_what_to_do(monkeypatch):
    def away(rows, keys):
        raise OperationalError("the server closed the connection")

    leave_something()
    monkeypatch.setattr(cleanup, "_delete", away)
    with pytest.raises(CommandError, match=r"subscriptions be removed: the server closed"):
        run()


def test_tokens_are_kept_as_long_as_sessions(settings):
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "RETENTION_SECONDS": 30 * 86_400}
    user = get_user_model().objects.create(username="anna")
    Token.objects.issue(user, expires=dt.timedelta(days=-29))
    Token.objects.issue(user, expires=dt.timedelta(days=-31))
    assert run() == "         1 tokens that have ended\n"
