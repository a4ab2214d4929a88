"""Lists: their order, their pages, and cursors that stay right while things come and go."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from django.test import override_settings

from django_mcp import MCPServer
from tests.server.lists import KEYS, METHODS, add, full, names, pages
from tests.server.support import REVISIONS, client_of


@pytest.mark.parametrize("method", METHODS)
def test_a_list_is_in_the_order_of_its_names_whatever_that_of_registration(method):
    client = client_of(full("c", "a", "b", "B", "a-1", "a_1"))
    (listed,) = pages(client, method)
    assert listed == sorted(listed)
    assert set(names([listed])) == {"B", "a", "a-1", "a_1", "b", "c"}
    again = client_of(full("B", "a_1", "a-1", "c", "b", "a"))
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
    server = MCPServer("test")
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


def following(server: MCPServer, method: str = "tools/list", **rotated: Any) -> str:
    """Return the cursor of a list's second page."""
    with override_settings(**rotated):
        found: str = client_of(server).request(method).result["nextCursor"]
    return found


def reader(user: Any) -> bool:
    """Let nobody use it."""
    return False


@pytest.mark.usefixtures("pages_of_two")
def test_a_cursor_does_not_tell_what_it_names():
    """Nor how long that is, nor, at another list, where in the alphabet it comes."""
    cursors = []
    for hidden in ("b", "become_administrator_of_the_shop"):
        server = full("a", "c", "d")
        server.tool(name=hidden, permission=reader)(lambda: "")
        cursors.append(following(server))
        client_of(server).request("prompts/list", cursor=cursors[-1]).assert_error(
            -32602, "Invalid cursor"
        )
    assert len(cursors[0]) == len(cursors[1])
    for text in cursors:
        read = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        assert b"registered" not in read
        assert b"become" not in read


@pytest.mark.usefixtures("pages_of_two")
@pytest.mark.parametrize("method", METHODS)
def test_a_cursor_is_good_for_its_list_alone(method):
    client = client_of(full("a", "b", "c"))
    for other in METHODS:
        found = client.request(method, cursor=following(client.server, other))
        if other == method:
            found.assert_ok()
        else:
            found.assert_error(-32602, "Invalid cursor")
    elsewhere = MCPServer("elsewhere")
    for name in ("a", "b", "c"):
        add(elsewhere, name)
    text = following(elsewhere, method)
    client.request(method, cursor=text).assert_error(-32602, "Invalid cursor")


@pytest.mark.usefixtures("pages_of_two")
def test_a_cursor_is_good_for_as_long_as_its_key_is_known():
    """At every worker: nothing but the key and the place makes it."""
    client = client_of(full("a", "b", "c"))
    text = following(client.server, SECRET_KEY="old")
    assert text == following(client.server, SECRET_KEY="old")
    client.request("tools/list", cursor=text).assert_error(-32602, "Invalid cursor")
    with override_settings(SECRET_KEY="new", SECRET_KEY_FALLBACKS=["other", "old"]):
        rest = client.request("tools/list", cursor=text).result
        assert [tool["name"] for tool in rest["tools"]] == ["c"]
        renewed = client.request("tools/list").result["nextCursor"]
    assert renewed == following(client.server, SECRET_KEY="new") != text


@pytest.mark.usefixtures("pages_of_two")
def test_a_cursor_that_was_changed_is_invalid():
    client = client_of(full("a", "b", "c"))
    text = following(client.server)
    for place in range(0, len(text) - 1, 7):
        changed = text[:place] + ("A" if text[place] != "A" else "B") + text[place + 1 :]
        client.request("tools/list", cursor=changed).assert_error(-32602, "Invalid cursor")


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
