"""Functions that list resources: they fill up the pages that what was registered begins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection
from django.test import override_settings
from mcp_types import Resource
from pydantic import Field

from django_mcp import Context, MCPServer, RegistrationError
from django_mcp.content import resource_link
from tests.server.lists import add, full, pages
from tests.server.support import LEGACY, MODERN, REVISIONS, client_of


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
        ["x://c", "one://1"],
        ["two://1", "two://2"],
        ["two://3", "zzz://1"],
        ["zzz://2"],
    ]


def test_a_server_may_have_nothing_but_a_listing():
    server = MCPServer("test")
    listing(server, "one", lambda: made("one", 1))
    assert pages(client_of(server), "resources/list") == [["one://1"]]


def source(prefix: str, count: int, kind: str) -> Any:
    """A function of one of the kinds that lists ``count`` resources."""
    everything = made(prefix, *range(count))

    def at_once() -> list[Resource]:
        return everything

    def paged(after: str | None = None) -> list[Resource]:
        return [each for each in everything if after is None or each.uri > after]

    async def asynchronous(after: str | None) -> list[Resource]:
        return paged(after)

    return {"at once": at_once, "paged": paged, "asynchronous": asynchronous}[kind]


@pytest.mark.django_db
@pytest.mark.parametrize("revision", [LEGACY[0], MODERN])
@pytest.mark.parametrize("kind", ["at once", "paged", "asynchronous"])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 8, 100])
def test_every_page_but_the_last_is_full_whatever_the_sources(size, kind, revision):
    server = MCPServer("test")
    expected = ["x://a", "x://b"]
    for name in ("a", "b"):
        add(server, name, only="resources")
    # In the order of the templates, which is not that of the URIs.
    for key, prefix, count in (
        ("k", "v", 0),
        ("l", "u", 1),
        ("m", "t", 3),
        ("n", "s", 0),
        ("o", "r", 2),
    ):
        listing(server, key, source(prefix, count, kind))
        expected += [f"{prefix}://{number}" for number in range(count)]
    with override_settings(DJANGO_MCP={**settings.DJANGO_MCP, "PAGE_SIZE": size}):
        walked = pages(client_of(server, revision), "resources/list")
    assert walked == [expected[start : start + size] for start in range(0, 8, size)]


@pytest.mark.usefixtures("pages_of_two")
def test_a_function_runs_only_where_there_is_room_on_the_page():
    ran: list[str] = []

    def listed(prefix: str, *keys: int) -> Any:
        def function() -> list[Resource]:
            ran.append(prefix)
            return made(prefix, *keys)

        return function

    server = MCPServer("test")
    add(server, "a", only="resources")
    add(server, "b", only="resources")
    listing(server, "one", listed("one", 1))
    listing(server, "two", listed("two", 1))
    listing(server, "zzz", listed("zzz"))
    client = client_of(server)
    first = client.request("resources/list").result
    assert ran == []
    second = client.request("resources/list", cursor=first["nextCursor"]).result
    assert ran == ["one", "two"]
    # The page is full, and what the last function yields nobody knows: an empty page, for once.
    third = client.request("resources/list", cursor=second["nextCursor"]).result
    assert ran == ["one", "two", "zzz"]
    assert third["resources"] == []
    assert "nextCursor" not in third


@pytest.mark.usefixtures("pages_of_two")
@pytest.mark.parametrize(
    ("hidden", "expected"),
    [
        ("", [["x://a", "x://b"], ["x://c", "it://1"], ["it://2"]]),
        ("ab", [[], ["x://c", "it://1"], ["it://2"]]),
        ("c", [["x://a", "x://b"], ["it://1", "it://2"]]),
        ("abc", [[], ["it://1", "it://2"]]),
    ],
)
def test_what_is_hidden_leaves_its_room_on_the_last_page_to_the_listings(hidden, expected):
    server = MCPServer("test")
    for name in "abc":
        permission = (lambda user: False) if name in hidden else None
        server.resource(f"x://{name}", name=name, permission=permission)(lambda: "")
    listing(server, "it", lambda: made("it", 1, 2))
    assert pages(client_of(server), "resources/list") == expected


def test_a_hidden_listing_between_others_is_passed_over():
    server = MCPServer("test")
    listing(server, "a", lambda: made("a", 1))
    listing(server, "b", lambda: made("b", 1), permission=lambda user: False)
    listing(server, "c", lambda: made("c", 1))
    assert pages(client_of(server), "resources/list") == [["a://1", "c://1"]]


@pytest.mark.django_db
def test_permissions_after_an_asynchronous_listing_may_touch_the_database():
    def nobody_yet(user: Any) -> bool:
        return not User.objects.exists()

    server = MCPServer("test")
    listing(server, "a", source("a", 1, "asynchronous"))
    listing(server, "b", source("b", 1, "at once"), permission=nobody_yet)
    assert pages(client_of(server), "resources/list") == [["a://0", "b://0"]]


@pytest.mark.django_db
def test_each_function_on_a_page_has_a_savepoint_of_its_own():
    seen: list[list[str]] = []

    def listed() -> list[Resource]:
        seen.append(list(connection.savepoint_ids))
        return []

    outside = list(connection.savepoint_ids)
    server = MCPServer("test")
    listing(server, "a", listed)
    listing(server, "b", listed)
    assert pages(client_of(server), "resources/list") == [[]]
    assert [len(ids) - len(outside) for ids in seen] == [1, 1]
    assert seen[0] != seen[1]


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


def test_a_cursor_that_the_listing_function_cannot_read_is_invalid():
    """It was made before the function was changed."""

    def lettered(after: str | None = None) -> list[Any]:
        return made("it", "abc", "def", "ghi")

    def numbered(after: Annotated[str | None, Field(pattern=r"^it://\d+$")] = None) -> list[Any]:
        return made("it", "1", "2", "3")

    before, server = MCPServer("test"), MCPServer("test")
    listing(before, "it", lettered)
    listing(server, "it", numbered)
    with override_settings(DJANGO_MCP={**settings.DJANGO_MCP, "PAGE_SIZE": 2}):
        following = client_of(before).request("resources/list").result["nextCursor"]
    answer = client_of(server).request("resources/list", cursor=following)
    answer.assert_error(-32602, "Invalid cursor")


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
    with pytest.raises(RegistrationError, match=r"Request, and `after: str \| None`"):
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


@pytest.mark.parametrize("working", ["a", "z"])
def test_a_bug_in_one_listing_fails_the_page_that_it_is_on(working, caplog):
    def broken() -> list[Resource]:
        raise KeyError("a secret")

    server = MCPServer("test")
    add(server, "a", only="resources")
    listing(server, working, lambda: made(working, 1))
    listing(server, "it", broken)
    client_of(server).request("resources/list").assert_error(-32603, "Internal error")
    assert "a secret" in caplog.text
