"""A visit ends, takes little, shows nothing harmful, and gives nothing away."""

from __future__ import annotations

import asyncio
import time
from contextlib import ExitStack

import httpx
import pytest

from django_mcp.doctor import asking
from django_mcp.doctor.asking import Answer as Received
from django_mcp.doctor.asking import Asker, NoAnswer
from django_mcp.doctor.challenges import challenges
from django_mcp.doctor.examination import examine
from django_mcp.doctor.findings import Level
from django_mcp.doctor.visit import Options, Visit

from .conftest import examined, look, options_for
from .plants import to_endpoint
from .site import ISSUER, RESOURCE, TOKEN, Answer, Asked, Site, error, events, served


def ask(site: Site, *, timeout: float = 5.0, body: object = None) -> Received:
    asker = Asker(site.url, token=None, timeout=timeout)
    return asyncio.run(asker.call("POST", body=body))


def test_no_more_of_an_answer_is_read_than_its_bound():
    with served(Site(guarded=False)) as site:
        to_endpoint(Answer(200, (b"x" * 65536,) * 200))(site)
        answer = ask(site, body={})
    assert not answer.is_whole
    assert len(answer.body) < asking.BODY_BYTES + 1024 * 1024


def test_an_answer_that_trickles_has_an_end():
    begun = time.monotonic()
    with served(Site(guarded=False)) as site:
        to_endpoint(Answer(200, (b"x", 0.05) * 100))(site)
        answer = ask(site, timeout=0.5, body={})
    assert not answer.is_whole
    assert time.monotonic() - begun < 4


def test_a_stream_is_read_until_the_response_and_no_further(open_site: Site):
    response = {"jsonrpc": "2.0", "id": 1, "result": {"found": True}}
    to_endpoint(events({"jsonrpc": "2.0", "method": "notifications/x"}, response, 30.0))(open_site)
    begun = time.monotonic()
    answer = ask(open_site, body={"jsonrpc": "2.0", "id": 1, "method": "x"})
    assert time.monotonic() - begun < 5
    assert answer.message(1) == response


def test_no_more_requests_are_sent_than_their_bound(
    open_site: Site, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(asking, "REQUESTS", 5)
    report = look(open_site)
    assert len(open_site.seen) == 5
    assert any("5 requests were sent, and no more are" in each.message for each in report.findings)


def test_all_of_it_has_an_end(open_site: Site):
    def wait(asked: Asked, answer: Answer) -> Answer:
        if asked.method == "GET":
            open_site.closing.wait(5)
        return answer

    open_site.between.append(wait)
    begun = time.monotonic()
    report = examined(open_site.url, Options(max_seconds=0.5, client_document=""))
    assert time.monotonic() - begun < 4
    assert report.findings[-1].message == "After 0.5 seconds no more was looked at."
    assert report.findings[0].name == "local", "what was found before is kept"


def test_a_visit_to_a_server_that_works_sends_few_requests(guarded_site: Site):
    look(guarded_site)
    assert len(guarded_site.seen) < 90


# What a server says


def test_what_a_server_says_is_no_command_for_a_terminal(open_site: Site):
    to_endpoint(error(403, "\x1b[2J\x9b31m\u202eno\r\nok  BROKEN" + "x" * 10_000))(open_site)
    report = look(open_site)
    (finding,) = [each for each in report.findings if each.name == "forbidden"]
    assert "[2J 31m no ok BROKEN" in finding.message.replace("  ", " ")
    assert not {"\x1b", "\x9b", "\u202e", "\n", "\r"} & set(finding.message)
    assert len(finding.message) < 600


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ("", []),
        ("Bearer", [("bearer", {})]),
        ('bearer scope="a b",realm=x', [("bearer", {"scope": "a b", "realm": "x"})]),
        (
            'Digest qop="auth,auth-int", Bearer realm="a \\"b\\""',
            [("digest", {"qop": "auth,auth-int"}), ("bearer", {"realm": 'a "b"'})],
        ),
        ('="no scheme"', []),
        ('Bearer a="never closed', [("bearer", {"a": ""})]),
    ],
)
def test_challenges_are_read(value: str, read: list[tuple[str, dict[str, str]]]):
    assert challenges(value) == read


def test_a_long_challenge_is_read_in_no_time():
    begun = time.perf_counter()
    challenges('Bearer a="' + "\\" * 1_000_000)
    challenges("Bearer " + "a=" * 500_000)
    challenges(" ," * 500_000)
    assert time.perf_counter() - begun < 1


# What is given away


def test_a_token_is_sent_to_the_endpoint_alone_and_nothing_is_registered():
    with ExitStack() as stack:
        site = stack.enter_context(served(Site(guarded=True)))
        other = stack.enter_context(served(Site(guarded=True)))
        site.document["authorization_servers"] = [other.origin]
        site.challenge = f'Bearer resource_metadata="{other.origin}{RESOURCE}/mcp"'
        report = look(site)

    assert any(each.name == "document-host" for each in report.findings)
    assert ISSUER in {each.path for each in other.seen}
    assert {each.method for each in other.seen} <= {"GET", "OPTIONS"}
    assert not any("authorization" in each.headers for each in other.seen)
    with_token = [each for each in site.seen if TOKEN in each.headers.get("authorization", "")]
    assert {each.path for each in with_token} == {"/mcp"}
    assert not [each for each in site.seen if each.method == "POST" and not each.is_endpoint]
    assert TOKEN not in repr(report)
    assert TOKEN not in repr(options_for(site))


def test_a_redirect_is_followed_with_nothing():
    with ExitStack() as stack:
        site = stack.enter_context(served(Site(guarded=True)))
        other = stack.enter_context(served(Site(guarded=False)))
        site.between.append(lambda asked, answer: Answer(307, (), {"Location": other.url}))
        look(site)
    assert other.seen == []


def test_sessions_are_not_left_behind(open_site: Site):
    look(open_site)
    assert open_site.sessions == set()


def visit_to(url: str) -> Visit:
    parsed = httpx.URL(url)
    return Visit(url=parsed, asker=Asker(url, token=None, timeout=1), options=Options())


@pytest.mark.parametrize(
    ("endpoint", "url", "may"),
    [
        ("https://shop.example.com/mcp", "https://id.example.com/x", True),
        ("https://shop.example.com/mcp", "http://shop.example.com/x", True),
        ("https://shop.example.com/mcp", "http://id.example.com/x", False),
        ("https://shop.example.com/mcp", "http://169.254.169.254/latest", False),
        ("https://shop.example.com/mcp", "https://127.0.0.1/x", False),
        ("https://shop.example.com/mcp", "http://localhost:8000/x", False),
        ("https://shop.example.com/mcp", "https://[::1]/x", False),
        ("https://shop.example.com/mcp", "file:///etc/passwd", False),
        ("https://shop.example.com/mcp", "not a url", False),
        ("http://localhost:8000/mcp", "http://127.0.0.1:9000/x", True),
        ("http://localhost:8000/mcp", "ftp://127.0.0.1/x", False),
    ],
)
def test_what_a_server_names_leads_to_nothing_else_on_this_machine(
    endpoint: str, url: str, may: bool
):
    assert visit_to(endpoint).may_fetch(url) is may


@pytest.mark.parametrize(
    ("url", "token", "says"),
    [
        ("shop.example.com/mcp", None, "begins with https://"),
        ("ftp://shop.example.com/", None, "begins with https://"),
        ("https://", None, "has a host"),
        ("https://anna:secret@shop.example.com/mcp", None, "end in logs"),
        ("http://shop.example.com/mcp", "token", "sent by https:// alone"),
        ("https://shop.example.com:port/mcp", None, "This is no URL"),
    ],
)
def test_what_cannot_be_looked_at_is_refused(url: str, token: str | None, says: str):
    with pytest.raises(ValueError, match=says):
        asyncio.run(examine(url, Options(token=token)))


def test_a_query_is_warned_of(open_site: Site):
    report = examined(f"{open_site.url}?key=1", options_for(open_site))
    (finding,) = [each for each in report.findings if each.name == "query"]
    assert finding.level is Level.WARNING


def test_an_asker_says_why_nothing_came():
    with pytest.raises(NoAnswer, match="no URL"):
        asyncio.run(Asker("https://x/", token=None, timeout=1).ask("GET", "http://[::1/"))
