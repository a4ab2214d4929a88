"""Who may stay no longer, while requests and streams are open."""

from __future__ import annotations

import asyncio
import threading

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, Permission
from django.db import OperationalError

from django_mcp import Context, endpoint
from django_mcp.auth import Principal
from django_mcp.contrib.tokens.models import Token
from django_mcp.models import PendingRequest, Session
from django_mcp.store.access.access_watch import AccessWatch
from django_mcp.store.ledger import ledger
from tests.support.client import Client, StatelessClient
from tests.support.messages import META_LOG_LEVEL, modern, opening, request
from tests.support.sites import urlconf
from tests.support.waiting import in_thread, until

from . import site
from .changes import by_header

REVOKED = "Access was revoked while the request ran"


@pytest.fixture(autouse=True)
def users(settings):
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "AUTH": by_header}
    return [get_user_model().objects.create(username=name) for name in ("anna", "otto")]


def deactivate(name):
    # No signal tells of that.
    get_user_model().objects.filter(username=name).update(is_active=False)


async def last_of(context):
    async with context as connection:
        return (await connection.messages())[-1]


def modern_call(application, tool, **headers):
    client = StatelessClient(application, **headers)
    return client.call(tool, meta={META_LOG_LEVEL: "info"})


@pytest.mark.parametrize("tool", ["speak_and_wait", "wait", "await_"])
def test_the_calls_of_a_deactivated_user_end(application, on_loop, tool):
    async def main():
        anna = await Client(application, X_User="anna").open()
        otto = await Client(application, X_User="otto").open()
        calls = [
            asyncio.create_task(last_of(each))
            for each in (
                anna.call(tool, id="session"),
                modern_call(application, tool, **{"X-User": "anna"}),
                otto.call(tool, id="another user's"),
            )
        ]
        for _ in calls:
            await site.gates.reached()
        await in_thread(deactivate, "anna")
        ended = [await calls[0], await calls[1]]
        for _ in calls:
            site.gates.open()
        return ended, await calls[2]

    (in_session, without), other = on_loop(main())
    assert in_session["id"] == "session"
    for each in (in_session, without):
        assert each["error"] == {"code": -32600, "message": REVOKED}
    assert "result" in other
    states = set(PendingRequest.objects.values_list("state", flat=True))
    assert "running" not in states


@site.server.tool(permission="auth.view_group")
def guarded(ctx: Context) -> str:
    """Say something, wait, and say something else, if the user may."""
    return site.speak_and_wait(ctx)


@pytest.mark.parametrize("granted", ["user", "group"])
def test_the_call_of_a_tool_that_its_user_may_use_no_longer_ends(
    application, on_loop, users, granted
):
    """The session and its other calls go on, and so do those of others."""
    may = Permission.objects.get(codename="view_group")
    group = Group.objects.create(name="viewers")
    group.permissions.add(may)
    for user in users:
        (user.user_permissions.add(may) if granted == "user" else user.groups.add(group))

    def revoke():
        users[0].user_permissions.clear()
        users[0].groups.clear()

    async def main():
        anna = await Client(application, X_User="anna").open()
        otto = await Client(application, X_User="otto").open()
        calls = [
            asyncio.create_task(last_of(each))
            for each in (
                anna.call("guarded", id="revoked"),
                anna.call("speak_and_wait", id="open to all"),
                otto.call("guarded", id="another user's"),
            )
        ]
        for _ in calls:
            await site.gates.reached()
        await in_thread(revoke)
        error = await calls[0]
        for _ in calls:
            site.gates.open()
        return error, await calls[1], await calls[2]

    error, *others = on_loop(main())
    assert (error["id"], error["error"]["message"]) == ("revoked", REVOKED)
    assert ["result" in each for each in others] == [True, True]


def nobody(user):
    """Refuse everybody, but only after the ledger has looked who may stay."""
    if not looking.locked():
        with looking:
            ledger().access_watch.look()
    return False


looking = threading.Lock()


@site.server.tool(permission=nobody)
def hidden() -> str:
    """Do not exist."""
    raise AssertionError


def test_a_tool_that_is_hidden_does_not_exist_whenever_the_ledger_looks(application, on_loop):
    async def main():
        anna = await Client(application, X_User="anna").open()
        return await last_of(anna.call("hidden", id=1)), await last_of(anna.call("missing", id=2))

    refused, unknown = on_loop(main())
    assert refused["error"]["code"] == unknown["error"]["code"] == -32602
    assert refused["error"]["message"] == unknown["error"]["message"].replace("missing", "hidden")


def test_the_streams_of_a_deactivated_user_end(application, on_loop):
    async def main():
        anna = await Client(application, X_User="anna").open()
        otto = await Client(application, X_User="otto").open()
        async with anna.listen() as own, otto.listen() as other:
            await own.event()
            await other.event()
            await in_thread(deactivate, "anna")
            assert await own.event() is None
            assert await other.is_silent()

    on_loop(main())


def coming_back(request):
    return Principal(by_header(request).user, comes_back=request.headers["X-User"] == "anna")


def test_who_is_to_come_back_listens_for_a_while(application, on_loop, settings):
    """Else a token that nobody takes back is good for ever, once it listens."""
    keys = {"AUTH": coming_back, "STREAM_MAX_AGE_SECONDS": 1}
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, **keys}

    async def main():
        anna = StatelessClient(application, X_User="anna")
        otto = StatelessClient(application, X_User="otto")
        own, other = (each.listen(toolsListChanged=True) for each in (anna, otto))
        async with own as ending, other as lasting:
            await lasting.event()
            messages = await ending.messages()
            assert await lasting.is_silent()
        return messages

    acknowledged, last = on_loop(main())
    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    assert "result" in last, "its client listens again"


def test_the_call_of_a_deleted_user_ends(application, on_loop, users):
    """Its rows, and those of the session, have gone with the user."""

    async def main():
        anna = await Client(application, X_User="anna").open()
        async with anna.call("speak_and_wait", id="own") as connection:
            await connection.message()
            await in_thread(users[0].delete)
            messages = await connection.messages()
            site.gates.open()
            await until(lambda: site.gates.left, [""])
        return messages

    (error,) = on_loop(main())
    assert error["id"] == "own"
    assert error["error"]["code"] in (-32600, -32001)
    assert not Session.objects.exists()


def authenticated_last(request):
    """Let somebody in who is deleted before anything else is done."""
    principal = by_header(request)
    get_user_model().objects.filter(pk=principal.user.pk).delete()
    return principal


LISTEN, LISTENING = modern("subscriptions/listen", "own", notifications={"toolsListChanged": True})
INITIALIZE = request("initialize", "own", **opening("2025-11-25"))


@pytest.mark.parametrize(
    ("message", "headers"), [(INITIALIZE, {}), (LISTEN, LISTENING)], ids=["initialize", "listen"]
)
def test_who_is_deleted_after_the_authentication_begins_nothing(
    application, on_loop, settings, caplog, message, headers
):
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "AUTH": authenticated_last}

    async def main():
        return await last_of(Client(application).request("POST", message, X_User="anna", **headers))

    answer = on_loop(main())
    assert answer["id"] == "own"
    assert answer["error"] == {"code": -32600, "message": REVOKED}
    assert not Session.objects.exists()
    assert not PendingRequest.objects.exists()
    assert not [record for record in caplog.records if record.exc_info]


def test_the_call_of_a_session_whose_rows_are_gone_ends(application, on_loop, settings):
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "AUTH": "django_mcp.auth.public"}

    async def main():
        client = await Client(application).open()
        async with client.call("speak_and_wait", id="own") as connection:
            await connection.message()
            await in_thread(Session.objects.all().delete)
            messages = await connection.messages()
            site.gates.open()
            await until(lambda: site.gates.left, [""])
        return messages

    (error,) = on_loop(main())
    assert (error["id"], error["error"]["code"]) == ("own", -32001)
    assert not Session.objects.exists()


def test_the_call_of_a_revoked_token_ends(application, on_loop, settings, users):
    settings.DJANGO_MCP = {
        **settings.DJANGO_MCP,
        "AUTH": "django_mcp.contrib.tokens.auth.token_auth",
    }
    (revoked, first), (_, second) = (
        Token.objects.issue(users[0], name=name) for name in ("laptop", "phone")
    )

    async def main():
        laptop = await Client(application, Authorization=f"Bearer {first}").open()
        phone = await Client(application, Authorization=f"Bearer {second}").open()
        calls = [
            asyncio.create_task(last_of(each.call("speak_and_wait", id=1)))
            for each in (laptop, phone)
        ]
        for _ in calls:
            await site.gates.reached()
        await in_thread(revoked.revoke)
        ended = await calls[0]
        for _ in calls:
            site.gates.open()
        return ended, await calls[1]

    ended, other = on_loop(main())
    assert ended["error"]["message"] == REVOKED
    assert "result" in other


def test_a_site_can_say_who_may_stay(application, on_loop, settings, users):
    banned = []

    def still_there(principals):
        return [each for each in principals if each.client_id in banned]

    def auth(request):
        return Principal(users[0], client_id=request.headers["X-Client"], recheck=still_there)

    settings.ROOT_URLCONF = urlconf(endpoint("mcp", server=site.server, auth=auth))

    async def main():
        one = await Client(application, X_Client="one").open()
        two = await Client(application, X_Client="two").open()
        calls = [asyncio.create_task(last_of(each.call("speak_and_wait"))) for each in (one, two)]
        for _ in calls:
            await site.gates.reached()
        banned.append("one")
        ended = await calls[0]
        for _ in calls:
            site.gates.open()
        return ended, await calls[1]

    ended, other = on_loop(main())
    assert ended["error"]["message"] == REVOKED
    assert "result" in other


def test_one_query_asks_after_all(application, on_loop, users, django_assert_num_queries):
    admitted = ledger().access_watch
    gone = []
    for number in range(20):
        user = users[number % 2]
        admitted.watch(number, Principal(user), lambda number=number: gone.append(number))
    with django_assert_num_queries(1):
        admitted.look()
    assert gone == []
    deactivate("otto")
    admitted.look()
    assert gone == list(range(1, 20, 2))


def test_nobody_asks_after_the_anonymous(django_assert_num_queries):
    admitted = ledger().access_watch
    admitted.watch("anybody", Principal(None), lambda: None)
    with django_assert_num_queries(0):
        admitted.look()


def test_streams_go_on_while_nobody_can_be_asked_after(application, on_loop, monkeypatch):
    """Users may be in another database than sessions, and that one may be away."""
    asked = []

    def fail(self):
        asked.append(True)
        raise OperationalError("planted")

    monkeypatch.setattr(AccessWatch, "look", fail)

    async def main():
        anna = await Client(application, X_User="anna").open()
        async with anna.call("speak_and_wait") as connection:
            assert (await connection.message())["params"]["data"] == "before"
            await until(lambda: bool(asked), True)
            async with anna.listen(connection.last_id) as elsewhere:
                await elsewhere.event()
                site.gates.open()
                return await elsewhere.messages()

    *_, last = on_loop(main())
    assert "result" in last
