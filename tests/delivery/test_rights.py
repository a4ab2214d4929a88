"""What is open ends with the right to it: permissions, logins, and what nobody can find out."""

from __future__ import annotations

import asyncio
import logging
import threading
from datetime import timedelta
from importlib import import_module
from itertools import product
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.contrib.auth import HASH_SESSION_KEY, get_user_model
from django.contrib.auth.models import Permission
from django.contrib.sessions.models import Session as Login
from django.core.asgi import get_asgi_application
from django.db import OperationalError, ProgrammingError, connection
from django.test import Client as WSGIClient
from django.test.utils import CaptureQueriesContext

from django_mcp import Context, endpoint
from django_mcp.auth import Principal, django_user, logins
from django_mcp.auth.logins import ended_logins, login_of
from django_mcp.clock import DatabaseNow
from django_mcp.models import Subscription
from django_mcp.store.access import access_watch
from django_mcp.store.access.access_watch import AccessWatch
from django_mcp.store.in_flight.running_requests import RunningRequests
from tests.support.caller import Caller
from tests.support.client import Client
from tests.support.entrances import open_entrance
from tests.support.messages import tool_call
from tests.support.sites import urlconf
from tests.support.waiting import in_thread, until

from . import changes, site
from .changes import SUBSCRIPTION_ID, UPDATED, by_header, listening, told
from .conftest import at_the_mount
from .test_access import REVOKED, last_of, modern_call
from .test_subscriptions import own_stream, subscribe


@pytest.fixture
def users(settings):
    """Two who may view users, and who are known by a header."""
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "AUTH": by_header}
    found = [get_user_model().objects.create(username=name) for name in ("anna", "otto")]
    for user in found:
        user.user_permissions.add(Permission.objects.get(codename="view_user"))
    return found


def revoke(user):
    user.user_permissions.clear()


# Listening, and subscriptions


@pytest.fixture
def _changing(settings):
    settings.ROOT_URLCONF = urlconf(endpoint("mcp", server=changes.server))


@pytest.mark.usefixtures("_changing")
def test_listening_ends_with_the_permission_for_what_is_listened_to(application, on_loop, users):
    """The client may listen again, and is told to what."""
    wish = {"toolsListChanged": True, "resourceSubscriptions": ["note://1", "secret://1"]}

    async def main():
        async with (
            listening(application, wish, id="own", X_User="anna") as anna,
            listening(application, wish, X_User="otto") as otto,
            listening(application, {"resourceSubscriptions": ["note://1"]}, X_User="anna") as open_,
        ):
            for each in (anna, otto, open_):
                await each.message()
            await in_thread(revoke, users[0])
            ended = await anna.messages()
            await in_thread(changes.server.notify_resource_updated, "secret://1")
            assert told(await otto.message()) == "secret://1"
            await in_thread(changes.server.notify_resource_updated, "note://1")
            assert told(await open_.message()) == "note://1"
        async with listening(application, wish, X_User="anna") as again:
            return ended, await again.message()

    ((ended,), again) = on_loop(main())
    assert ended["id"] == ended["result"]["_meta"][SUBSCRIPTION_ID] == "own"
    honoured = again["params"]["notifications"]
    assert honoured == {"toolsListChanged": True, "resourceSubscriptions": ["note://1"]}


@pytest.mark.usefixtures("_changing")
def test_a_subscription_ends_with_the_permission(application, on_loop, users):
    """Before the next change is told; the others of the session stay."""

    async def main():
        anna = await Client(application, X_User="anna").open()
        otto = await Client(application, X_User="otto").open()
        for client in (anna, otto):
            for uri in ("secret://1", "note://1"):
                await subscribe(client, uri)
        async with own_stream(anna) as own, own_stream(otto) as other:
            await in_thread(changes.server.notify_resource_updated, "secret://1")
            assert told(await own.message()) == told(await other.message()) == "secret://1"
            await in_thread(revoke, users[0])
            await in_thread(changes.server.notify_resource_updated, "secret://1")
            assert told(await other.message()) == "secret://1"
            await in_thread(changes.server.notify_resource_updated, "note://1")
            return told(await own.message()), told(await other.message())

    assert on_loop(main()) == ("note://1", "note://1")
    left = Subscription.objects.order_by("uri").values_list("session__user__username", "uri")
    assert sorted(left) == [("anna", "note://1"), ("otto", "note://1"), ("otto", "secret://1")]


@pytest.mark.usefixtures("_changing")
def test_what_changed_while_nobody_listened_is_not_told_without_the_permission(on_loop, users):
    """Nor where the rest of a stream is given in one piece, under WSGI."""

    async def main():
        anna = await Client(get_asgi_application(), X_User="anna").open()
        await subscribe(anna, "secret://1")
        async with own_stream(anna) as own:
            place = own.last_id
        await in_thread(revoke, users[0])
        await in_thread(changes.server.notify_resource_updated, "secret://1")
        at_wsgi = Caller(open_entrance("wsgi"), headers=anna.headers)
        answer = await in_thread(lambda: at_wsgi.send("GET", Last_Event_ID=place).body)
        async with own_stream(anna) as own:
            assert await own.is_silent()
        return answer

    assert UPDATED.encode() not in on_loop(main())
    assert not Subscription.objects.exists()


# Calls


@site.server.prompt(permission="auth.view_user")
def guarded_prompt(ctx: Context) -> str:
    """Say something, wait, and say something else, if the user may."""
    return site.speak_and_wait(ctx)


@site.server.resource("guarded://it", permission="auth.view_user")
def guarded_resource(ctx: Context) -> str:
    """Do the same."""
    return site.speak_and_wait(ctx)


@pytest.mark.parametrize(
    ("method", "params"),
    [("prompts/get", {"name": "guarded_prompt"}), ("resources/read", {"uri": "guarded://it"})],
)
def test_prompts_and_resources_that_take_long_end_with_the_permission(
    application, on_loop, users, method, params
):
    async def main():
        anna = await Client(application, X_User="anna").open()
        call = asyncio.create_task(last_of(anna.post(method, **params)))
        await site.gates.reached()
        await in_thread(revoke, users[0])
        ended = await call
        site.gates.open()
        return ended

    assert on_loop(main())["error"]["message"] == REVOKED


# What cannot be found out


class Fault:
    """Makes the permission of a tool, or the check of a caller, fail when a test wants it."""

    error: Exception | None = None

    def raise_(self) -> None:
        if self.error is not None:
            raise self.error


fault = Fault()


def fragile(user: Any) -> bool:
    fault.raise_()
    return True


def rechecked(principals: Any) -> Any:
    fault.raise_()
    return []


@site.server.tool(permission=fragile)
def guarded_by_something_fragile(ctx: Context) -> str:
    """Say something, wait, and say something else."""
    return site.speak_and_wait(ctx)


def with_recheck(request: Any) -> Principal:
    found = by_header(request)
    return Principal(found.user, recheck=rechecked if found.user.username == "anna" else None)


@pytest.fixture(autouse=True)
def _no_fault():
    yield
    fault.error = None


@pytest.fixture
def _impatient(monkeypatch):
    monkeypatch.setattr(access_watch, "UNSURE_SECONDS", 0.6)


@at_the_mount
@pytest.mark.usefixtures("_impatient")
@pytest.mark.parametrize(
    "error", [RuntimeError("planted"), ProgrammingError("planted")], ids=["bug", "statement"]
)
@pytest.mark.parametrize("what", ["guard", "recheck"])
def test_who_cannot_be_asked_after_does_not_stay(
    application, on_loop, settings, users, caplog, what, error
):
    """It is said when it begins and when it ends, and others are looked after all the time."""
    auth = by_header if what == "guard" else with_recheck
    tool = "guarded_by_something_fragile" if what == "guard" else "speak_and_wait"
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "AUTH": auth}

    async def main():
        anna = await Client(application, X_User="anna").open()
        otto = await Client(application, X_User="otto").open()
        calls = [
            asyncio.create_task(last_of(anna.call(tool, id="lost"))),
            asyncio.create_task(last_of(otto.call("speak_and_wait", id="stays"))),
        ]
        for _ in calls:
            await site.gates.reached()
        fault.error = error
        ended = await calls[0]
        for _ in calls:
            site.gates.open()
        return ended, await calls[1]

    ended, other = on_loop(main())
    assert (ended["id"], ended["error"]["message"]) == ("lost", REVOKED)
    assert "result" in other
    said = [each for each in caplog.records if "found out" in each.getMessage()]
    assert [(each.levelno, bool(each.exc_info)) for each in said] == [
        (logging.ERROR, True),
        (logging.ERROR, False),
    ]


def test_what_fails_for_a_while_ends_nothing(users, caplog):
    """Nobody is unsure of anybody once he has been asked after again."""
    found, gone = AccessWatch(), []
    found.watch("it", Principal(users[0]), lambda: gone.append("it"), lambda: fragile)
    for error in (RuntimeError("planted"), None, RuntimeError("planted"), None):
        fault.error = error
        found.look()
        (entry,) = found._watched.values()
        assert (entry.unsure_since is None) == (error is None)
    assert gone == []
    assert len([each for each in caplog.records if each.exc_info]) == 2


@at_the_mount
@pytest.mark.usefixtures("_impatient")
@pytest.mark.parametrize("away", ["the users'", "ours as well"])
def test_nobody_stays_for_long_while_the_database_is_away(
    application, on_loop, users, monkeypatch, away
):
    def fail(*args: Any) -> Any:
        raise OperationalError("planted")

    async def main():
        anna = await Client(application, X_User="anna").open()
        async with modern_call(application, "speak_and_wait", **{"X-User": "anna"}) as connection:
            await connection.message()
            async with anna.listen() as own:
                await own.event()
                with monkeypatch.context() as patch:
                    patch.setattr(access_watch, "_users", fail)
                    if away == "ours as well":
                        patch.setattr(RunningRequests, "look", fail)
                    ended = (await connection.messages())[-1]
                    assert await own.event() is None
        site.gates.open()
        return ended

    assert on_loop(main())["error"]["message"] == REVOKED


def test_one_that_fails_keeps_nobody_else_from_being_asked_after(users):
    found, gone = AccessWatch(), []
    fault.error = ProgrammingError("planted")
    found.watch(1, Principal(users[0]), lambda: gone.append(1), lambda: fragile)
    found.watch(2, Principal(users[1]), lambda: gone.append(2), lambda: lambda user: False)
    found.look()
    assert gone == [2]


# Logins of Django's


@pytest.fixture
def _logins(request, settings, tmp_path):
    """Sessions of the kind that a test names, before the application asks what that is."""
    backend = getattr(request.node, "callspec", None) and request.node.callspec.params.get(
        "backend"
    )
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "AUTH": "django_mcp.auth.django_user"}
    settings.SESSION_FILE_PATH = str(tmp_path)
    settings.SESSION_ENGINE = f"django.contrib.sessions.backends.{backend or 'db'}"


def log_in(username: str = "anna") -> WSGIClient:
    user, _ = get_user_model().objects.get_or_create(username=username)
    browser = WSGIClient()
    browser.force_login(user)
    return browser


def cookies(browser: WSGIClient) -> dict[str, str]:
    name = django_settings.SESSION_COOKIE_NAME
    return {"Cookie": f"{name}={browser.cookies[name].value}"}


def log_out(browser):
    browser.logout()


def expire(browser):
    session = Login.objects.filter(pk=browser.session.session_key)
    assert session.update(expire_date=DatabaseNow() - timedelta(seconds=1))


def change_password(browser):
    user = get_user_model().objects.get(username="anna")
    user.set_password("another")
    user.save()


def log_in_as_somebody_else(browser):
    browser.force_login(get_user_model().objects.get_or_create(username="eve")[0])


ENDS = [log_out, expire, change_password, log_in_as_somebody_else]
BACKENDS = ["db", "cached_db", "cache", "file", "signed_cookies"]
EVERYWHERE = [
    (backend, end)
    for backend, end in product(BACKENDS, ENDS)
    if end is not expire or backend.endswith("db")  # there the end can be moved
]


@pytest.mark.usefixtures("_logins")
@pytest.mark.parametrize("end", ENDS)
def test_what_is_open_ends_with_the_login(application, on_loop, end):
    """Calls, the session's own stream, and those that listen; nothing of another's."""

    async def main():
        browser, other = await in_thread(log_in), await in_thread(log_in, "otto")
        anna = await Client(application, **cookies(browser)).open()
        otto = await Client(application, **cookies(other)).open()
        wish = {"toolsListChanged": True}
        async with (
            anna.listen() as own,
            otto.listen() as others,
            listening(application, wish, **cookies(browser)) as listens,
        ):
            await own.event()
            await others.event()
            await listens.message()
            calls = [
                asyncio.create_task(last_of(each))
                for each in (
                    anna.call("speak_and_wait", id="session"),
                    modern_call(application, "await_", **cookies(browser)),
                    otto.call("speak_and_wait", id="another's"),
                )
            ]
            for _ in calls:
                await site.gates.reached()
            await in_thread(end, browser)
            ended = [await calls[0], await calls[1]]
            assert await own.event() is None
            assert "result" in (await listens.messages())[-1]
            assert await others.is_silent()
            for _ in calls:
                site.gates.open()
            return ended, await calls[2]

    ended, others = on_loop(main())
    assert [each["error"]["message"] for each in ended] == [REVOKED] * 2
    assert "result" in others


looping = threading.Event()


@site.server.tool
def until_told(ctx: Context) -> str:
    """Work until it is told to end."""
    looping.set()
    for _ in range(2_000):
        if ctx.cancelled:
            return "told"
        threading.Event().wait(0.01)
    return "not told"


@pytest.mark.usefixtures("_logins")
def test_a_call_under_wsgi_is_told_that_its_login_has_ended(on_loop):
    async def main():
        looping.clear()
        browser = await in_thread(log_in)
        client = await Client(get_asgi_application(), **cookies(browser)).open()
        at_wsgi = Caller(open_entrance("wsgi"), headers=client.headers)
        message = tool_call("until_told")
        call = asyncio.create_task(in_thread(at_wsgi.post, message))
        await until(looping.is_set, True)
        await in_thread(log_out, browser)
        return (await call).json()

    assert on_loop(main())["error"]["code"] == -32600


@pytest.mark.usefixtures("_logins")
def test_a_login_that_a_key_before_the_present_one_signed_lasts(application, on_loop, settings):
    settings.SECRET_KEY = "before"

    async def main():
        browser = await in_thread(log_in)
        anna = await Client(application, **cookies(browser)).open()
        async with anna.listen() as own:
            await own.event()
            settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "now", ["before"]
            assert await own.is_silent(1.2)
            settings.SECRET_KEY_FALLBACKS = []
            assert await own.event() is None

    on_loop(main())


def principals_of(browser: WSGIClient, number: int) -> list[Principal]:
    store = import_module(django_settings.SESSION_ENGINE).SessionStore

    class Request:
        session = store(browser.cookies[django_settings.SESSION_COOKIE_NAME].value)
        user = get_user_model().objects.get(pk=session["_auth_user_id"])

    found = [django_user(Request()) for _ in range(number)]  # type: ignore[arg-type]
    assert all(each.recheck is ended_logins for each in found)
    return found  # type: ignore[return-value]


@pytest.mark.usefixtures("_logins")
@pytest.mark.parametrize(("backend", "end"), EVERYWHERE)
def test_wherever_sessions_are_their_end_is_found_out(backend, end):
    browser = log_in()
    (mine,), others = principals_of(browser, 1), principals_of(log_in("otto"), 1)
    assert list(ended_logins([mine, *others])) == []
    end(browser)
    # Nobody can tell that a cookie was thrown away which is the session itself.
    told = backend != "signed_cookies" or end is change_password
    assert list(ended_logins([mine, *others])) == [mine] * told


@pytest.mark.usefixtures("_logins")
def test_all_logins_are_asked_after_by_one_query_for_sessions_and_one_for_users():
    found = [each for name in ("anna", "otto") for each in principals_of(log_in(name), 10)]
    assert list(ended_logins(found)) == []
    with CaptureQueriesContext(connection) as queries:
        assert list(ended_logins(found)) == []
    assert len(queries) == 2
    # A session that is written to is still the same login; one that holds nothing is none.
    (session, other) = Login.objects.order_by("session_key")
    store = session.get_session_store_class()(session.session_key)
    store["cart"] = [1, 2]
    store.save()
    assert list(ended_logins(found)) == []
    Login.objects.filter(pk=other.pk).update(session_data=store.encode({}))
    gone = list(ended_logins(found))
    assert {each.credential.session_key for each in gone} == {other.session_key}
    assert len(gone) == 10


@pytest.mark.usefixtures("_logins")
@pytest.mark.parametrize("backend", ["cache"])
def test_sessions_that_are_read_one_by_one_take_turns(backend, monkeypatch):
    monkeypatch.setattr(logins, "READ_AT_ONCE", 5)
    found = [each for _ in range(10) for each in principals_of(log_in(), 1)]
    store = import_module(django_settings.SESSION_ENGINE).SessionStore
    for each in found:
        store(each.credential.session_key).delete()
    first, second = list(ended_logins(found)), list(ended_logins(found))
    assert len(first) == len(second) == 5
    assert {id(each) for each in (*first, *second)} == {id(each) for each in found}


@pytest.mark.usefixtures("_logins")
@pytest.mark.parametrize("session", [None, {}])
def test_whoever_was_recognised_without_a_session_is_asked_after_by_nobody(session):
    """As by a header that a proxy sets, or by a token."""
    user = get_user_model().objects.create(username="anna")

    class Request:
        pass

    request = Request()
    request.user = user  # type: ignore[attr-defined]
    if session is not None:
        request.session = import_module(django_settings.SESSION_ENGINE).SessionStore()  # type: ignore[attr-defined]
    assert login_of(request) is None  # type: ignore[arg-type]
    assert django_user(request).recheck is None  # type: ignore[arg-type,union-attr]


@pytest.mark.usefixtures("_logins")
def test_a_user_model_without_a_hash_of_its_password_has_logins_too():
    (found,) = principals_of(log_in(), 1)
    found.credential.auth_hash = ""
    change_password(None)
    assert list(ended_logins([found])) == []
    assert HASH_SESSION_KEY in Login.objects.get().get_decoded()
    Login.objects.all().delete()
    assert list(ended_logins([found])) == [found]
