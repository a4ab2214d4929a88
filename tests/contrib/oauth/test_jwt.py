"""``jwt_auth``: whose tokens are taken, and which are refused."""

from __future__ import annotations

import hmac
import json
import logging
import threading
import time
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from joserfc.jwk import OctKey, RSAKey

from django_mcp.auth import Principal, Refusal
from django_mcp.contrib.oauth import issuers as known_issuers
from django_mcp.contrib.oauth import jwt, jwt_auth
from django_mcp.contrib.oauth.issuers import metadata_urls
from django_mcp.protocol.errors import Unavailable
from tests.support.caller import Caller
from tests.support.entrances import open_entrance

from .conftest import RESOURCE, configure, shown
from .issuer import RSA, Issuer, edwards, elliptic, named, part, serving, sign_by_hand

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("site", "anna")]


def verdict(issuer: Issuer, token: str) -> Principal | Refusal:
    found = jwt_auth(shown(issuer, token))
    assert isinstance(found, (Principal, Refusal))
    return found


def token_of(issuer: Issuer, **claims: Any) -> str:
    return issuer.sign(issuer.claims(**{"audience": RESOURCE, **claims}))


def assert_refused(issuer: Issuer, token: str, *, recognised: bool = True) -> None:
    found = verdict(issuer, token)
    assert isinstance(found, Refusal), found
    assert (found.status, found.recognised) == (401, recognised)
    assert "Log in again" in found.message


def test_a_token_of_the_issuer_lets_its_user_in(issuer, anna):
    found = verdict(issuer, token_of(issuer))
    assert found == Principal(anna, "oauth:claude", frozenset({"orders:read"}))


@pytest.mark.parametrize("audience", [[RESOURCE], ["other", RESOURCE], "https://alias.example/mcp"])
def test_a_list_of_audiences_has_to_have_the_resource(issuer, audience):
    assert isinstance(verdict(issuer, token_of(issuer, audience=audience)), Principal)


@pytest.mark.parametrize(
    "audience",
    [
        None,
        "",
        [],
        {},
        {RESOURCE: 1},
        7,
        [7, None],
        "http://testserver",
        "http://testserver/",
        f"{RESOURCE}/",
        f"{RESOURCE}/other",
        f"{RESOURCE}x",
        RESOURCE.upper(),
        f"{RESOURCE} http://other",
        [[RESOURCE]],
        "https://other.example/mcp",
        ["http://testserver", "https://other.example/mcp"],
    ],
    ids=str,
)
def test_a_token_for_anything_else_is_refused(issuer, audience):
    assert_refused(issuer, token_of(issuer, audience=audience))


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": 1},
        {"exp": -1e400},
        {"exp": None},
        {"exp": "9999999999"},
        {"exp": True},
        {"exp": float("nan")},
        {"exp": float("inf")},
        {"exp": []},
        {"nbf": 99999999999},
        {"nbf": "1"},
        {"iat": 99999999999},
        {"cnf": {"jkt": "a"}},
    ],
    ids=str,
)
def test_a_token_of_another_time_is_refused(issuer, claims):
    assert_refused(issuer, token_of(issuer, **claims))


def test_clocks_may_differ_a_little(issuer):
    now = int(time.time())
    late = token_of(issuer, exp=now - 20, nbf=now + 20, iat=now + 20)
    assert isinstance(verdict(issuer, late), Principal)
    assert_refused(issuer, token_of(issuer, exp=now - 40))
    assert_refused(issuer, token_of(issuer, nbf=now + 60))
    assert isinstance(verdict(issuer, token_of(issuer, exp=10**400)), Principal)


@pytest.mark.parametrize("typ", ["at+jwt", "application/at+jwt", "AT+JWT", "JWT", None])
def test_types_of_access_tokens_are_taken(issuer, typ):
    token = issuer.sign(issuer.claims(RESOURCE), typ=typ)
    assert isinstance(verdict(issuer, token), Principal)


@pytest.mark.parametrize(
    "typ", ["dpop+jwt", "logout+jwt", "secevent+jwt", "id_token", "", 7, ["JWT"]]
)
def test_tokens_of_other_types_are_refused(issuer, typ):
    header = {"alg": "RS256", "kid": "key-0", "typ": typ}
    assert_refused(issuer, sign_by_hand(header, issuer.claims(RESOURCE)))


@pytest.mark.parametrize(
    "claims",
    [{"nonce": "a"}, {"at_hash": "a"}, {"c_hash": "a"}, {"typ": "ID"}, {"typ": "Refresh"}],
    ids=str,
)
def test_an_id_token_opens_nothing(issuer, claims):
    claims = issuer.claims(RESOURCE, **claims)
    assert_refused(issuer, issuer.sign(claims, typ="JWT"))
    assert_refused(issuer, issuer.sign(claims, typ=None))


def test_a_nonce_in_what_is_for_access_does_no_harm(issuer):
    """Older releases of Keycloak put one there."""
    bearer = issuer.claims(RESOURCE, nonce="a", typ="Bearer")
    assert isinstance(verdict(issuer, issuer.sign(bearer, typ="JWT")), Principal)
    assert isinstance(verdict(issuer, issuer.sign(issuer.claims(RESOURCE, nonce="a"))), Principal)


# Forgeries


def test_a_token_without_a_signature_is_refused(issuer):
    claims = part(issuer.claims(RESOURCE))
    for algorithm in ("none", "None", "NONE", "", None, ["RS256"], {"RS256": 1}):
        header = part({"alg": algorithm, "typ": "at+jwt", "kid": "key-0"})
        for signature in ("", part(b"x")):
            assert_refused(issuer, f"{header}.{claims}.{signature}")
    assert_refused(issuer, f"{part({'typ': 'at+jwt'})}.{claims}.")


def test_the_public_key_is_no_shared_secret(issuer):
    for secret in (
        RSA[0].as_pem(private=False),
        json.dumps(RSA[0].as_dict(private=False)).encode(),
        RSA[0].as_dict(private=False)["n"].encode(),
    ):
        header = part({"alg": "HS256", "typ": "at+jwt", "kid": "key-0"})
        signed = f"{header}.{part(issuer.claims(RESOURCE))}"
        forged = hmac.digest(secret, signed.encode(), "sha256")
        assert_refused(issuer, f"{signed}.{part(forged)}")


def test_a_shared_secret_that_is_published_is_no_key(issuer, site):
    secret = OctKey.import_key(b"s" * 64, {"kid": "shared"})
    issuer.documents["/keys"] = {"keys": [secret.as_dict(private=True)]}
    forged = issuer.sign(issuer.claims(RESOURCE), secret, alg="HS256")
    assert_refused(issuer, forged)


def test_another_key_by_the_same_name_is_refused(issuer):
    assert_refused(issuer, issuer.sign(issuer.claims(RESOURCE), named(RSA[1], "key-0")))


def test_keys_that_a_token_brings_along_are_not_looked_at(issuer):
    key = named(RSA[1], "key-0")
    forged = issuer.sign(issuer.claims(RESOURCE), key, jwk=key.as_dict(private=False))
    assert_refused(issuer, forged)
    elsewhere = issuer.sign(issuer.claims(RESOURCE), key, jku=f"{issuer.url}/others")
    assert_refused(issuer, elsewhere)
    assert issuer.asked["/others"] == 0


def test_claims_that_were_changed_are_refused(issuer):
    header, claims, signature = token_of(issuer).split(".")
    changed = part(issuer.claims(RESOURCE, sub="root"))
    assert_refused(issuer, f"{header}.{changed}.{signature}")
    assert_refused(issuer, f"{header}.{claims}.{part(b'x' * 256)}")
    assert_refused(issuer, f"{part({'alg': 'RS256', 'kid': 'key-0'})}.{claims}.{signature}")


def test_extensions_that_are_not_known_are_refused(issuer):
    claims, header = issuer.claims(RESOURCE), {"alg": "RS256", "typ": "at+jwt", "kid": "key-0"}
    assert isinstance(verdict(issuer, sign_by_hand({**header, "new": 1}, claims)), Principal)
    for more in ({"crit": ["exp"], "exp": 1}, {"crit": []}, {"crit": None}, {"b64": True}):
        assert_refused(issuer, sign_by_hand({**header, **more}, claims))


def test_what_was_looked_at_is_what_was_signed(issuer, monkeypatch, caplog):
    """Whatever somebody finds that two parsers read otherwise."""
    token = token_of(issuer)
    header, claims = jwt._unverified(token)
    other = header, {**claims, "sub": "root"}
    monkeypatch.setattr(jwt, "_unverified", lambda token: other)
    with caplog.at_level(logging.INFO, "django_mcp.contrib.oauth"):
        assert_refused(issuer, token)
    assert "it can be read in two ways" in caplog.text


def test_for_a_token_whose_time_is_over_no_issuer_is_asked(issuer):
    assert_refused(issuer, token_of(issuer, exp=1))
    assert not issuer.asked


def test_an_issuer_that_is_not_ours_is_not_even_asked(issuer):
    with serving() as stranger:
        for name in (stranger.url, f"{issuer.url}/", None, ["x"], {"a": 1}):
            claims = issuer.claims(RESOURCE, iss=name)
            assert_refused(issuer, stranger.sign(claims), recognised=False)
        assert not stranger.asked


@pytest.mark.parametrize(
    "token",
    [
        "opaque",
        "a.b",
        "a.b.c",
        "..",
        "a.b.c.d.e",
        f"{part([])}.{part({})}.x",
        f"{part({'alg': 'RS256'})}.{part(b'[' * 9000)}.x",
        f"{part({'alg': 'RS256'})}.{part({'iss': 'x' * 20_000})}.x",
        "é.é.é",
    ],
    ids=lambda each: f"{each[:12]} {len(each)}",
)
def test_what_is_no_token_is_nobodys(issuer, token):
    request = shown(issuer, "")
    request.META["HTTP_AUTHORIZATION"] = f"Bearer {token}"
    found = jwt_auth(request)
    assert isinstance(found, Refusal)
    assert not found.recognised
    assert not issuer.asked


# Algorithms and keys


@pytest.mark.parametrize(
    ("algorithm", "key"),
    [
        ("RS512", RSA[0]),
        ("PS256", RSA[0]),
        ("ES256", elliptic("ec")),
        ("Ed25519", edwards("ed")),
        ("EdDSA", edwards("ed")),
    ],
    ids=["RS512", "PS256", "ES256", "Ed25519", "EdDSA"],
)
@pytest.mark.filterwarnings("ignore::joserfc.errors.SecurityWarning")
def test_issuers_sign_by_these_algorithms(issuer, site, algorithm, key):
    issuer.show_keys(key)
    token = issuer.sign(issuer.claims(RESOURCE), alg=algorithm)
    assert isinstance(verdict(issuer, token), Principal)
    configure(site, JWT_ALGORITHMS=["RS256"])
    assert_refused(issuer, token)


def test_a_key_is_good_for_what_it_is_published_for(issuer):
    token = token_of(issuer)
    for more in ({"use": "enc"}, {"alg": "PS256"}, {"key_ops": ["encrypt"]}, {"kty": "oct"}):
        known_issuers.forget_issuers()
        issuer.documents["/keys"] = {"keys": [{**RSA[0].as_dict(private=False), **more}]}
        assert_refused(issuer, token)
    known_issuers.forget_issuers()
    good = {**RSA[0].as_dict(private=False), "use": "sig", "alg": "RS256", "key_ops": ["verify"]}
    issuer.documents["/keys"] = {"keys": [{"kty": "new"}, "odd", {"kty": "RSA"}, good]}
    assert isinstance(verdict(issuer, token), Principal)


@pytest.mark.filterwarnings("ignore::joserfc.errors.SecurityWarning")
def test_a_short_key_is_none(issuer):
    short = RSAKey.generate_key(1024, {"kid": "short"})
    issuer.show_keys(short)
    assert_refused(issuer, issuer.sign(issuer.claims(RESOURCE), short))


def test_a_token_without_the_name_of_a_key_takes_the_only_one(issuer):
    token = issuer.sign(issuer.claims(RESOURCE), kid=None)
    assert isinstance(verdict(issuer, token), Principal)
    known_issuers.forget_issuers()
    issuer.show_keys(elliptic("other"), RSA[0])
    assert isinstance(verdict(issuer, token), Principal), "the only one for its algorithm"
    known_issuers.forget_issuers()
    issuer.show_keys(*RSA)
    assert_refused(issuer, token)


def pass_by(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Let this much time pass for what is known of issuers."""
    now = time.monotonic() + seconds
    monkeypatch.setattr(known_issuers, "monotonic", lambda: now)


def test_keys_are_fetched_once(issuer):
    for _ in range(5):
        assert isinstance(verdict(issuer, token_of(issuer)), Principal)
    assert issuer.asked == {"/.well-known/oauth-authorization-server": 1, "/keys": 1}


def test_who_waits_while_another_fetches_takes_what_that_has_found(issuer):
    known = known_issuers.issuer_of(issuer.url)

    class Lock:
        """Another thread is faster, and has fetched everything when this one gets it."""

        lock, is_waited_for = threading.Lock(), False

        def acquire(self, timeout: float) -> bool:
            if not self.is_waited_for:
                self.is_waited_for = True
                assert known.look_for_newer()
            return self.lock.acquire(timeout=timeout)

        def release(self) -> None:
            self.lock.release()

    known._lock = Lock()  # type: ignore[assignment]
    assert isinstance(verdict(issuer, token_of(issuer)), Principal)
    assert issuer.asked["/keys"] == 1


def test_a_new_key_is_found_and_an_old_one_forgotten(issuer, monkeypatch):
    old = token_of(issuer)
    assert isinstance(verdict(issuer, old), Principal)
    issuer.show_keys(RSA[1])
    new = token_of(issuer)
    pass_by(monkeypatch, known_issuers.PAUSE_SECONDS)
    assert isinstance(verdict(issuer, new), Principal)
    assert_refused(issuer, old)


def test_a_withdrawn_key_is_forgotten_without_anybody_asking_for_another(issuer, monkeypatch):
    old = token_of(issuer)
    assert isinstance(verdict(issuer, old), Principal)
    issuer.show_keys(RSA[1])
    pass_by(monkeypatch, known_issuers.FRESH_SECONDS)
    assert_refused(issuer, old)


def test_tokens_that_name_unknown_keys_have_nothing_fetched_over_and_over(issuer, monkeypatch):
    assert isinstance(verdict(issuer, token_of(issuer)), Principal)
    asked = issuer.asked["/keys"]
    pass_by(monkeypatch, known_issuers.PAUSE_SECONDS)
    for number in range(50):
        assert_refused(issuer, issuer.sign(issuer.claims(RESOURCE), named(RSA[1], f"k{number}")))
    assert issuer.asked["/keys"] == asked + 1
    assert isinstance(verdict(issuer, token_of(issuer)), Principal)


def test_what_is_known_is_used_while_the_issuer_is_away_but_not_for_ever(
    issuer, monkeypatch, caplog
):
    token = token_of(issuer, exp=int(time.time()) + 100_000)
    assert isinstance(verdict(issuer, token), Principal)
    issuer.answers = False
    with monkeypatch.context() as patch:
        pass_by(patch, known_issuers.FRESH_SECONDS)
        assert isinstance(verdict(issuer, token), Principal)
        assert "Nothing new is known of the issuer" in caplog.text
    pass_by(monkeypatch, known_issuers.USABLE_SECONDS)
    with pytest.raises(Unavailable):
        jwt_auth(shown(issuer, token))


def test_an_issuer_that_cannot_be_reached_is_a_503(issuer, monkeypatch):
    pass_by(monkeypatch, 0)
    issuer.answers = False
    caller = Caller(open_entrance("wsgi")).with_headers(Authorization=f"Bearer {token_of(issuer)}")
    answer = caller.tool("whoami")
    assert (answer.status, answer.header("Retry-After")) == (503, "5")
    for _ in range(5):
        assert caller.tool("whoami").status == 503
    assert issuer.asked["/.well-known/oauth-authorization-server"] == 1


# Discovery


def test_metadata_is_looked_for_where_the_specification_says():
    assert metadata_urls("https://id.example.com:8443/") == [
        "https://id.example.com:8443/.well-known/oauth-authorization-server",
        "https://id.example.com:8443/.well-known/openid-configuration",
    ]
    assert metadata_urls("https://id.example.com/realms/shop") == [
        "https://id.example.com/.well-known/oauth-authorization-server/realms/shop",
        "https://id.example.com/.well-known/openid-configuration/realms/shop",
        "https://id.example.com/realms/shop/.well-known/openid-configuration",
    ]


@pytest.mark.parametrize(
    "place",
    [
        "/.well-known/oauth-authorization-server/realms/shop",
        "/.well-known/openid-configuration/realms/shop",
        "/realms/shop/.well-known/openid-configuration",
    ],
)
def test_an_issuer_with_a_path_is_found_wherever_its_metadata_is(site, place):
    with serving("/realms/shop") as issuer:
        issuer.documents.clear()
        issuer.publish(place)
        assert isinstance(verdict(issuer, token_of(issuer)), Principal)


@pytest.mark.parametrize(
    ("path", "document"),
    [
        ("/.well-known/oauth-authorization-server", {"issuer": "https://honest.example"}),
        ("/.well-known/oauth-authorization-server", b"no JSON"),
        ("/.well-known/oauth-authorization-server", b"[" * 100_000),
        ("/.well-known/oauth-authorization-server", ["a"]),
        ("/.well-known/oauth-authorization-server", b"x" * 600_000),
        ("/keys", {}),
        ("/keys", {"keys": {}}),
    ],
    ids=["another issuer", "text", "nested", "list", "long", "none", "dict"],
)
def test_documents_that_cannot_be_meant_are_not_used(issuer, path, document):
    issuer.documents[path] = document
    with pytest.raises(Unavailable):
        jwt_auth(shown(issuer, token_of(issuer)))


@pytest.mark.parametrize("status", [201, 302, 404, 500])
@pytest.mark.parametrize("path", ["/.well-known/oauth-authorization-server", "/keys"])
def test_an_answer_of_another_status_is_none(issuer, path, status):
    issuer.documents[path] = (status, issuer.documents[path])
    issuer.documents["/elsewhere"] = issuer.documents[path][1]
    with pytest.raises(Unavailable):
        jwt_auth(shown(issuer, token_of(issuer)))
    assert issuer.asked["/elsewhere"] == 0


@pytest.mark.parametrize("url", ["http://keys.example/keys", "file:///etc/passwd", "//x", 7])
def test_keys_come_by_https_alone(issuer, url):
    issuer.publish(jwks_uri=url)
    with pytest.raises(Unavailable):
        jwt_auth(shown(issuer, token_of(issuer)))


# Through the endpoint


def test_a_token_comes_through_the_endpoint(issuer, site):
    caller = Caller(open_entrance("wsgi"))
    member = caller.with_headers(Authorization=f"Bearer {token_of(issuer)}")
    text = member.tool("whoami").result["content"][0]["text"]
    assert text == "anna oauth:claude orders:read"
    challenged = member.tool("ship")
    assert challenged.status == 403
    assert 'scope="orders:write"' in challenged.header("WWW-Authenticate")
    wider = token_of(issuer, scope="orders:read orders:write")
    assert "result" in caller.with_headers(Authorization=f"Bearer {wider}").tool("ship").message
    refused = caller.with_headers(Authorization="Bearer wrong").tool("whoami")
    assert 'error="invalid_token"' in refused.header("WWW-Authenticate")
    missing = caller.tool("whoami")
    assert issuer.url in missing.error["message"]
    assert "resource_metadata=" in missing.header("WWW-Authenticate")


def test_an_endpoint_without_an_issuer_is_closed(issuer, site, caplog):
    configure(site, AUTHORIZATION_SERVERS=[])
    caller = Caller(open_entrance("wsgi")).with_headers(Authorization=f"Bearer {token_of(issuer)}")
    assert caller.tool("whoami").status == 403
    assert "AUTHORIZATION_SERVERS" in caplog.text


def test_the_log_says_why_and_not_what_was_sent(issuer, caplog):
    token = token_of(issuer, audience="https://other.example")
    with caplog.at_level(logging.INFO, logger="django_mcp.contrib.oauth"):
        assert_refused(issuer, token)
    assert f"it is for 'https://other.example', and not for {RESOURCE}" in caplog.text
    assert token not in caplog.text


# Users


def test_whoever_has_no_account_is_told_so(issuer, anna):
    for changes in ({"sub": "nobody"}, {"sub": ""}, {"sub": None}, {"sub": 7}, {"sub": "a\x00"}):
        found = verdict(issuer, token_of(issuer, **changes))
        assert isinstance(found, Refusal)
        assert (found.status, found.recognised) == (403, True)
    anna.is_active = False
    anna.save()
    assert isinstance(verdict(issuer, token_of(issuer)), Refusal)


def test_nobody_is_let_in_where_nobody_says_whose_tokens_are(issuer, site, caplog):
    configure(site, OAUTH_USER=None)
    assert isinstance(verdict(issuer, token_of(issuer)), Refusal)
    assert "OAUTH_USER" in caplog.text


def test_a_machine_is_the_service_user_that_the_site_names(issuer, site):
    robot = get_user_model().objects.create_user("robot")
    configure(site, OAUTH_SERVICE_USERS={"nightly": "robot", "gone": "nobody"})
    token = token_of(issuer, sub="nightly", client_id="nightly")
    assert verdict(issuer, token) == Principal(robot, "oauth:nightly", frozenset({"orders:read"}))
    assert isinstance(verdict(issuer, token_of(issuer, client_id="gone")), Refusal)
    by_party = token_of(issuer, client_id=None, azp="nightly")
    found = verdict(issuer, by_party)
    assert isinstance(found, Principal)
    assert found.user == robot


@pytest.mark.parametrize(
    ("name", "client", "is_robot"),
    [
        ("{issuer} nightly", "nightly", True),
        ("https://other.example nightly", "nightly", False),
        ("https://other.example nightly", "https://other.example nightly", False),
        ("{issuer} nightly", "{issuer} nightly", False),
    ],
)
def test_a_machine_of_another_issuer_is_not_meant(issuer, site, anna, name, client, is_robot):
    robot = get_user_model().objects.create_user("robot")
    configure(site, OAUTH_SERVICE_USERS={name.format(issuer=issuer.url): "robot"})
    found = verdict(issuer, token_of(issuer, client_id=client.format(issuer=issuer.url)))
    assert isinstance(found, Principal), found
    assert found.user == (robot if is_robot else anna)


@pytest.mark.parametrize("client", ["\ud800", "a\x00b", "", 7])
def test_a_client_that_no_database_keeps_is_unknown(issuer, anna, client):
    header = {"alg": "RS256", "typ": "at+jwt", "kid": RSA[0].kid}
    token = sign_by_hand(header, issuer.claims(RESOURCE, client_id=client))
    found = verdict(issuer, token)
    assert isinstance(found, Principal), found
    assert found.client_id == "oauth:"
    assert found.comes_back, "nobody tells when its token ends"


def test_a_clients_id_is_kept_as_it_is_unless_it_is_very_long(issuer):
    short, long = "https://claude.ai/client", f"https://{'c' * 300}.example"
    found = [verdict(issuer, token_of(issuer, client_id=each)) for each in (short, long, None)]
    ids = [each.client_id for each in found if isinstance(each, Principal)]
    assert ids[0] == f"oauth:{short}"
    assert len(ids[1]) == len("oauth:") + 64
    assert ids[2] == "oauth:"


@pytest.mark.parametrize(
    ("claims", "scopes"),
    [
        ({"scope": "a  b"}, ["a", "b"]),
        ({"scope": ["a", "b", 7]}, ["a", "b"]),
        ({"scope": None, "scp": "a"}, ["a"]),
        ({"scope": None, "scp": ["a"]}, ["a"]),
        ({"scope": 7}, []),
        ({"scope": None}, []),
    ],
    ids=str,
)
def test_scopes_are_read_as_issuers_write_them(issuer, claims, scopes):
    found = verdict(issuer, token_of(issuer, **claims))
    assert isinstance(found, Principal)
    assert found.scopes == set(scopes)
