"""``introspection_auth``: the authorization server is asked about each token, once a minute."""

from __future__ import annotations

import base64
import threading
import time
from typing import Any

import pytest

from django_mcp.auth import Principal, Refusal, any_of
from django_mcp.contrib.oauth import introspection, introspection_auth
from django_mcp.contrib.tokens.auth import token_auth
from django_mcp.contrib.tokens.models import Token
from django_mcp.protocol.errors import Unavailable
from tests.support.caller import Caller
from tests.support.entrances import open_entrance
from tests.support.waiting import BOUND

from .conftest import RESOURCE, configure, shown
from .issuer import CLIENT, Issuer, serving

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("site", "anna")]
PATH = "/introspect"


def verdict(issuer: Issuer, token: str = "opaque") -> Principal | Refusal:
    found = introspection_auth(shown(issuer, token))
    assert isinstance(found, (Principal, Refusal))
    return found


def say(issuer: Issuer, token: str = "opaque", **changed: Any) -> None:
    """Let the server say this of a token."""
    claims = issuer.claims(**{"audience": RESOURCE, **changed})
    issuer.introspected[token] = {"active": True, **claims}


def pass_by(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    now = time.monotonic() + seconds
    monkeypatch.setattr(introspection, "monotonic", lambda: now)


def test_a_token_that_is_active_lets_its_user_in(issuer, anna):
    say(issuer)
    assert verdict(issuer) == Principal(anna, "oauth:claude", frozenset({"orders:read"}))
    assert issuer.forms == [{"token": "opaque", "token_type_hint": "access_token"}]
    expected = base64.b64encode(f"{CLIENT.replace(' ', '+')}:s3cret%26".encode()).decode()
    assert issuer.authorizations == [f"Basic {expected}"]


def test_times_may_be_left_out(issuer):
    say(issuer, exp=None, iat=None, iss=None)
    assert isinstance(verdict(issuer), Principal)


@pytest.mark.parametrize(
    "changed",
    [
        {"active": False},
        {"active": "true"},
        {"active": 1},
        {"audience": None},
        {"audience": "http://testserver"},
        {"audience": [f"{RESOURCE}/other"]},
        {"exp": 1},
        {"exp": "soon"},
        {"nbf": 99999999999},
        {"iss": "https://other.example"},
        {"token_type": "refresh_token"},
        {"token_type": "DPoP"},
        {"cnf": {"jkt": "a"}},
    ],
    ids=str,
)
def test_any_other_is_refused(issuer, changed):
    say(issuer, **changed)
    found = verdict(issuer)
    assert isinstance(found, Refusal)
    assert found.status == 401


def test_an_answer_counts_for_a_minute(issuer, monkeypatch):
    say(issuer)
    for _ in range(5):
        assert isinstance(verdict(issuer), Principal)
    assert issuer.asked[PATH] == 1
    issuer.introspected.clear()
    with monkeypatch.context() as patch:
        pass_by(patch, introspection.CACHE_SECONDS - 5)
        assert isinstance(verdict(issuer), Principal)
    pass_by(monkeypatch, introspection.CACHE_SECONDS)
    assert isinstance(verdict(issuer), Refusal)
    assert isinstance(verdict(issuer), Refusal)
    assert issuer.asked[PATH] == 2


def test_an_answer_does_not_count_for_longer_than_its_token(issuer, monkeypatch):
    say(issuer, exp=int(time.time()) + 10)
    assert isinstance(verdict(issuer), Principal)
    pass_by(monkeypatch, 11)
    verdict(issuer)
    assert issuer.asked[PATH] == 2


def test_tokens_that_do_not_hold_push_out_none_that_does(issuer, monkeypatch):
    monkeypatch.setattr(introspection, "MAX_CACHED", 3)
    say(issuer)
    verdict(issuer)
    for number in range(10):
        verdict(issuer, f"wrong-{number}")
    assert len(introspection._others()._until) == 3
    assert isinstance(verdict(issuer), Principal)
    assert issuer.asked[PATH] == 11


def test_the_answer_that_was_given_last_is_forgotten_last(monkeypatch):
    monkeypatch.setattr(introspection, "MAX_CACHED", 2)
    answers = introspection._Answers()
    for digest in (b"a", b"b", b"a", b"c"):
        answers.keep(digest, {"active": True}, 60)
    assert [bool(answers.get(digest)) for digest in (b"a", b"b", b"c")] == [True, False, True]


def test_what_one_server_says_of_a_token_is_not_what_another_does(issuer, anna):
    say(issuer)
    assert isinstance(verdict(issuer), Principal)
    with serving() as other:
        found = introspection_auth(shown(other, "opaque"))
        assert isinstance(found, Refusal)
        assert other.asked[PATH] == 1


def test_no_token_is_kept_where_its_digest_is_enough(issuer):
    say(issuer)
    verdict(issuer)
    assert "opaque" not in str(introspection._active()._until)


def test_a_very_long_token_is_not_asked_about(issuer):
    assert isinstance(verdict(issuer, "x" * 20_000), Refusal)
    assert not issuer.asked


def test_the_site_may_say_where_to_ask(issuer, site):
    issuer.documents.clear()
    configure(site, INTROSPECTION_URL=f"{issuer.url}{PATH}")
    say(issuer)
    assert isinstance(verdict(issuer), Principal)


def test_a_server_that_cannot_be_asked_is_a_503(issuer, site):
    configure(site, AUTH="django_mcp.contrib.oauth.introspection_auth")
    issuer.publish(introspection_endpoint="")
    caller = Caller(open_entrance("wsgi")).with_headers(Authorization="Bearer opaque")
    assert caller.tool("whoami").status == 503
    configure(site, INTROSPECTION_URL=f"{issuer.url}{PATH}")
    issuer.introspected["opaque"] = (500, {})  # type: ignore[assignment]
    assert caller.tool("whoami").status == 503
    say(issuer)
    assert caller.tool("whoami").result["content"][0]["text"].startswith("anna")


def admitted(issuer: Issuer, *tokens: str) -> list[Principal]:
    """Let in who has these tokens, and then forget what is known of them."""
    found = [verdict(issuer, token) for token in tokens]
    introspection.forget_answers()
    return [each for each in found if isinstance(each, Principal)]


def looked(principals: list[Principal]) -> list[Principal]:
    """Return who may stay no longer, once that has been found out."""
    recheck = principals[0].recheck
    assert recheck is not None
    assert list(recheck(principals)) == []  # nobody is waited for
    rechecks = introspection._rechecks()
    end = time.monotonic() + BOUND
    while rechecks._is_asking:
        assert time.monotonic() < end
        time.sleep(0.01)
    return list(recheck(principals))


def test_what_is_open_ends_when_its_token_is_revoked_and_not_when_it_expires(issuer):
    say(issuer, "good")
    say(issuer, "revoked")
    say(issuer, "expired", exp=int(time.time()) - 10)  # within what clocks may differ
    principals = admitted(issuer, "good", "revoked", "expired")
    assert len({each.recheck for each in principals}) == 1
    assert looked(principals) == []
    del issuer.introspected["revoked"], issuer.introspected["expired"]
    introspection.forget_answers()
    assert looked(principals) == [principals[1]]


def test_who_looks_at_what_is_open_waits_for_no_server(issuer, monkeypatch):
    """The same thread renews the leases of all calls."""
    say(issuer)
    principals = admitted(issuer, "opaque")
    fetch, threads = introspection.fetch_json, []

    def noted(*args: Any, **options: Any) -> dict[str, Any]:
        threads.append(threading.current_thread().name)
        return fetch(*args, **options)

    monkeypatch.setattr(introspection, "fetch_json", noted)
    assert looked(principals) == []
    assert threads == [introspection.THREAD]


def test_many_open_tokens_are_asked_about_a_few_at_a_time(issuer, monkeypatch):
    monkeypatch.setattr(introspection, "ASKED_AT_ONCE", 2)
    names = [f"token-{number}" for number in range(5)]
    for name in names:
        say(issuer, name)
    principals = admitted(issuer, *names)
    issuer.introspected.clear()
    asked = issuer.asked[PATH]
    assert looked(principals) == principals[:2]
    assert looked(principals[2:]) == principals[2:4]
    assert issuer.asked[PATH] - asked <= 5


def test_while_the_server_is_away_nobody_is_taken_for_revoked(issuer):
    say(issuer)
    principals = admitted(issuer, "opaque")
    issuer.answers = False
    with pytest.raises(Unavailable):
        looked(principals)
    issuer.answers = True
    introspection.forget_answers()
    assert looked(principals) == []


def test_tokens_of_this_site_are_shown_to_nobody_else(issuer, anna):
    _, secret = Token.objects.issue(anna)
    auth = any_of(token_auth, introspection_auth)
    assert isinstance(auth(shown(issuer, secret)), Principal)
    Token.objects.all().revoke()
    assert isinstance(auth(shown(issuer, secret)), Refusal)
    assert not issuer.asked
    say(issuer)
    assert isinstance(auth(shown(issuer, "opaque")), Principal)
