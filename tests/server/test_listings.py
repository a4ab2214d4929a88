"""Functions that list resources: cut into pages, after what was registered."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.test import override_settings
from mcp_types import Resource

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
