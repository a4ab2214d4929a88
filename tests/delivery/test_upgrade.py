"""A database of an earlier version, with rows in all its tables, goes on being served.

Rows are written by the models of then, which migrations know, and in the forms that clients of then
still hold: the ids of sessions and events, the secrets of tokens.
"""

from __future__ import annotations

import base64
import hashlib
import uuid
from collections.abc import Iterator
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.apps import apps
from django.core.asgi import get_asgi_application
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.test import Client as Browser

from django_mcp import MCPServer, endpoint
from django_mcp.asgi import mount
from django_mcp.clock import DatabaseNow
from django_mcp.contrib.tokens.models import Token
from django_mcp.models import PendingRequest, Session, Stream
from django_mcp.protocol.errors import taken_for_dead
from django_mcp.store.in_flight import recovery
from tests.support.client import Client
from tests.support.sites import urlconf
from tests.support.waiting import in_thread

VERSIONS = {
    "first": [("django_mcp", "0001_initial"), ("django_mcp_tokens", "0001_initial")],
}
"""Which earlier version, to the last migrations that it had."""
APPS = ("django_mcp", "django_mcp_tokens")

SESSION_ID = "an-id-that-only-its-client-has"
SECRET = "mcp_" + "0" * 42 + "1" + "410O3a"
"""A token of then: 43 digits of base 62 and the checksum of all before it."""
NOTE = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"%s"}}'
QUESTION = '{"jsonrpc":"2.0","id":"q1","method":"elicitation/create","params":{"message":"?"}}'

server = MCPServer("shop", version="1")


@server.tool
def echo(value: str) -> str:
    """Return the value."""
    return value


@server.resource("note://{key}")
def note(key: str) -> str:
    """A note."""
    return key


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def call(request_id: Any) -> dict[str, Any]:
    return {"id": request_id, "method": "tools/call", "params": {"name": "refund"}}


def event_id(stream: uuid.UUID, number: int) -> str:
    name = base64.urlsafe_b64encode(stream.bytes).rstrip(b"=").decode()
    return f"{name}.{number}"


def from_now(**span: float) -> Any:
    return DatabaseNow() + timedelta(**span)


@pytest.fixture(params=VERSIONS)
def old(
    request: pytest.FixtureRequest, transactional_db: Any, django_user_model: Any
) -> Iterator[SimpleNamespace]:
    """A database of that version, filled and migrated to the newest one."""
    targets = VERSIONS[request.param]
    user = django_user_model.objects.create_user("anna")
    try:
        executor = MigrationExecutor(connection)
        executor.migrate(targets)
        models = executor.loader.project_state(targets).apps
        filled = fill(models.get_model, user)
        tables = [model for app in APPS for model in models.get_app_config(app).get_models()]
        assert all(model.objects.exists() for model in tables)
    finally:
        executor = MigrationExecutor(connection)
        executor.migrate([key for key in executor.loader.graph.leaf_nodes() if key[0] in APPS])
        connection.close()  # and what it has prepared for the tables of then
    return filled


def fill(model: Any, user: Any) -> SimpleNamespace:
    """Write what a site has in the midst of its work; return what clients hold."""

    def add(name: str, /, **values: Any) -> Any:
        return model("django_mcp", name).objects.create(**values)

    session = add(
        "Session",
        key_digest=sha256(SESSION_ID),
        server="shop",
        revision="2025-11-25",
        client_name="claude-code",
        client_info={"name": "claude-code", "version": "1"},
        client_capabilities={"elicitation": {}},
        state="ready",
        expires=from_now(days=30),
    )
    own = add("Stream", session=session, own=True, next_seq=2)
    add("OutgoingMessage", stream=own, seq=1, kind="notification", body=NOTE % "queued")
    common = {"session": session, "server": "shop", "method": "tools/call", "name": "refund"}

    answered = add("Stream", session=session, next_seq=3, closed=from_now())
    response = '{"jsonrpc":"2.0","id":1,"result":{"content":[]}}'
    add("OutgoingMessage", stream=answered, seq=1, kind="notification", body=NOTE % "begun")
    add("OutgoingMessage", stream=answered, seq=2, kind="response", body=response)
    ended = {"state": "answered", "ended": from_now()}
    add("PendingRequest", stream=answered, request_id="1", **common, **ended)

    asking = add("Stream", session=session, next_seq=2)
    add("OutgoingMessage", stream=asking, seq=1, kind="request", body=QUESTION)
    lives = {"owner": "a" * 32, "lease_until": from_now(minutes=5)}
    asks = add("PendingRequest", stream=asking, request_id="2", **common, **lives)
    question = add(
        "PendingRequest",
        **{**common, "method": "elicitation/create", "name": ""},
        **lives,
        stream=asking,
        parent=asks,
        direction="to",
        request_id='"q1"',
        deadline=from_now(minutes=5),
    )

    abandoned = add("Stream", session=session, next_seq=1)
    died = {"owner": "d" * 32, "lease_until": from_now(hours=-1)}
    add("PendingRequest", stream=abandoned, request_id='"three"', **common, **died)

    digest = sha256("note://1")
    add("ChangeCounter", server="shop", serial=7)
    what = {"server": "shop", "kind": "resource", "uri": "note://1", "uri_digest": digest}
    add("Change", serial=7, **what)
    add(
        "Subscription",
        session=session,
        server="shop",
        uri="note://1",
        uri_digest=digest,
        changes_seen=7,
    )
    add("CallCount", key=sha256("anna"), number=3, ends=from_now(hours=-1))
    model("django_mcp_tokens", "Token").objects.create(
        user_id=user.pk, digest=sha256(SECRET), prefix=SECRET[:12], created=from_now(days=-1)
    )
    return SimpleNamespace(
        session=session.pk, answered=answered.pk, abandoned=abandoned.pk, question=question.pk
    )


@pytest.fixture
def application(settings: Any) -> Any:
    """The mount, with the server that the rows belong to."""
    settings.ROOT_URLCONF = urlconf(endpoint("mcp", server=server))
    return mount(get_asgi_application())


def in_the_old_session(application: Any) -> Client:
    """Return the client that has opened it."""
    headers = {"Mcp-Session-Id": SESSION_ID, "Mcp-Protocol-Version": "2025-11-25"}
    return Client(application, **headers)


def test_a_session_goes_on_being_served(old, application, on_loop):
    async def main():
        client = in_the_old_session(application)
        result = await client.result("echo", value="hello")
        async with client.request("DELETE") as ended:
            assert ended.status == 204
        return result

    assert on_loop(main())["content"][0]["text"] == "hello"
    assert Session.objects.get(pk=old.session).state == "ended"


def test_queued_messages_and_later_changes_are_delivered(old, application, on_loop):
    async def main():
        client = in_the_old_session(application)
        async with client.listen() as own:
            queued = await own.message()
            await in_thread(server.notify_resource_updated, "note://1")
            return queued, await own.message()

    queued, update = on_loop(main())
    assert queued["params"]["data"] == "queued"
    assert update["method"] == "notifications/resources/updated"
    assert update["params"]["uri"] == "note://1"


def test_who_comes_back_to_an_answered_call_gets_the_rest(old, application, on_loop, valid_wire):
    valid_wire.was_sent_elsewhere(SESSION_ID, call(1))

    async def main():
        client = in_the_old_session(application)
        async with client.listen(event_id(old.answered, 1)) as resumed:
            return await resumed.messages()

    (response,) = on_loop(main())
    assert response["id"] == 1


def test_a_question_is_answered(old, application, on_loop):
    async def main():
        client = in_the_old_session(application)
        return await client.answer({"id": "q1"}, {"action": "decline"})

    assert on_loop(main()) == 202
    question = PendingRequest.objects.get(pk=old.question)
    assert question.state == "answered"
    assert "decline" in question.answer


def test_the_call_of_a_process_that_is_gone_ends(old, application, on_loop, valid_wire):
    valid_wire.was_sent_elsewhere(SESSION_ID, call("three"))
    recovery.end_abandoned()

    async def main():
        client = in_the_old_session(application)
        async with client.listen(event_id(old.abandoned, 0)) as resumed:
            return await resumed.messages()

    (error,) = on_loop(main())
    assert error["id"] == "three"
    assert error["error"]["message"] == taken_for_dead().message


def test_a_token_opens_the_endpoint(old, settings, client):
    settings.ROOT_URLCONF = urlconf(endpoint("mcp", server=server))
    settings.DJANGO_MCP = {"AUTH": "django_mcp.contrib.tokens.auth.token_auth"}
    client_info = {"name": "claude-code", "version": "1"}
    opening = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client_info}
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opening}
    headers = {"Accept": "application/json, text/event-stream"}
    for secret, status in ((SECRET, 200), (SECRET[:-1] + "0", 401)):
        answer = client.post(
            "/mcp",
            message,
            content_type="application/json",
            headers={**headers, "Authorization": f"Bearer {secret}"},
        )
        assert answer.status_code == status, answer.content
    assert Session.objects.exclude(pk=old.session).get().user.username == "anna"
    assert Token.objects.get().last_used


def test_the_admin_lists_and_shows_everything(old, settings, admin_client: Browser):
    settings.ROOT_URLCONF = "tests.site.urls"
    pages = {
        "/admin/django_mcp/session/": old.session,
        "/admin/django_mcp/pendingrequest/": old.question,
        "/admin/django_mcp_tokens/token/": Token.objects.get().pk,
    }
    for page, key in pages.items():
        assert f"{page}{key}/change/" in admin_client.get(page).content.decode()
        assert admin_client.get(f"{page}{key}/change/").status_code == 200


def test_what_is_no_longer_needed_is_removed(old):
    past = from_now(days=-60)
    Session.objects.update(expires=past, last_active=past)
    PendingRequest.objects.update(lease_until=past)
    recovery.end_abandoned()
    call_command("mcp", "prune", verbosity=0)
    assert Session.objects.get().state == "ended"
    for model in (Session, PendingRequest):
        model.objects.update(ended=past)
    Stream.objects.exclude(closed=None).update(closed=past)
    call_command("mcp", "prune", verbosity=0)
    left = {
        model.__name__
        for model in apps.get_app_config("django_mcp").get_models()
        if model.objects.exists()
    }
    assert left <= {"Change", "ChangeCounter"}
