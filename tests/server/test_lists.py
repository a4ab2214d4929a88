"""Lists: their order, their pages, and cursors that stay right while things come and go."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.test import override_settings
from mcp_types import Resource

from django_mcp import Context, MCPServer, RegistrationError
from django_mcp.content import resource_link
from tests.server.support import LEGACY, MODERN, REVISIONS, client_of

METHODS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
KEYS = {"tools": "name", "prompts": "name", "resources": "uri", "resourceTemplates": "uriTemplate"}


@pytest.fixture
def pages_of_two():
    with override_settings(DJANGO_MCP={**settings.DJANGO_MCP, "PAGE_SIZE": 2}):
        yield


def add(server: MCPServer, name: str, *, only: str = "") -> None:
    def plain() -> str:
        return name

    def template(key: str) -> str:
        return name

    if only in ("", "tools"):
        server.tool(name=name)(plain)
    if only in ("", "prompts"):
        server.prompt(name=name)(plain)
    if only in ("", "resources"):
        server.resource(f"x://{name}", name=name)(plain)
    if only in ("", "resourceTemplates"):
        server.resource(f"y://{name}/{{key}}", name=name)(template)


def full(*names: str) -> MCPServer:
    server = MCPServer("test")
    for name in names:
        add(server, name)
    return server


def pages(client: Any, method: str) -> list[list[str]]:
    """Walk a list; the names on each page."""
    walked: list[list[str]] = []
    params: dict[str, Any] = {}
    while len(walked) < 50:
        result = client.request(method, **params).result
        member = METHODS[method]
        walked.append([item[KEYS[member]] for item in result[member]])
        if "nextCursor" not in result:
            return walked
        params = {"cursor": result["nextCursor"]}
    raise AssertionError("The list has no end")


def names(walked: list[list[str]]) -> list[str]:
    found = [name for page in walked for name in page]
    return [name.removeprefix("x://").removeprefix("y://").removesuffix("/{key}") for name in found]


@pytest.mark.parametrize("method", METHODS)
def test_a_list_is_in_the_order_of_its_names_whatever_that_of_registration(method):
    client = client_of(full("c", "a", "b", "B", "a-1", "a.1"))
    (listed,) = pages(client, method)
    assert listed == sorted(listed)
    assert set(names([listed])) == {"B", "a", "a-1", "a.1", "b", "c"}
    again = client_of(full("B", "a.1", "a-1", "c", "b", "a"))
    assert pages(again, method) == [listed]


@pytest.mark.django_db
@pytest.mark.usefixtures("pages_of_two")
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_pages_hold_what_the_setting_says_and_nothing_twice(method, revision, count):
    expected = [f"n{number}" for number in range(count)]
    walked = pages(client_of(full(*expected), revision), method)
    assert names(walked) == expected
    assert [len(page) for page in walked] == [2] * (count // 2) + [1] * (count % 2)


@pytest.mark.parametrize("method", METHODS)
def test_a_short_list_has_no_cursor(method):
    assert "nextCursor" not in client_of(full("a")).request(method).result


@pytest.mark.parametrize("method", METHODS)
def test_an_empty_list_is_empty(method):
    server = full("a")
    for registered in (server._tools, server._prompts, server._resources):
        registered.clear()
    server.tool(name="only")(lambda: "")
    client = client_of(server)
    if method == "tools/list":
        assert pages(client, method) == [["only"]]
    else:
        client.request(method).assert_error(-32601, "Method not found")


def test_resources_without_templates_and_templates_without_resources_are_empty_lists():
    server = MCPServer("test")
    add(server, "a", only="resources")
    assert pages(client_of(server), "resources/templates/list") == [[]]
    server = MCPServer("test")
    add(server, "a", only="resourceTemplates")
    assert pages(client_of(server), "resources/list") == [[]]


@pytest.mark.usefixtures("pages_of_two")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("new", "gone", "expected"),
    [
        ("a0", None, ["a", "b", "c", "d", "e"]),
        ("b0", None, ["a", "b", "b0", "c", "d", "e"]),
        ("z", None, ["a", "b", "c", "d", "e", "z"]),
        (None, "a", ["a", "b", "c", "d", "e"]),
        (None, "b", ["a", "b", "c", "d", "e"]),
        (None, "c", ["a", "b", "d", "e"]),
        (None, "e", ["a", "b", "c", "d"]),
    ],
)
def test_a_cursor_stays_right_when_things_come_and_go(method, new, gone, expected):
    client = client_of(full("a", "b", "c", "d", "e"))
    member = METHODS[method]
    first = client.request(method).result
    left = [name for name in "abcde" if name != gone] + ([new] if new else [])
    client.server = full(*left)
    walked = [[item[KEYS[member]] for item in first[member]]]
    params = {"cursor": first["nextCursor"]}
    while params:
        result = client.request(method, **params).result
        walked.append([item[KEYS[member]] for item in result[member]])
        params = {"cursor": result["nextCursor"]} if "nextCursor" in result else {}
    assert names(walked) == expected


def cursor(*value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode()


@pytest.mark.django_db
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("method", METHODS)
def test_an_invalid_cursor_is_refused(method, revision):
    client = client_of(full("a"), revision)
    for text in (
        "",
        "x",
        "%%%",
        "größe",
        "a" * 10_000,
        cursor(),
        cursor(1, 2),
        cursor("registered"),
        cursor("registered", 5),
        cursor("registered", None, None),
        cursor("nobody", None),
        cursor("y://a/{key}", None),
        base64.b64encode(b"[" * 100_000).decode(),
        base64.b64encode(b"\xff").decode(),
    ):
        client.request(method, cursor=text).assert_error(-32602, "Invalid cursor")
    client.request(method, cursor=5).assert_error(-32602, "params.cursor")


@pytest.mark.parametrize("method", METHODS)
def test_a_null_cursor_is_the_beginning(method):
    assert client_of(full("a")).request(method, cursor=None).assert_ok()


# Listing functions


def listing(server: MCPServer, prefix: str, function: Any, **options: Any) -> None:
    def read(key: str) -> str:
        return key

    server.resource(f"{prefix}://{{key}}", name=prefix, list=function, **options)(read)


def made(prefix: str, *keys: Any) -> list[Resource]:
    return [Resource(uri=f"{prefix}://{key}", name=str(key)) for key in keys]


@pytest.mark.usefixtures("pages_of_two")
def test_registered_resources_come_first_and_then_each_listing():
    server = MCPServer("test")
    add(server, "a", only="resources")
    add(server, "b", only="resources")
    add(server, "c", only="resources")
    listing(server, "two", lambda: made("two", 1, 2, 3))
    listing(server, "one", lambda: made("one", 1))
    listing(server, "three", lambda: made("three"))
    listing(server, "zzz", lambda: made("zzz", 1, 2))
    assert pages(client_of(server), "resources/list") == [
        ["x://a", "x://b"],
        ["x://c"],
        ["one://1"],
        [],
        ["two://1", "two://2"],
        ["two://3"],
        ["zzz://1", "zzz://2"],
    ]


def test_listings_alone():
    server = MCPServer("test")
    listing(server, "one", lambda: made("one", 1))
    assert pages(client_of(server), "resources/list") == [["one://1"]]


def all_sorted() -> list[Resource]:
    return made("it", "a", "b", "c", "d", "e")


def all_unsorted() -> list[Resource]:
    return made("it", "e", "a", "d", "c", "b")


def as_generator() -> Iterator[Resource]:
    yield from made("it", "a", "b", "c", "d", "e")


def as_links() -> list[Any]:
    return [resource_link(f"it://{key}", name=key) for key in "abcde"]


async def asynchronous() -> list[Resource]:
    return made("it", "a", "b", "c", "d", "e")


def for_context(ctx: Context) -> list[Resource]:
    assert ctx.protocol_version
    return made("it", "a", "b", "c", "d", "e")


def paged(after: str | None) -> list[Resource]:
    keys = [key for key in "abcde" if after is None or f"it://{key}" > after]
    return made("it", *keys)


def paged_with_default(ctx: Context, after: str | None = None) -> Iterator[Resource]:
    yield from paged(after)


def paged_from_empty(after: str = "") -> list[Resource]:
    return paged(after or None)


def paged_backwards(after: str | None = None) -> list[Resource]:
    keys = [key for key in "edcba" if after is None or f"it://{key}" < after]
    return made("it", *keys)


async def paged_asynchronously(after: str | None = None) -> list[Resource]:
    return paged(after)


def without_end(after: str | None = None) -> Iterator[Resource]:
    number = 0 if after is None else int(after.removeprefix("it://")) + 1
    while True:
        yield Resource(uri=f"it://{number}", name="n")
        number += 1


@pytest.mark.django_db
@pytest.mark.usefixtures("pages_of_two")
@pytest.mark.parametrize("revision", [LEGACY[0], MODERN])
@pytest.mark.parametrize(
    "function",
    [
        all_sorted,
        all_unsorted,
        as_generator,
        as_links,
        asynchronous,
        for_context,
        paged,
        paged_with_default,
        paged_from_empty,
        paged_asynchronously,
    ],
    ids=lambda function: function.__name__,
)
def test_a_listing_is_cut_into_pages(function, revision):
    server = MCPServer("test")
    listing(server, "it", function)
    assert pages(client_of(server, revision), "resources/list") == [
        ["it://a", "it://b"],
        ["it://c", "it://d"],
        ["it://e"],
    ]


@pytest.mark.usefixtures("pages_of_two")
def test_a_listing_with_after_has_its_own_order():
    server = MCPServer("test")
    listing(server, "it", paged_backwards)
    assert pages(client_of(server), "resources/list") == [
        ["it://e", "it://d"],
        ["it://c", "it://b"],
        ["it://a"],
    ]


@pytest.mark.usefixtures("pages_of_two")
def test_a_listing_with_after_is_read_no_further_than_the_page():
    server = MCPServer("test")
    listing(server, "it", without_end)
    client = client_of(server)
    result = client.request("resources/list").result
    result = client.request("resources/list", cursor=result["nextCursor"]).result
    assert [item["uri"] for item in result["resources"]] == ["it://2", "it://3"]


@pytest.mark.usefixtures("pages_of_two")
@pytest.mark.parametrize("with_after", [True, False])
def test_a_cursor_into_a_listing_stays_right_when_rows_come_and_go(with_after):
    rows = ["a", "c", "e", "g"]

    def everything() -> list[Resource]:
        return made("it", *rows)

    def following(after: str | None = None) -> list[Resource]:
        keys = [key for key in sorted(rows) if after is None or f"it://{key}" > after]
        return made("it", *keys)

    server = MCPServer("test")
    listing(server, "it", following if with_after else everything)
    client = client_of(server)
    first = client.request("resources/list").result
    assert [item["uri"] for item in first["resources"]] == ["it://a", "it://c"]
    rows[:] = ["b", "d", "e", "f", "g"]
    second = client.request("resources/list", cursor=first["nextCursor"]).result
    assert [item["uri"] for item in second["resources"]] == ["it://d", "it://e"]
    rows[:] = ["f"]
    third = client.request("resources/list", cursor=second["nextCursor"]).result
    assert [item["uri"] for item in third["resources"]] == ["it://f"]
    assert "nextCursor" not in third


def test_a_cursor_into_a_listing_that_is_gone_is_invalid():
    server = MCPServer("test")
    listing(server, "it", all_sorted)
    with override_settings(DJANGO_MCP={**settings.DJANGO_MCP, "PAGE_SIZE": 2}):
        following = client_of(server).request("resources/list").result["nextCursor"]
    client_of(full("a")).request("resources/list", cursor=following).assert_error(
        -32602, "Invalid cursor"
    )


@pytest.mark.django_db
@pytest.mark.parametrize("revision", REVISIONS)
def test_what_is_listed_has_the_fields_of_the_revision(revision):
    def listed() -> list[Any]:
        link = resource_link("it://a", name="a", title="A", mime_type="text/plain", size=3)
        return [link]

    server = MCPServer("test")
    listing(server, "it", listed)
    (item,) = client_of(server, revision).list_resources()
    expected = {"uri": "it://a", "name": "a", "mimeType": "text/plain", "size": 3}
    assert item == (expected if revision == LEGACY[0] else {**expected, "title": "A"})


def test_the_template_of_a_listing_is_a_template_still():
    server = MCPServer("test")
    listing(server, "it", all_sorted)
    client = client_of(server)
    assert pages(client, "resources/templates/list") == [["it://{key}"]]
    assert client.read("it://a").text == "a"


@pytest.mark.parametrize(
    "function",
    [
        lambda page: [],
        lambda after, more: [],
        lambda after: [],
    ],
    ids=["another parameter", "one more", "a required after that takes no null"],
)
def test_a_listing_takes_after_and_a_context_and_nothing_else(function):
    function.__annotations__ = dict.fromkeys(["page", "after", "more"], str)
    with pytest.raises(RegistrationError, match=r"takes a Context and `after: str \| None`"):
        listing(MCPServer("test"), "it", function)


def test_a_bug_in_a_listing_is_a_bug(caplog):
    def broken() -> list[Resource]:
        raise KeyError("a secret")

    def not_resources() -> list[Any]:
        return [{"uri": "it://a"}]

    for function in (broken, not_resources):
        server = MCPServer("test")
        listing(server, "it", function)
        answer = client_of(server).request("resources/list").assert_error(-32603, "Internal error")
        assert "secret" not in str(answer.message)
    assert "a secret" in caplog.text
