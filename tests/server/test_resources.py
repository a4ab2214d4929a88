"""Reading resources: which function answers, with which values, and what becomes of its result."""

from __future__ import annotations

from datetime import date
from typing import Any, Literal
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ObjectDoesNotExist
from django.http import Http404
from pydantic import Field

from django_mcp import Context, MCPServer, RegistrationError, ResourceNotFound, ToolError
from tests.server.support import MODERN, REVISIONS, client_of, reading


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
