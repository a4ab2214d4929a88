"""What happens between the page on which people agree and their answer, and just at that moment."""

from __future__ import annotations

import datetime as dt
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import pytest
from django.contrib.auth import get_user_model
from django.contrib.sessions.models import Session
from django.db import OperationalError, connection, connections
from django.utils import timezone

from django_mcp.contrib.oauth.dot.consent import AuthorizationView
from django_mcp.contrib.oauth.dot.models import Application, Grant
from django_mcp.contrib.oauth.dot.validator import Validator
from tests.logins.visitor import CALLBACK, Visitor, fields_of, sent_back

pytestmark = pytest.mark.django_db
YES = {"allow": "1"}


@pytest.fixture
def registered(editor):
    assert editor.register().status_code == 201
    # What is no answer of ours is to be seen as the page that it would be.
    editor.browser.raise_request_exception = editor.machine.raise_request_exception = False
    return editor


def heading_of(page):
    return re.findall(r"<h1>(.*?)</h1>", page.content.decode())[0]


def assert_stopped(page, status, heading, text):
    """Somebody reads why it does not go on, and nobody has got anything."""
    assert page.status_code == status, page.content
    assert heading_of(page) == heading
    assert text in page.content.decode()
    assert page.headers["Cache-Control"] == "no-store"
    assert page.headers["X-Frame-Options"] == "DENY"
    assert not Grant.objects.exists()


def assert_unknown(page):
    assert_stopped(page, 400, "This login cannot go on", "does not know the application")


# The client


def test_its_entry_goes_before_the_answer(registered):
    registered.ask()
    Application.objects.all().delete()
    assert_unknown(registered.browser.post(registered.url, YES))
    assert_unknown(registered.browser.post(registered.url))


@pytest.mark.parametrize("is_atomic", [False, True], ids=["", "ATOMIC_REQUESTS"])
@pytest.mark.parametrize("method", ["resources_of", "save_authorization_code"])
@pytest.mark.django_db(transaction=True)
def test_its_entry_goes_while_the_answer_is_looked_at(registered, monkeypatch, method, is_atomic):
    registered.ask()
    monkeypatch.setitem(connections.settings["default"], "ATOMIC_REQUESTS", is_atomic)
    whole = getattr(Validator, method)

    def interrupted(self, *args, **kwargs):
        Application.objects.all().delete()
        return whole(self, *args, **kwargs)

    monkeypatch.setattr(Validator, method, interrupted)
    assert_unknown(registered.browser.post(registered.url, YES))


def test_its_entry_goes_while_the_page_is_made(registered, monkeypatch):
    whole = Validator.resources_of

    def interrupted(self, *args):
        Application.objects.all().delete()
        return whole(self, *args)

    monkeypatch.setattr(Validator, "resources_of", interrupted)
    assert_unknown(registered.ask())


def test_it_may_be_sent_back_no_longer_where_it_wanted(registered, configure):
    Application.objects.update(redirect_uris="https://elsewhere.example/callback")
    assert_stopped(
        registered.browser.post(registered.url_of(), YES),
        *(400, "This login cannot go on", "does not know as its own"),
    )


def test_its_scheme_is_allowed_no_longer(registered, configure):
    uri = "cursor://anysphere.cursor-mcp/callback"
    Application.objects.update(redirect_uris=uri, registration_source="manual")
    assert registered.ask(redirect_uri=uri).status_code == 200
    configure(provider={"ALLOWED_REDIRECT_URI_SCHEMES": ["https"]})
    page = registered.browser.post(registered.url)
    assert_stopped(page, 400, "This login cannot go on", "does not know as its own")


class TestDocument:
    """Of a client whose id is its URL, and which is looked at again once it has become old."""

    @pytest.fixture
    def client(self, anna, documents):
        client = Visitor(anna, documents.show(redirect_uris=[CALLBACK]))
        client.browser.raise_request_exception = False
        assert client.ask().status_code == 200
        return client

    @staticmethod
    def grow_old():
        Application.objects.update(cimd_expires_at=timezone.now() - dt.timedelta(seconds=1))

    def test_it_has_vanished(self, client, documents):
        self.grow_old()
        documents.shown.clear()
        assert "code" in sent_back(client.browser.post(client.url, YES))
        assert documents.asked.total() == 2

    def test_it_has_vanished_and_so_has_the_entry(self, client, documents):
        Application.objects.all().delete()
        documents.shown.clear()
        assert_unknown(client.browser.post(client.url, YES))

    def test_it_is_there_and_the_entry_is_gone(self, client):
        Application.objects.all().delete()
        assert "code" in sent_back(client.browser.post(client.url, YES))

    @pytest.mark.parametrize(
        "changed",
        [{"redirect_uris": ["https://editor.example/other"]}, {"redirect_uris": ["http://[::1/"]}],
        ids=["another address", "none"],
    )
    def test_it_says_something_else(self, client, documents, changed):
        self.grow_old()
        documents.show(**changed)
        answer = client.browser.post(client.url, YES)
        if changed["redirect_uris"][0].startswith("https"):
            text = "does not know as its own"
            assert_stopped(answer, 400, "This login cannot go on", text)
        else:  # what is no document changes nothing
            assert "code" in sent_back(answer)

    @pytest.mark.django_db(transaction=True)
    def test_many_see_it_first_at_once(self, anna, documents, monkeypatch):
        url = documents.show("/new.json", redirect_uris=[CALLBACK])
        visitors = [Visitor(anna, url) for _ in range(4)]
        at_once = threading.Barrier(len(visitors), timeout=20)
        save = Application.save

        def save_together(self, *args, **kwargs):
            at_once.wait()
            return save(self, *args, **kwargs)

        monkeypatch.setattr(Application, "save", save_together)
        pages = in_threads(lambda visitor: visitor.ask(), visitors)
        assert [each.status_code for each in pages] == [200] * 4
        assert Application.objects.count() == 1


# The person


def log_out(visitor):
    visitor.browser.logout()


def expire(visitor):
    Session.objects.update(expire_date=timezone.now() - dt.timedelta(seconds=1))


def forget(visitor):
    Session.objects.all().delete()


def deactivate(visitor):
    get_user_model().objects.update(is_active=False)


def log_in_at(visitor, url, name):
    """Log somebody in; return where that leads."""
    login = visitor.browser.get(url)
    given = {**fields_of(login.content.decode()), "username": name, "password": "secret"}
    response = visitor.browser.post(url, given)
    assert response.status_code == 302
    return response.headers["Location"]


@pytest.mark.parametrize("leave", [log_out, expire, forget, deactivate])
@pytest.mark.parametrize("answer", [YES, {}], ids=["yes", "no"])
def test_who_is_logged_in_no_longer_logs_in_and_is_asked_again(registered, anna, leave, answer):
    registered.browser.handler.enforce_csrf_checks = True
    form = fields_of(registered.ask().content.decode())
    leave(registered)
    away = registered.browser.post(registered.url, {**form, **answer})
    assert away.status_code == 302
    assert not Grant.objects.exists()
    get_user_model().objects.update(is_active=True)
    if leave is not deactivate:
        back = log_in_at(registered, away.headers["Location"], "anna")
        assert back == registered.url
    page = registered.browser.get(registered.url)
    given = {**fields_of(page.content.decode()), **YES}
    assert "code" in sent_back(registered.browser.post(registered.url, given))


def test_another_who_has_logged_in_there_agrees_to_nothing(registered, anna, django_user_model):
    """The page said for whom the client acts, and was somebody else's."""
    registered.browser.handler.enforce_csrf_checks = True
    form = fields_of(registered.ask().content.decode())
    berta = django_user_model.objects.create_superuser("berta", password="secret")
    registered.browser.logout()
    assert log_in_at(registered, "/admin/login/?next=/", "berta") == "/"
    page = registered.browser.post(registered.url, {**form, **YES})
    assert_stopped(page, 403, "Please look at it once more", "logged in again")
    (again,) = re.findall(r'href="([^"]*authorize[^"]*)"', page.content.decode())
    page = registered.browser.get(again.replace("&amp;", "&"))
    assert "berta" in page.content.decode()
    given = {**fields_of(page.content.decode()), **YES}
    assert "code" in sent_back(registered.browser.post(registered.url, given))
    assert Grant.objects.get().user == berta


@pytest.mark.parametrize("form", [{}, {"csrfmiddlewaretoken": "x"}, {"csrfmiddlewaretoken": "\0"}])
def test_a_form_of_somebody_elses_agrees_to_nothing(registered, settings, form):
    settings.MIDDLEWARE = [each for each in settings.MIDDLEWARE if "csrf" not in each]
    registered.browser.handler.enforce_csrf_checks = True
    shown = fields_of(registered.ask().content.decode())
    page = registered.browser.post(registered.url, {**form, **YES})
    assert page.status_code in (400, 403)
    assert heading_of(page) in ("Please look at it once more", "This login cannot go on")
    assert not Grant.objects.exists()
    assert "code" in sent_back(registered.browser.post(registered.url, {**shown, **YES}))


def test_what_the_form_says_of_the_request_is_not_listened_to(registered):
    """It has been shown what its URL says."""
    registered.ask()
    form = {
        "client_id": "another",
        "redirect_uri": "https://evil.example/",
        "resource": "https://other.example/mcp",
        "scope": "orders:write",
        "state": "another",
    }
    back = sent_back(registered.browser.post(registered.url, form))
    assert (back["to"], back["state"], back["error"]) == (CALLBACK, "a state", "access_denied")
    back = sent_back(registered.browser.post(registered.url, {**form, **YES}))
    assert (back["to"], back["state"]) == (CALLBACK, "a state")
    assert registered.exchange(back["code"]).json()["scope"] == "orders:read"


def test_an_answer_to_nothing_says_what_to_do(registered):
    page = registered.browser.post("/o/authorize/", YES)
    assert_stopped(page, 400, "This login cannot go on", "begin again in the application")


def test_an_answer_that_comes_twice_is_two_logins(registered):
    registered.ask()
    answers = [sent_back(registered.browser.post(registered.url, YES)) for _ in range(2)]
    codes = {each["code"] for each in answers}
    assert len(codes) == 2
    assert [registered.exchange(each).status_code for each in codes] == [200, 200]


@pytest.mark.django_db(transaction=True)
def test_answers_that_come_at_once_are_as_many_logins(registered, anna):
    visitors = [Visitor(anna, registered.client_id) for _ in range(6)]
    answers = in_threads(lambda visitor: visitor.answer(visitor.ask()), visitors)
    assert len({each["code"] for each in answers}) == 6
    assert Grant.objects.count() == 6


def test_who_would_have_to_make_an_account_first_is_asked_to_log_in(registered):
    registered.browser.logout()
    page = registered.ask(prompt="create")
    assert page.headers["Location"].startswith("/admin/login/?next=")


# The database


@contextmanager
def locked(table):
    """Have somebody else keep a table, or all of a file, and nobody wait for it."""
    impatient = {
        "sqlite": "PRAGMA busy_timeout = 50",
        "postgresql": "SET lock_timeout = '50ms'",
        "mysql": "SET SESSION lock_wait_timeout = 1",
    }
    patient = {
        "sqlite": "PRAGMA busy_timeout = 20000",
        "postgresql": "RESET lock_timeout",
        "mysql": "SET SESSION lock_wait_timeout = DEFAULT",
    }
    lock = {
        "sqlite": ["BEGIN IMMEDIATE"],
        "postgresql": ["BEGIN", f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE"],
        "mysql": [f"LOCK TABLES {table} WRITE"],
    }
    unlock = {"sqlite": "ROLLBACK", "postgresql": "ROLLBACK", "mysql": "UNLOCK TABLES"}
    with closing(connection.copy()) as other, connection.cursor() as own:
        own.execute(impatient[connection.vendor])
        with other.cursor() as cursor:
            for statement in lock[connection.vendor]:
                cursor.execute(statement)
            try:
                yield
            finally:
                cursor.execute(unlock[connection.vendor])
                own.execute(patient[connection.vendor])


@pytest.mark.django_db(transaction=True)
def test_a_database_that_is_locked_is_a_page_and_the_same_answer_works_later(registered):
    registered.ask()
    with locked(Grant._meta.db_table):
        page = registered.browser.post(registered.url, YES)
    assert_stopped(page, 503, "Try again in a moment", "was told nothing")
    assert page.headers["Retry-After"] == "5"
    assert "code" in sent_back(registered.browser.post(registered.url, YES))


@pytest.mark.django_db(transaction=True)
def test_a_database_that_is_locked_when_tokens_are_asked_for_is_an_error_of_oauths(registered):
    code = registered.code()
    with locked("oauth2_provider_accesstoken"):
        response = registered.exchange(code)
    assert response.status_code == 503
    assert response.json()["error"] == "temporarily_unavailable"
    assert response.headers["Retry-After"] == "5"


@pytest.mark.parametrize("url", ["/o/token/", "/o/revoke_token/", "/o/register/"])
def test_a_database_that_is_away_is_an_error_for_machines(registered, monkeypatch, url):
    def fail(*args, **kwargs):
        raise OperationalError("the server has gone away")

    monkeypatch.setattr(Application, "save", fail)
    monkeypatch.setattr(Validator, "_load_application", fail)
    monkeypatch.setattr(Validator, "authenticate_client", fail)
    given = {"redirect_uris": [CALLBACK], "token_endpoint_auth_method": "none"}
    kind = {"content_type": "application/json"} if "register" in url else {}
    form = {"grant_type": "authorization_code", "code": "x", "client_id": "x", "token": "x"}
    response = registered.machine.post(url, given if kind else form, **kind)
    assert response.status_code == 503
    assert response.json()["error"] == "temporarily_unavailable"


def test_a_database_that_is_away_when_people_are_known_is_a_page(registered, monkeypatch):
    registered.ask()

    def fail(self):
        raise OperationalError("the server has gone away")

    monkeypatch.setattr(AuthorizationView, "handle_no_permission", fail)
    registered.browser.logout()
    for page in (registered.browser.get(registered.url), registered.browser.post(registered.url)):
        assert_stopped(page, 503, "Try again in a moment", "Show the page again")


def in_threads(work, items):
    def run(item):
        try:
            return work(item)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(items)) as pool:
        return list(pool.map(run, items))
