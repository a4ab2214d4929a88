"""What becomes of the value that a resource's function returns."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils.translation import gettext_lazy, override
from mcp_types import BlobResourceContents, ReadResourceResult, TextResourceContents
from pydantic import BaseModel

from django_mcp import MCPServer, content
from tests.server.support import LEGACY, REVISIONS, client_of, reading, returning


class Ticket(BaseModel):
    id: int
    title: str = "Broken"


BLOB = base64.b64encode(b"\x00\xff").decode()

# annotation, value, mime type in lists, mime type and text (or blob) of the contents
VALUES: dict[str, tuple[Any, Any, str | None, str, Any]] = {
    "text": (str, "a", "text/plain", "text/plain", "a"),
    "optional text": (str | None, "a", "text/plain", "text/plain", "a"),
    "lazy text": (str, gettext_lazy("Yes"), "text/plain", "text/plain", "Ja"),
    "empty text": (str, "", "text/plain", "text/plain", ""),
    "bytes": (bytes, b"\x00\xff", "application/octet-stream", "application/octet-stream", BLOB),
    "memoryview": (
        memoryview,
        memoryview(b"\x00\xff"),
        "application/octet-stream",
        "application/octet-stream",
        BLOB,
    ),
    "dict": (dict, {"a": None}, "application/json", "application/json", {"a": None}),
    "list": (list[int], [1], "application/json", "application/json", [1]),
    "model": (
        Ticket,
        Ticket(id=1),
        "application/json",
        "application/json",
        {"id": 1, "title": "Broken"},
    ),
    "optional model": (
        Ticket | None,
        Ticket(id=1),
        "application/json",
        "application/json",
        {"id": 1, "title": "Broken"},
    ),
    "iterator": (Iterator[int], iter([1, 2]), "application/json", "application/json", [1, 2]),
    "no annotation, text": (..., "a", None, "text/plain", "a"),
    "no annotation, dict": (..., {"a": 1}, None, "application/json", {"a": 1}),
    "no annotation, bytes": (..., b"\x00\xff", None, "application/octet-stream", BLOB),
    "anything": (Any, [1], None, "application/json", [1]),
    "text or bytes": (str | bytes, b"\x00\xff", None, "application/octet-stream", BLOB),
}


@pytest.mark.parametrize(
    ("annotation", "value", "listed", "mime_type", "expected"), VALUES.values(), ids=VALUES
)
def test_a_value_becomes_contents(annotation, value, listed, mime_type, expected):
    server = MCPServer("test")
    server.resource("x://y")(returning(annotation, value))
    client = client_of(server)
    assert client.list_resources()[0].get("mimeType") == listed
    with override("de"):
        (contents,) = client.read("x://y").assert_ok().result["contents"]
    assert (contents["uri"], contents["mimeType"]) == ("x://y", mime_type)
    if mime_type == "application/octet-stream":
        assert contents["blob"] == expected
    elif mime_type == "application/json":
        assert json.loads(contents["text"]) == expected
    else:
        assert contents["text"] == expected


@pytest.mark.parametrize("value", ["<p>", b"<p>", {"a": 1}], ids=repr)
def test_an_explicit_mime_type_wins(value):
    server = MCPServer("test")
    server.resource("x://y", mime_type="text/html")(returning(..., value))
    client = client_of(server)
    assert client.list_resources()[0]["mimeType"] == "text/html"
    assert client.read("x://y").result["contents"][0]["mimeType"] == "text/html"


CONTENTS = [
    content.contents("x://1", "one"),
    content.contents("x://2", b"\x00\xff", mime_type="image/png"),
    TextResourceContents(uri="x://3", text="three", _meta={"example.com/a": None}),
]


@pytest.mark.django_db
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("made", ["list", "tuple", "result"])
def test_contents_may_be_ready_made(made, revision):
    value: Any = {
        "list": CONTENTS,
        "tuple": tuple(CONTENTS),
        "result": ReadResourceResult(contents=CONTENTS, _meta={"example.com/b": 1}),
    }[made]
    server = MCPServer("test")
    server.resource("x://y")(returning(..., value))
    result = client_of(server, revision).read("x://y").assert_ok().result
    one, two, three = result["contents"]
    assert one == {"uri": "x://1", "mimeType": "text/plain", "text": "one"}
    assert two == {"uri": "x://2", "mimeType": "image/png", "blob": BLOB}
    assert ("_meta" in three) is (revision != LEGACY[0])
    assert result.get("_meta", {}).get("example.com/b") == (1 if made == "result" else None)


@pytest.mark.parametrize(
    "annotation",
    [ReadResourceResult, list[TextResourceContents | BlobResourceContents], TextResourceContents],
    ids=str,
)
def test_ready_made_contents_say_what_they_are_themselves(annotation):
    server = MCPServer("test")
    server.resource("x://y")(returning(annotation, CONTENTS))
    assert "mimeType" not in client_of(server).list_resources()[0]


def test_one_contents_and_a_mixture():
    assert reading("x://y", returning(..., CONTENTS[0])).result["contents"][0]["uri"] == "x://1"
    mixed = reading("x://y", returning(..., [CONTENTS[0], "text", b"\x00\xff"])).result["contents"]
    assert [each["uri"] for each in mixed] == ["x://1", "x://y", "x://y"]
    assert [each["mimeType"] for each in mixed][1:] == ["text/plain", "application/octet-stream"]


def test_an_empty_list_is_a_value_and_not_an_absence():
    assert reading("x://y", returning(list[int], [])).text == "[]"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (User(id=1), "a User instance has no JSON form"),
        ({"a": [User(id=1)]}, "a User instance has no JSON form"),
        (object(), "object has no JSON form"),
    ],
    ids=["model", "nested", "object"],
)
def test_values_without_a_json_form_are_refused_with_the_cure(value, text):
    reading("x://y", returning(..., value)).assert_error(-32603, text)


def test_numbers_that_are_not_json_do_not_reach_the_wire():
    answer = reading("x://y", returning(dict, {"a": math.nan})).assert_ok()
    assert json.loads(answer.text) == {"a": None}


@pytest.mark.django_db
@pytest.mark.parametrize("revision", REVISIONS)
def test_a_result_without_contents_says_so(revision):
    server = MCPServer("test")
    server.resource("x://y")(returning(..., ReadResourceResult(contents=[])))
    assert client_of(server, revision).read("x://y").result["contents"] == []


def test_reading_needs_a_uri():
    server = MCPServer("test")
    server.resource("x://y")(returning(str, ""))
    client_of(server).request("resources/read").assert_error(-32602, "params.uri")
