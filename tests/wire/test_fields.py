"""Everything that can be sent, in every revision: the validator looks on, these tests count."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from tests.support.answers import strict_json
from tests.support.messages import LEGACY, MODERN, REVISIONS

LISTS = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}
LATER = {
    "title": "2025-06-18",
    "_meta": "2025-06-18",
    "outputSchema": "2025-06-18",
    "icons": "2025-11-25",
}


def named(items: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(item for item in items if item["name"] == name)


@pytest.mark.parametrize("revision", REVISIONS)
def test_each_list_has_what_the_revision_knows_and_nothing_else(caller, revision):
    member = caller.in_revision(revision)
    for method, key in LISTS.items():
        fields = {name for item in member.call(method).result[key] for name in item}
        for field, since in LATER.items():
            if field != "outputSchema" or method == "tools/list":
                assert (field in fields) == (revision >= since), (method, field)


@pytest.mark.parametrize("revision", REVISIONS)
def test_content_of_every_kind_is_fitted(caller, revision):
    """2025-03-26 has no resource_link; the model sees the link as text."""
    member = caller.in_revision(revision)
    blocks = member.call("tools/call", name="everything").result["content"]
    kinds = [block["type"] for block in blocks]
    link = "text" if revision == "2025-03-26" else "resource_link"
    assert kinds == ["text", "image", "audio", link, "resource", "resource"]
    assert "note://1" in str(blocks[3])
    assert ("_meta" in blocks[0]) == (revision >= "2025-06-18")
    assert ("lastModified" in blocks[0]["annotations"]) == (revision >= "2025-06-18")
    messages = member.call("prompts/get", name="show").result["messages"]
    assert [message["content"]["type"] for message in messages] == kinds


@pytest.mark.parametrize("revision", REVISIONS)
def test_server_info_is_fitted(caller, revision):
    if revision == MODERN:
        result = caller.call("server/discover").result
        info = result["_meta"]["io.modelcontextprotocol/serverInfo"]
    else:
        info = caller.initialize(revision).result["serverInfo"]
    assert info["name"] == "wire"
    assert info["version"] == "1.2"
    assert ("title" in info) == (revision >= "2025-06-18")
    assert ("icons" in info) == (revision >= "2025-11-25")


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    ("tool", "arguments", "value", "is_object"),
    [
        ("point", {}, {"x": 1, "y": 0}, True),
        ("points", {}, [{"x": 1, "y": 0}, {"x": 2, "y": 0}], False),
        ("maybe", {"there": True}, {"x": 1, "y": 0}, False),
        ("maybe", {"there": False}, None, False),
        ("add", {"a": 2}, 3, False),
    ],
)
def test_structured_content_is_an_object_where_it_must_be(
    caller, revision, tool, arguments, value, is_object
):
    """Through 2025-11-25 an object, wrapped if need be, as its schema says."""
    member = caller.in_revision(revision)
    schema = named(member.call("tools/list").result["tools"], tool).get("outputSchema")
    result = member.call("tools/call", name=tool, arguments=arguments).result
    assert result["isError"] is False
    if revision == "2025-03-26":
        assert schema is None
        assert "structuredContent" not in result
        return
    wrapped = revision in LEGACY and not is_object
    assert result["structuredContent"] == ({"result": value} if wrapped else value)
    assert revision == MODERN or schema["type"] == "object"
    jsonschema.validate(result["structuredContent"], schema)


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_ready_made_result_is_fitted_too(caller, revision):
    result = caller.in_revision(revision).call("tools/call", name="ready_made").result
    expected = {
        "2025-03-26": None,
        "2025-06-18": {"result": [1, 2]},
        "2025-11-25": {"result": [1, 2]},
        MODERN: [1, 2],
    }
    assert result.get("structuredContent") == expected[revision]


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_number_that_json_does_not_have_is_not_sent(caller, revision):
    """RFC 8259, section 6: neither NaN nor the infinities; no client could read the answer."""
    member = caller.in_revision(revision)
    for text in ("nan", "inf", "-inf"):
        for tool in ("number", "numbers_in_a_dict"):
            answer = member.call("tools/call", name=tool, arguments={"text": text})
            assert answer.message["id"] == 1
            if not answer.result["isError"]:
                strict_json(answer.result["content"][0]["text"])


@pytest.mark.parametrize("revision", REVISIONS)
def test_resources_are_read_in_every_revision(caller, revision):
    member = caller.in_revision(revision)
    for uri in ("page://front", "page://pixel", "note://7"):
        (contents,) = member.call("resources/read", uri=uri).result["contents"]
        assert contents["uri"] == uri
        assert ("blob" in contents) == (uri == "page://pixel")
