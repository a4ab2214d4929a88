"""What goes wrong in the site's code, at each entrance, in both eras, in transactions or not."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.core.exceptions import PermissionDenied, SuspiciousOperation, ValidationError
from django.core.signals import got_request_exception
from django.db import connection, transaction
from django.http import HttpRequest
from django.shortcuts import get_object_or_404

from django_mcp import Context, MCPServer, ResourceNotFound, ToolError, content, endpoint
from tests.support.answers import messages_of
from tests.support.caller import Caller
from tests.support.entrances import open_entrance
from tests.support.messages import IDS, LEGACY, MODERN, request
from tests.support.sites import urlconf
from tests.support.streams import BOUND

from .test_errors import assert_error

ERAS = (LEGACY[-1], MODERN)


class OutOfStock(Exception):
    """An exception of the site's own."""


class Sold(Exception):
    """Another, of which content is made."""


def conflict() -> None:
    Group.objects.create(name="taken")
    Group.objects.create(name="taken")


def fail(error: Exception) -> Callable[[], None]:
    def run() -> None:
        raise error

    return run


FAILURES: dict[str, tuple[Callable[[], Any], str]] = {
    "told": (fail(ToolError("told so")), "told so"),
    "missing": (
        lambda: get_object_or_404(Group, name="none"),
        "No Group matches the given query.",
    ),
    "unknown": (
        lambda: Group.objects.get(name="none"),
        "Group matching query does not exist.",
    ),
    "not there": (fail(ResourceNotFound("No note.")), "No note."),
    "denied": (fail(PermissionDenied()), "You may not do this."),
    "invalid": (fail(ValidationError({"name": ["Too long."]})), "name: Too long."),
    "conflict": (conflict, "This conflicts with what is already there."),
    "suspicious": (fail(SuspiciousOperation("a secret")), "Refused."),
    "bug": (fail(KeyError("a secret")), "The tool failed."),
    "handled": (fail(OutOfStock()), "None is left."),
    "handled as content": (fail(Sold()), "Sold."),
}
server = MCPServer("failing", exception_handlers={Sold: lambda error: [content.text("Sold.")]})


@server.exception_handler(OutOfStock)
def explain(error: OutOfStock) -> str:
    """Say what is left: with the ORM, and written beside what was rolled back."""
    Group.objects.get_or_create(name="noted")
    return "None is left." if not Group.objects.filter(name="half done").exists() else "Some."


@server.tool
def write(kind: str) -> str:
    """Write, and fail."""
    Group.objects.create(name="half done")
    FAILURES[kind][0]()
    return "went on"


@server.tool(atomic=False)
def write_outside(kind: str) -> str:
    """Write without a savepoint, and fail."""
    return write(kind)


@server.tool
async def afail(kind: str) -> str:
    """Fail on the loop, unless that is for the ORM."""
    error = FAILURES[kind][0]
    if error.__name__ == "run":
        error()
    await Group.objects.aget(name="none")
    return "went on"


@server.tool
async def ahandled() -> str:
    """Fail with an exception that is handled with the ORM."""
    raise OutOfStock


@server.tool
def refuse() -> str:
    """Fail with a message of Django's."""
    Group().full_clean()
    return ""


@server.tool
async def arefuse() -> str:
    """Fail with a message of Django's."""
    Group().full_clean()
    return ""


@server.resource("note://{kind}")
def note(kind: str) -> str:
    """Write, and fail."""
    return write(kind)


@server.prompt
async def prompt(ctx: Context) -> str:
    """Fail."""
    raise KeyError("a secret")


@pytest.fixture(autouse=True)
def _served(settings: Any) -> None:
    settings.ROOT_URLCONF = urlconf(
        endpoint("mcp", server=server), endpoint("broken/mcp", server=server, auth=broken)
    )


def broken(request: HttpRequest) -> Any:
    """Fail, as code of a site may."""
    raise KeyError("a secret")


class Heard(list[tuple[Any, HttpRequest]]):
    """What the signal has said; on an event loop that comes a moment later."""

    def __init__(self) -> None:
        super().__init__()
        self.came = threading.Event()

    def hear(self, sender: Any, request: HttpRequest, **_: Any) -> None:
        self.append((sender, request))
        self.came.set()

    def one(self) -> tuple[Any, HttpRequest]:
        assert self.came.wait(BOUND)
        (heard,) = self
        self.clear()
        self.came.clear()
        return heard


@pytest.fixture
def heard() -> Iterator[Heard]:
    heard = Heard()
    got_request_exception.connect(heard.hear)
    yield heard
    got_request_exception.disconnect(heard.hear)


def names() -> list[str]:
    return sorted(Group.objects.values_list("name", flat=True))


def text_of(answer: Any, request_id: Any) -> str:
    assert answer.status == 200
    assert (type(answer.message["id"]), answer.message["id"]) == (type(request_id), request_id)
    assert answer.result["isError"] is True
    (block,) = answer.result["content"]
    return str(block["text"])


@pytest.mark.parametrize("revision", ERAS)
def test_each_is_a_result_with_its_id_and_rolled_back(caller, atomic_requests, revision, heard):
    member = caller.in_revision(revision)
    for number, (kind, (_, text)) in enumerate(FAILURES.items()):
        request_id = IDS[number % len(IDS)]
        answer = member.call("tools/call", request_id, name="write", arguments={"kind": kind})
        assert text_of(answer, request_id).startswith(text)
        assert names() == (["noted"] if kind == "handled" else []), kind
        Group.objects.all().delete()
        if kind == "bug":
            sender, seen = heard.one()
            assert (sender, seen.path, seen.method) == (None, "/mcp", "POST")
    assert heard == []


@pytest.mark.parametrize("revision", ERAS)
def test_an_asynchronous_tool_is_told_alike(caller, revision, heard):
    member = caller.in_revision(revision)
    kinds = [kind for kind, (run, _) in FAILURES.items() if run.__name__ == "run"]
    for request_id, kind in enumerate([*kinds, "unknown"]):
        answer = member.call("tools/call", request_id, name="afail", arguments={"kind": kind})
        assert text_of(answer, request_id).startswith(FAILURES[kind][1])
        if kind == "bug":
            assert heard.one()[1].path == "/mcp"
    answer = member.call("tools/call", "a", name="ahandled", arguments={})
    assert text_of(answer, "a") == "None is left."
    assert heard == []


def test_without_a_savepoint_what_was_written_stays(caller, atomic_requests):
    arguments = {"kind": "told"}
    answer = caller.call("tools/call", name="write_outside", arguments=arguments)
    assert text_of(answer, 1) == "told so"
    assert names() == ["half done"]


@pytest.mark.django_db
@pytest.mark.parametrize("view", ["wsgi", "asgi"])
def test_in_a_transaction_of_the_callers_there_is_a_savepoint(view):
    caller = Caller(open_entrance(view))
    with transaction.atomic():
        Group.objects.create(name="before")
        for kind, (_, text) in FAILURES.items():
            answer = caller.call("tools/call", name="write", arguments={"kind": kind})
            assert text_of(answer, 1).startswith(text)
            assert "half done" not in names()
        assert connection.needs_rollback is False
    assert names() == ["before", "noted"]


def test_each_of_a_batch_has_its_own(caller, atomic_requests, heard):
    member = caller.opened("2025-03-26")
    calls = [
        request("tools/call", kind, name="write", arguments={"kind": kind}) for kind in FAILURES
    ]
    answer = member.post([*calls, request("ping", 0)])
    # On a slow machine it is a stream of messages, else one that is an array.
    messages = messages_of(answer.header("Content-Type"), answer.body)
    (messages,) = messages if len(messages) == 1 else [messages]
    *failed, ping = messages
    assert [each["id"] for each in messages] == [*FAILURES, 0]
    assert ping["result"] == {}
    for each, (_, text) in zip(failed, FAILURES.values(), strict=True):
        assert each["result"]["isError"] is True
        assert each["result"]["content"][0]["text"].startswith(text)
    heard.one()


@pytest.mark.parametrize("revision", ERAS)
def test_elsewhere_they_are_errors_with_the_id(caller, atomic_requests, revision, heard):
    member = caller.in_revision(revision)
    unknown = -32602 if revision == MODERN else -32002
    codes = dict.fromkeys(("missing", "unknown", "not%20there", "denied", "suspicious"), unknown)
    codes |= dict.fromkeys(("told", "handled"), -32602)
    codes |= dict.fromkeys(("invalid", "conflict", "bug"), -32603)
    for kind, code in codes.items():
        answer = member.call("resources/read", kind, uri=f"note://{kind}")
        assert_error(answer, 200, code, kind)
        assert "half done" not in names()
        if code == -32603:
            assert re.search(r"\(reference [0-9a-f]{8}\)$", answer.error["message"])
            assert heard.one()[1].path == "/mcp"
    assert_error(member.call("prompts/get", 7, name="prompt"), 200, -32603, 7)
    heard.one()
    assert heard == []


def test_a_failure_of_auth_is_announced_too(entrance, heard):
    answer = Caller(entrance, "/broken/mcp").call("ping", 4242)
    assert_error(answer, 500, -32603, None)
    assert re.search(r"\(reference [0-9a-f]{8}\)$", answer.error["message"])
    assert heard.one()[1].path == "/broken/mcp"


@pytest.mark.django_db
@pytest.mark.parametrize("view", ["wsgi", "asgi"])
@pytest.mark.parametrize("tool", ["refuse", "arefuse"])
def test_messages_are_in_the_language_that_middleware_has_chosen(view, settings, tool):
    settings.MIDDLEWARE = ["django.middleware.locale.LocaleMiddleware"]
    german = Caller(open_entrance(view)).with_headers(Accept_Language="de")
    answer = german.call("tools/call", name=tool, arguments={})
    assert text_of(answer, 1) == "name: Dieses Feld darf nicht leer sein."
