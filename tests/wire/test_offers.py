"""What a site offers, and to whom."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.support.caller import Caller
from tests.support.messages import IDS, REVISIONS

from . import site
from .test_errors import assert_error


def items_of(message: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what a list lists."""
    return next(value for value in message["result"].values() if isinstance(value, list))


def add(caller: Caller, **arguments: Any) -> dict[str, Any]:
    return caller.call("tools/call", name="add", arguments=arguments).result


@pytest.mark.parametrize("revision", REVISIONS)
def test_unknown_arguments_are_refused_as_the_schema_says(caller, revision):
    """As a result that the model can read, naming the argument."""
    member = caller.in_revision(revision)
    for tool in member.call("tools/list").result["tools"]:
        assert tool["inputSchema"]["additionalProperties"] is False, tool["name"]
    result = add(member, a=1, zzz=2)
    assert result["isError"] is True
    assert "zzz" in result["content"][0]["text"]
    assert site.calls == []


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_setting_makes_it_lenient(caller, settings, revision):
    """Some clients inject arguments of their own."""
    settings.DJANGO_MCP = settings.DJANGO_MCP | {"STRICT_ARGUMENTS": False}
    member = caller.in_revision(revision)
    for tool in member.call("tools/list").result["tools"]:
        assert tool["inputSchema"].get("additionalProperties") is not False, tool["name"]
    assert add(member, a=1, zzz=2)["isError"] is False


@pytest.mark.parametrize("revision", REVISIONS)
def test_an_argument_that_does_not_fit_is_told_to_the_model(caller, revision):
    """A tool result with ``isError``, naming the argument."""
    member = caller.in_revision(revision)
    for arguments in ({}, {"a": "x"}, {"a": 1.5}, {"a": None}, {"a": [], "b": 2}):
        result = add(member, **arguments)
        assert result["isError"] is True
        assert "a:" in result["content"][0]["text"]
    assert site.calls == []


@pytest.mark.parametrize("revision", REVISIONS)
def test_what_a_tool_says_reaches_the_model_and_a_bug_does_not(caller, revision):
    member = caller.in_revision(revision)
    told = member.call("tools/call", name="fail", arguments={"kind": "tool"}).result
    assert (told["isError"], told["content"][0]["text"]) == (True, "told so")
    missing = member.call("tools/call", name="fail", arguments={"kind": "missing"}).result
    assert (missing["isError"], missing["content"][0]["text"]) == (True, "No such note.")
    for request_id in IDS:
        for name, arguments in (("fail", {"kind": "bug"}), ("afail", {})):
            answer = member.call("tools/call", request_id, name=name, arguments=arguments)
            assert (type(answer.message["id"]), answer.message["id"]) == (
                type(request_id),
                request_id,
            )
            (block,) = answer.result["content"]
            assert answer.result["isError"] is True
            assert re.fullmatch(r"The tool failed\. \(reference [0-9a-f]{8}\)", block["text"])


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_tool_that_takes_too_long_is_given_up(caller, revision):
    result = caller.in_revision(revision).call("tools/call", name="hangs").result
    assert result["isError"] is True
    assert "0.05 seconds" in result["content"][0]["text"]


@pytest.mark.parametrize("revision", REVISIONS)
def test_arguments_may_be_left_out(caller, revision):
    """Traps 10 of the conformance notes: ``arguments`` and ``params`` may be absent."""
    member = caller.in_revision(revision)
    assert member.call("tools/call", name="point").result["isError"] is False
    assert member.call("prompts/get", name="show").result["messages"]


@pytest.mark.parametrize("revision", REVISIONS)
def test_an_enumeration_and_a_list_come_as_their_types(caller, revision):
    result = caller.in_revision(revision).call(
        "tools/call", name="paint", arguments={"colour": "red", "shades": [1, 2]}
    )
    assert result.result["content"][0]["text"] == "red [1, 2]"


@pytest.mark.parametrize("revision", REVISIONS)
def test_lists_have_one_order(caller, revision):
    member = caller.in_revision(revision)
    for method in ("tools/list", "prompts/list", "resources/templates/list"):
        bodies = {member.call(method).body for _ in range(3)}
        assert len(bodies) == 1
        keys = [
            item.get("uriTemplate", item["name"]) for item in items_of(json.loads(bodies.pop()))
        ]
        assert keys == sorted(keys)


def test_a_permission_hides_and_refuses_alike(entrance, django_user_model):
    """What the caller may not use does not exist for them."""
    django_user_model.objects.create_superuser("root", password="x")
    django_user_model.objects.create_user("anna")
    root, anna = (
        Caller(entrance, "/guarded/mcp").with_headers(X_User=name) for name in ("root", "anna")
    )
    counts = {
        "tools/list": 2,
        "resources/list": 1,
        "resources/templates/list": 1,
        "prompts/list": 1,
    }
    for method, seen_by_root in counts.items():
        seen = [len(items_of(each.call(method).message)) for each in (root, anna)]
        assert seen == [seen_by_root, seen_by_root - 1]
    attempts = {
        "tools/call": ({"name": "closed_tool"}, {"name": "closed_tooo"}),
        "prompts/get": ({"name": "closed_prompt"}, {"name": "closed_prommm"}),
        "resources/read": ({"uri": "locker://page"}, {"uri": "lockeR://page"}),
    }
    for method, (hidden, missing) in attempts.items():
        refused, unknown = (anna.call(method, **each) for each in (hidden, missing))
        assert refused.status == unknown.status == 200
        assert refused.error["code"] == unknown.error["code"]
        names = (*hidden.values(), *missing.values())
        same = [
            str(each.error).replace(names[0], "").replace(names[1], "")
            for each in (refused, unknown)
        ]
        assert same[0] == same[1]
    assert site.calls == []
    assert root.call("tools/call", name="closed_tool").result["isError"] is False


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    ("ref", "argument", "hidden"),
    [
        ({"type": "ref/prompt", "name": "closed_prompt"}, "word", "xyzzy"),
        ({"type": "ref/resource", "uri": "locker://{key}"}, "key", "xyzzy"),
    ],
)
def test_completions_are_behind_the_permission_of_what_they_complete(
    entrance, django_user_model, revision, ref, argument, hidden
):
    """MUST, no disclosure; a hidden prompt is as good as unknown."""
    django_user_model.objects.create_superuser("root", password="x")
    django_user_model.objects.create_user("anna")
    root, anna = (
        Caller(entrance, "/guarded/mcp").with_headers(X_User=name).in_revision(revision)
        for name in ("root", "anna")
    )
    asked = {"ref": ref, "argument": {"name": argument, "value": ""}}
    assert root.call("completion/complete", **asked).result["completion"]["values"] == [hidden]
    answer = anna.call("completion/complete", **asked)
    assert_error(answer, 200, -32602, 1)
    assert hidden not in answer.body.decode()


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    ("ref", "argument"),
    [
        ({"type": "ref/prompt", "name": "greet"}, {"name": "name", "value": "many"}),
        ({"type": "ref/resource", "uri": "note://{number}"}, {"name": "number", "value": ""}),
    ],
    ids=["a list", "a ready-made completion"],
)
def test_there_are_at_most_a_hundred_completions(caller, revision, ref, argument):
    member = caller.in_revision(revision)
    completion = member.call("completion/complete", ref=ref, argument=argument).result["completion"]
    assert len(completion["values"]) == 100
    assert completion["hasMore"] is True


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_arguments_chosen_already_are_known_from_2025_06_18_on(caller, revision):
    completion = caller.in_revision(revision).call(
        "completion/complete",
        ref={"type": "ref/prompt", "name": "greet"},
        argument={"name": "name", "value": "x"},
        context={"arguments": {"tone": "warm"}},
    )
    tone = None if revision == "2025-03-26" else "warm"
    assert completion.result["completion"]["values"] == [f"x-{tone}"]


@pytest.mark.parametrize(
    ("ref", "argument", "expected"),
    [
        ({"type": "ref/prompt", "name": "greet"}, "tone", ["warm", "cold"]),
        ({"type": "ref/prompt", "name": "greet"}, "no such", []),
        ({"type": "ref/prompt", "name": "none"}, "x", -32602),
        ({"type": "ref/resource", "uri": "none://{x}"}, "x", -32602),
        ({"type": "ref/tool", "name": "add"}, "a", -32602),
        ({"type": "ref/prompt"}, "x", -32602),
        ("greet", "x", -32602),
    ],
)
def test_what_can_be_completed(caller, ref, argument, expected):
    """2025-11-25, completion, "Error Handling"."""
    answer = caller.call("completion/complete", ref=ref, argument={"name": argument, "value": ""})
    if isinstance(expected, int):
        assert_error(answer, 200, expected, 1)
    else:
        assert answer.result["completion"]["values"] == expected
