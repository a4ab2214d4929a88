"""Reading resources: which function answers, with which values, and what becomes of its result."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator
from datetime import date
from typing import Any, Literal
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ObjectDoesNotExist
from django.http import Http404
from django.utils.translation import gettext_lazy, override
from mcp_types import BlobResourceContents, ReadResourceResult, TextResourceContents
from pydantic import BaseModel, Field

from django_mcp import Context, MCPServer, RegistrationError, ResourceNotFound, ToolError, content
from tests.server.support import LEGACY, MODERN, REVISIONS, client_of


class Ticket(BaseModel):
    id: int
    title: str = "Broken"


def reading(uri: str, function: Any, *, template: str = "", **options: Any) -> Any:
    server = MCPServer("test")
    server.resource(template or uri, name="it", **options)(function)
    return client_of(server).read(uri)


def test_a_plain_resource_is_read():
    answer = reading("note://all", lambda: "text").assert_ok()
    assert answer.result["contents"] == [
        {"uri": "note://all", "mimeType": "text/plain", "text": "text"}
    ]


def test_variables_become_typed_arguments():
    got = []

    def note(number: int, day: date, key: UUID, kind: Literal["a", "b"], level: Literal[1, 2]):
        got.append((number, day, key, kind, level))
        return ""

    template = "note://{number}/{day}/{key}/{kind}/{level}"
    uri = f"note://7/2026-07-28/{UUID(int=1)}/a/2"
    reading(uri, note, template=template).assert_ok()
    assert got == [(7, date(2026, 7, 28), UUID(int=1), "a", 2)]


@pytest.mark.django_db
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("uri", ["note://x", "note://1.5", "note://0", "note://", "other://1"])
def test_values_that_do_not_fit_name_nothing(uri, revision):
    def note(number: int = Field(ge=1)) -> str:
        raise AssertionError("not to be called")

    server = MCPServer("test")
    server.resource("note://{number}")(note)
    answer = client_of(server, revision).read(uri)
    answer.assert_error(-32602 if revision == MODERN else -32002, "Resource not found")
    assert answer.error["data"] == {"uri": uri}


@pytest.mark.django_db
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    "error",
    [
        ResourceNotFound("secret"),
        ObjectDoesNotExist("secret"),
        Http404("secret"),
        User.DoesNotExist("secret"),
    ],
    ids=lambda error: type(error).__qualname__,
)
def test_what_the_function_does_not_find_does_not_exist(error, revision):
    def note(number: int) -> str:
        raise error

    server = MCPServer("test")
    server.resource("note://{number}")(note)
    answer = client_of(server, revision).read("note://1")
    answer.assert_error(-32602 if revision == MODERN else -32002, "Resource not found: note://1")
    assert answer.error["data"] == {"uri": "note://1"}
    assert answer.http.status_code == 200
    assert "secret" not in str(answer.message)


def test_an_unknown_uri_of_any_length_is_echoed_in_the_data_and_cut_in_the_message():
    uri = "x://" + "a" * 5000
    answer = reading("note://all", lambda: "").http
    server = MCPServer("test")
    server.resource("note://all")(lambda: "")
    answer = client_of(server).read(uri).assert_error(-32602)
    assert answer.error["data"] == {"uri": uri}
    assert len(answer.error["message"]) < 300


def test_other_errors_are_errors(caplog):
    def bug() -> str:
        raise KeyError("a secret")

    def told() -> str:
        raise ToolError("Ask again tomorrow.")

    reading("x://y", bug).assert_error(-32603, "Internal error")
    assert "a secret" in caplog.text
    answer = reading("x://y", told).assert_error(-32602, "Ask again tomorrow.")
    assert answer.error["data"] == {"uri": "x://y"}


def told(name: str) -> Any:
    """A function of one variable, which says which one it is."""

    def tell(key: str) -> str:
        return f"{name} {key}"

    return tell


def test_a_plain_uri_goes_before_a_template():
    server = MCPServer("test")
    server.resource("note://{key}", name="a")(told("template"))
    server.resource("note://{key}/x", name="b")(told("other"))
    server.resource("note://all", name="c")(lambda: "plain")
    client = client_of(server)
    assert client.read("note://all").text == "plain"
    assert client.read("note://some").text == "template some"
    assert client.read("note://all/x").text == "other all"


@pytest.mark.parametrize(
    ("uri", "answer"),
    [
        ("item://new/5", "fixed 5"),
        ("item://old/5", "path old/5"),
        ("item://5", "simple 5"),
        ("item://v5", "literal 5"),
        ("item://", None),
    ],
)
def test_of_several_templates_the_most_particular_answers(uri, answer):
    server = MCPServer("test")
    for number, template in enumerate(
        ["item://{+key}", "item://{key}", "item://new/{key}", "item://v{key}"]
    ):
        name = ["path", "simple", "fixed", "literal"][number]
        server.resource(template, name=name)(told(name))
    answered = client_of(server).read(uri)
    if answer is None:
        answered.assert_error(-32602)
    else:
        assert answered.text == answer


def test_typed_templates_tell_uris_apart():
    server = MCPServer("test")

    @server.resource("item://{a_number}")
    def by_number(a_number: int) -> str:
        return f"number {a_number}"

    @server.resource("item://{slug}")
    def by_slug(slug: str) -> str:
        return f"slug {slug}"

    client = client_of(server)
    assert client.read("item://5").text == "number 5"
    assert client.read("item://five").text == "slug five"


def test_variables_with_a_default_may_be_left_out():
    def search(q: str = "all", limit: int = 5) -> str:
        return f"{q} {limit}"

    template = "x://search{?q,limit}"
    assert reading("x://search", search, template=template).text == "all 5"
    assert reading("x://search?limit=2", search, template=template).text == "all 2"
    assert reading("x://search?q=a%20b", search, template=template).text == "a b 5"
    reading("x://search?limit=x", search, template=template).assert_error(-32602)

    def page(name: str, part: str = "top") -> str:
        return f"{name} {part}"

    assert reading("doc://a", page, template="doc://{name}{#part}").text == "a top"
    assert reading("doc://a#end", page, template="doc://{name}{#part}").text == "a end"


def test_variables_without_a_default_may_not():
    def search(q: str) -> str:
        return q

    reading("x://search", search, template="x://search{?q}").assert_error(-32602, "not found")


@pytest.mark.parametrize(
    ("uri", "function"),
    [
        ("note://{key}", lambda: ""),
        ("note://{key}", lambda other="": ""),
        ("note://all", lambda key: ""),
        ("note://{key}/{other}", lambda key=1: ""),
    ],
    ids=["missing", "another", "no variable", "one of two"],
)
def test_variables_and_parameters_must_have_the_same_names(uri, function):
    function.__annotations__ = dict.fromkeys(["key", "other"], str)
    with pytest.raises(RegistrationError, match="must have the same names"):
        MCPServer("test").resource(uri, name="it")(function)


def test_a_context_is_no_variable():
    def note(ctx: Context, name: str) -> str:
        return f"{name} {ctx.protocol_version}"

    assert reading("note://a", note, template="note://{name}").text == "a 2026-07-28"


def test_asynchronous_functions_read_too():
    async def note(name: str) -> str:
        return name

    assert reading("note://a", note, template="note://{name}").text == "a"


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


def giving(annotation: Any, value: Any) -> Any:
    def give():
        return value

    give.__annotations__ = {} if annotation is ... else {"return": annotation}
    return give


@pytest.mark.parametrize(
    ("annotation", "value", "listed", "mime_type", "expected"), VALUES.values(), ids=VALUES
)
def test_a_value_becomes_contents(annotation, value, listed, mime_type, expected):
    server = MCPServer("test")
    server.resource("x://y")(giving(annotation, value))
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
    server.resource("x://y", mime_type="text/html")(giving(..., value))
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
    server.resource("x://y")(giving(..., value))
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
    server.resource("x://y")(giving(annotation, CONTENTS))
    assert "mimeType" not in client_of(server).list_resources()[0]


def test_one_contents_and_a_mixture():
    assert reading("x://y", giving(..., CONTENTS[0])).result["contents"][0]["uri"] == "x://1"
    mixed = reading("x://y", giving(..., [CONTENTS[0], "text", b"\x00\xff"])).result["contents"]
    assert [each["uri"] for each in mixed] == ["x://1", "x://y", "x://y"]
    assert [each["mimeType"] for each in mixed][1:] == ["text/plain", "application/octet-stream"]


def test_an_empty_list_is_a_value_and_not_an_absence():
    assert reading("x://y", giving(list[int], [])).text == "[]"


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
    reading("x://y", giving(..., value)).assert_error(-32603, text)


def test_numbers_that_are_not_json_do_not_reach_the_wire():
    answer = reading("x://y", giving(dict, {"a": math.nan})).assert_ok()
    assert json.loads(answer.text) == {"a": None}


@pytest.mark.django_db
@pytest.mark.parametrize("revision", REVISIONS)
def test_a_result_without_contents_says_so(revision):
    server = MCPServer("test")
    server.resource("x://y")(giving(..., ReadResourceResult(contents=[])))
    assert client_of(server, revision).read("x://y").result["contents"] == []


def test_reading_needs_a_uri():
    server = MCPServer("test")
    server.resource("x://y")(giving(str, ""))
    client_of(server).request("resources/read").assert_error(-32602, "params.uri")
