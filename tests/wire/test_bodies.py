"""Bodies: how much is read, and what a length that lies does."""

from __future__ import annotations

import asyncio
import io
import json
import time
from typing import Any
from wsgiref.handlers import SimpleHandler

import pytest
from django.core.handlers.asgi import ASGIHandler
from django.core.handlers.wsgi import WSGIHandler

from django_mcp.asgi import mount
from django_mcp.protocol import messages
from tests.support.answers import strict_json
from tests.support.asgi import scope_of
from tests.support.caller import Caller
from tests.support.entrances import keeping_connections
from tests.support.messages import (
    HEADERS,
    MODERN,
    OMIT,
    mirrored,
    modern_request,
    notification,
    without_omitted,
)

from .test_errors import assert_error

LIMIT = 2000
CALL = modern_request("tools/list", 4242)
BODY = json.dumps(CALL).encode()
AUTH = {"AUTH": "django_mcp.auth.public"}


@pytest.fixture
def limited(settings):
    settings.DJANGO_MCP = AUTH | {"MAX_BODY_BYTES": LIMIT}


def padded(size: int) -> bytes:
    """Return a good request of ``size`` bytes."""
    return BODY + b" " * (size - len(BODY))


@pytest.mark.parametrize(("size", "status"), [(LIMIT - 1, 200), (LIMIT, 200), (LIMIT + 1, 413)])
def test_the_limit_is_exact(caller, limited, size, status):
    answer = caller.post(padded(size), **mirrored(CALL))
    assert answer.status == status
    if status == 413:
        assert_error(answer, 413, -32600, None)
        assert str(LIMIT) in answer.error["message"]


def test_a_declared_length_over_the_limit_is_refused_unread(caller, limited):
    """Django's ASGI handler has read the body before any view runs."""
    answer = caller.post(padded(LIMIT * 50), **mirrored(CALL))
    assert_error(answer, 413, -32600, None)
    assert answer.pieces_read == (1 if caller.entrance.name == "asgi" else 0)


@pytest.mark.parametrize("version", [OMIT, "2025-11-25", MODERN])
def test_a_body_of_too_many_values_is_refused_before_it_is_parsed(caller, settings, version):
    settings.DJANGO_MCP = AUTH | {"MAX_JSON_VALUES": 2000}
    for body in (
        b"[" + b"1," * 2000 + b"1]",
        b"[" * 2001,
        b'{"":' * 2001,
        b'""' * 9000 + b"," * 2001,
    ):
        answer = caller.post(body, Mcp_Protocol_Version=version)
        assert_error(answer, 413, -32600, None)
        assert "more than 2000 JSON values" in answer.error["message"]


def test_the_limit_of_values_may_be_low(caller, settings):
    settings.DJANGO_MCP = AUTH | {"MAX_JSON_VALUES": 20}
    assert caller.post(CALL, **mirrored(CALL)).status == 200
    assert_error(caller.post([1] * 20), 413, -32600, None)


@pytest.mark.parametrize("text", [",", "[", "{", '","', '\\"', "\\", ",é"])
def test_text_may_hold_as_many_commas_as_it_likes(caller, settings, text):
    settings.DJANGO_MCP = AUTH | {"MAX_JSON_VALUES": 2000}
    message = modern_request("tools/list", 4242, {"example.com/csv": text * 5000})
    assert caller.post(message, **mirrored(message)).status == 200


@pytest.mark.parametrize("declared", [OMIT, "1", str(LIMIT)])
def test_a_body_in_pieces_is_not_read_to_its_end(caller, limited, declared):
    """Chunked, or longer than it says."""
    if caller.entrance.name == "wsgi":
        pytest.skip("see through_wsgiref")
    pieces = [b" " * 100] * 1000
    headers = {**caller.headers, **mirrored(CALL), "Content-Length": declared}
    given = list(without_omitted(headers).items())
    answer = caller.entrance.send("POST", "/mcp", given, *pieces)
    assert_error(answer, 413, -32600, None)
    if caller.entrance.name == "mount":
        assert answer.pieces_read == LIMIT // 100 + 1


def test_a_body_in_pieces_is_put_together(caller):
    """Cut anywhere: inside a character, inside a number."""
    if caller.entrance.name == "wsgi":
        pytest.skip("WSGI has no pieces")
    message = modern_request("tools/call", "ünï", name="add", arguments={"a": 123456})
    body = json.dumps(message, ensure_ascii=False).encode()
    pieces = [body[each : each + 1] for each in range(len(body))]
    headers = {**caller.headers, **mirrored(message)}
    answer = caller.entrance.send("POST", "/mcp", list(headers.items()), *pieces)
    assert answer.message["id"] == "ünï"
    assert answer.result["structuredContent"] == 123457


@pytest.mark.parametrize("declared", ["-1", "abc", "1.5", "\xb2", "9" * 5000, "0x10", " "])
def test_a_length_that_is_none_is_no_crash(caller, declared):
    """Whatever a server lets through."""
    answer = caller.post(BODY, **mirrored(CALL), Content_Length=declared)
    assert answer.status in (200, 400, 413)
    assert answer.message["jsonrpc"] == "2.0"


def test_a_length_that_is_too_short_cuts_the_message_off(caller):
    """WSGI reads what is declared; ASGI servers have seen to it that it is true."""
    if caller.entrance.name != "wsgi":
        pytest.skip("an ASGI server does not let it through")
    answer = caller.post(BODY, **mirrored(CALL), Content_Length="20")
    assert_error(answer, 400, -32700, None)


def test_a_body_over_djangos_own_limit_is_none_of_its_business(caller, settings):
    """``DATA_UPLOAD_MAX_MEMORY_SIZE`` is for forms, and its answer is HTML."""
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 100
    assert caller.post(padded(5000), **mirrored(CALL)).status == 200


def test_a_body_that_middleware_has_read_is_still_there(caller, settings):
    settings.MIDDLEWARE = ["tests.wire.test_middleware.reads_the_body"]
    assert caller.post(BODY, **mirrored(CALL)).status == 200


@pytest.mark.parametrize("path", ["/mcp", "/curious/mcp"], ids=["plain AUTH", "curious AUTH"])
def test_user_code_may_look_at_the_body(entrance, path):
    """``ctx.request.body`` is the request's, wherever it enters, whatever AUTH looked at."""
    answer = Caller(entrance, path).call("tools/call", name="body_length")
    assert answer.result["structuredContent"] > 100


class Counting(io.RawIOBase):
    """An endless request body that counts what is taken of it."""

    def __init__(self) -> None:
        self.taken = 0

    def read(self, size: int = -1) -> bytes:
        assert size >= 0, "read to the end of what has none"
        self.taken += size
        return b" " * size


def through_wsgiref(stream: Any, **environ: Any) -> tuple[int, str, bytes, str]:
    """Answer a request as the standard library's WSGI server does, which checks its application."""
    given = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": "/mcp",
        "SERVER_NAME": "testserver",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "CONTENT_TYPE": "application/json",
        **environ,
    }
    output, errors = io.BytesIO(), io.StringIO()
    handler = SimpleHandler(stream, output, errors, given, multithread=False)
    with keeping_connections():
        handler.run(WSGIHandler())
    head, _, body = output.getvalue().partition(b"\r\n\r\n")
    return int(head.split()[1]), head.decode("latin-1"), body, errors.getvalue()


def test_a_member_that_comes_twice_among_many_is_found_at_once():
    """In one pass, or a body within the limit would keep a worker busy for minutes."""
    members = b",".join(b'"k%d":0' % number for number in range(30_000))
    before = time.process_time()
    refused = messages.parse(b"{" + members + b',"k29999":0}')
    assert time.process_time() - before < 3
    assert isinstance(refused, messages.Invalid)
    assert "k29999" in refused.error.message


def test_a_real_wsgi_server_can_send_the_refusal(limited):
    """PEP 3333 forbids an application headers of one hop, such as ``Connection``."""
    stream = Counting()
    status, _, body, errors = through_wsgiref(stream, CONTENT_LENGTH=str(10**9))
    assert errors == ""
    assert status == 413
    assert strict_json(body)["error"]["code"] == -32600
    assert stream.taken == 0


def test_a_real_wsgi_server_reads_no_more_than_the_limit(limited):
    """Also where the declared length is within it and the body endless."""
    stream = Counting()
    status, _, body, errors = through_wsgiref(stream, CONTENT_LENGTH=str(LIMIT))
    assert errors == ""
    assert status == 400
    assert strict_json(body)["error"]["code"] == -32700
    assert stream.taken == LIMIT


def test_a_chunked_body_under_wsgi_is_not_taken_for_an_empty_one(limited):
    """Django reads no chunks under WSGI; 411 tells the client what to do instead (RFC 9110)."""
    status, _, body, errors = through_wsgiref(
        io.BytesIO(BODY), HTTP_TRANSFER_ENCODING="chunked", **{"wsgi.input_terminated": True}
    )
    assert errors == ""
    assert status == 411
    assert strict_json(body)["id"] is None


def test_a_real_wsgi_server_can_send_every_kind_of_answer():
    """PEP 3333: header values are native strings of Latin-1, bodies bytes."""
    for environ, expected in (
        ({"REQUEST_METHOD": "GET"}, 405),
        ({"REQUEST_METHOD": "OPTIONS"}, 204),
        ({"CONTENT_TYPE": "text/plain"}, 415),
        ({"HTTP_MCP_PROTOCOL_VERSION": MODERN}, 202),
    ):
        sent = json.dumps(notification("notifications/x")).encode()
        length = str(len(sent))
        status, _, _, errors = through_wsgiref(io.BytesIO(sent), CONTENT_LENGTH=length, **environ)
        assert (status, errors) == (expected, "")


def test_a_client_that_leaves_in_the_middle_of_a_body_is_no_crash(caplog):
    """A disconnect is ordinary: nothing is logged as an error."""
    events = iter(
        [
            {"type": "http.request", "body": BODY[:10], "more_body": True},
            {"type": "http.disconnect"},
        ]
    )
    sent = []

    async def receive():
        return next(events)

    async def send(event):
        sent.append(event)

    headers = [("Host", "testserver"), *HEADERS.items(), *mirrored(CALL).items()]
    asyncio.run(mount(ASGIHandler())(scope_of("/mcp", headers=headers), receive, send))
    assert sent[0]["status"] == 400
    assert strict_json(sent[1]["body"])["id"] is None
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
