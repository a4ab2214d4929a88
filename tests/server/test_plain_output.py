"""What tools return that has no structure, an explicit schema or a form of its own."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, Literal, NoReturn

import pytest
from django.db import models
from mcp_types import CallToolResult, TextContent
from pydantic import BaseModel

from django_mcp import RegistrationError, ToolError, content
from tests.server.support import (
    LEGACY,
    MODERN,
    call,
    client_of,
    describe_tool,
    returning,
    serve_tool,
)


class Status(models.TextChoices):
    OPEN = "open", "Still open"


class Person(BaseModel):
    """Somebody."""

    id: int | None
    username: str


@dataclass
class Point:
    x: int
    y: int = 0


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    name: str


BOB = {"id": 1, "username": "bob"}


BLOCK = content.text("block")
UNSTRUCTURED: dict[str, tuple[Any, Any, list[str]]] = {
    "str": (str, "text", ["text"]),
    "empty str": (str, "", [""]),
    "none": (None, None, []),
    "no annotation": (..., {"a": 1}, ['{"a":1}']),
    "no annotation, text": (..., "text", ["text"]),
    "no annotation, nothing": (..., None, []),
    "no annotation, a date": (..., date(2026, 7, 28), ["2026-07-28"]),
    "no annotation, a model": (..., Person(**BOB), ['{"id":1,"username":"bob"}']),
    "no annotation, a dataclass": (..., Point(1), ['{"x":1,"y":0}']),
    "no annotation, a set": (..., {1}, ["[1]"]),
    "no annotation, a generator": (..., (n for n in range(2)), ["[0,1]"]),
    "anything": (Any, [1, None], ["[1,null]"]),
    "object": (object, 5, ["5"]),
    "optional anything": (Any | None, 5, ["5"]),
    "optional str": (str | None, "text", ["text"]),
    "optional str without a value": (str | None, None, []),
    "choices without annotation": (..., Status.OPEN, ["open"]),
    "block": (TextContent, BLOCK, ["block"]),
    "text or block": (str | TextContent, "text", ["text"]),
    "model or block": (Person | TextContent, Person(**BOB), ['{"id":1,"username":"bob"}']),
    "optional block": (TextContent | None, None, []),
    "list of blocks": (list[TextContent], [BLOCK, BLOCK], ["block", "block"]),
    "tuple of blocks": (tuple[str, TextContent], ("text", BLOCK), ["text", "block"]),
    "sequence of blocks": (Sequence[TextContent], [BLOCK], ["block"]),
    "iterator of blocks": (Iterator[TextContent], iter([BLOCK]), ["block"]),
    "list of blocks and text": (list[TextContent | str], ["text", BLOCK], ["text", "block"]),
    "annotated list of blocks": (Annotated[list[TextContent], "x"], [BLOCK], ["block"]),
    "ready made": (CallToolResult, CallToolResult(content=[BLOCK]), ["block"]),
}


@pytest.mark.parametrize(
    ("annotation", "value", "expected"), UNSTRUCTURED.values(), ids=UNSTRUCTURED
)
def test_text_blocks_and_anything_have_no_structure(annotation, value, expected):
    client = client_of(serve_tool(returning(annotation, value)))
    assert "outputSchema" not in client.list_tools()[0]
    answer = client.tool("it").assert_ok()
    assert "structuredContent" not in answer.result
    assert [block["text"] for block in answer.result["content"]] == expected
    assert answer.result["isError"] is False


def test_a_function_that_never_returns_has_no_structure():
    def refuse() -> NoReturn:
        raise ToolError("no")

    assert "outputSchema" not in describe_tool(refuse)
    call(refuse).assert_failed("no")


def test_structure_can_be_declined():
    client = client_of(serve_tool(returning(Person, BOB), output_schema=False))
    assert "outputSchema" not in client.list_tools()[0]
    answer = client.tool("it").assert_ok()
    assert answer.structured is None
    assert json.loads(answer.text) == BOB


EXPLICIT = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}


@pytest.mark.django_db
@pytest.mark.parametrize("revision", [*LEGACY[1:], MODERN])
@pytest.mark.parametrize("annotation", [dict[str, Any], Person, Dog | Person])
def test_an_explicit_schema_is_shown_and_results_keep_to_it(annotation, revision):
    client = client_of(serve_tool(returning(annotation, BOB), output_schema=EXPLICIT), revision)
    assert client.list_tools()[0]["outputSchema"] == EXPLICIT
    client.tool("it").assert_structured(BOB)


@pytest.mark.django_db
def test_an_explicit_schema_that_is_no_objects_is_wrapped_with_its_results():
    schema = {"type": "array", "items": {"type": "integer"}}
    client = client_of(serve_tool(returning(list[int], [1]), output_schema=schema), LEGACY[2])
    assert client.list_tools()[0]["outputSchema"]["properties"] == {"result": schema}
    client.tool("it").assert_structured({"result": [1]})
    client = client_of(serve_tool(returning(list[int], [1]), output_schema=schema))
    assert client.list_tools()[0]["outputSchema"] == schema
    client.tool("it").assert_structured([1])


@pytest.mark.parametrize("annotation", [..., Any, str, TextContent])
def test_an_explicit_schema_needs_structure(annotation):
    with pytest.raises(RegistrationError, match="output_schema= needs a return annotation"):
        serve_tool(returning(annotation, None), output_schema=EXPLICIT)


@pytest.mark.django_db
@pytest.mark.parametrize("revision", [*LEGACY, MODERN])
def test_a_result_may_be_ready_made(revision):
    made = CallToolResult(
        content=[BLOCK, content.resource_link("x://1", name="One")],
        structured_content={"id": 1, "none": None},
        is_error=True,
        _meta={"example.com/a": None},
    )
    client = client_of(
        serve_tool(returning(CallToolResult, made), output_schema=EXPLICIT), revision
    )
    result = client.tool("it").result
    assert result["isError"] is True
    assert result["_meta"]["example.com/a"] is None
    assert result["content"][0] == {"type": "text", "text": "block"}
    if revision == LEGACY[0]:
        assert result["content"][1] == {"type": "text", "text": "One: x://1"}
        assert "structuredContent" not in result
    else:
        assert result["content"][1]["type"] == "resource_link"
        assert result["structuredContent"] == {"id": 1, "none": None}
        assert client.list_tools()[0]["outputSchema"] == EXPLICIT


@pytest.mark.django_db
def test_a_ready_made_list_is_wrapped_for_legacy_revisions():
    made = CallToolResult(content=[], structured_content=[1])
    tool = returning(CallToolResult, made)
    client_of(serve_tool(tool), LEGACY[2]).tool("it").assert_structured({"result": [1]})
    call(tool).assert_structured([1])


def test_a_ready_made_result_goes_before_the_annotation():
    made = CallToolResult(content=[BLOCK], is_error=True)
    call(returning(Person, made)).assert_failed("block")


def test_what_the_model_may_know_is_a_result_and_the_rest_is_not(caplog):
    def fail(kind: str) -> int:
        if kind == "tool":
            raise ToolError("Ask for fewer.")
        raise ValueError("a secret")

    call(fail, kind="tool").assert_failed("Ask for fewer.")
    assert call(fail, kind="tool").text == "Ask for fewer."
    answer = call(fail, kind="bug").assert_failed("The tool failed.")
    assert "secret" not in str(answer.message)
    (record,) = (each for each in caplog.records if each.name == "django_mcp.server")
    assert record.name == "django_mcp.server"
    assert "tools/call 'it'" in record.getMessage()
    assert "a secret" in str(record.exc_info[1])


def test_a_tool_that_takes_too_long_says_so():
    async def wait() -> int:
        await asyncio.Event().wait()
        return 5

    client = client_of(serve_tool(wait, timeout=0.05))
    client.tool("it").assert_failed("did not finish within 0.05 seconds")


def test_nothing_waits_for_a_tool_that_was_in_time():
    def timers() -> int:
        return sum(isinstance(each, threading.Timer) for each in threading.enumerate())

    before = timers()
    client_of(serve_tool(timers, timeout=600)).tool("it").assert_structured(before + 1)
    end = time.monotonic() + 20
    while timers() > before:
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_time_out_inside_of_a_tool_is_its_own(caplog):
    async def ask() -> int:
        raise TimeoutError("a secret")

    answer = client_of(serve_tool(ask, timeout=60)).tool("it").assert_failed("The tool failed.")
    assert "secret" not in str(answer.message)
    assert "a secret" in caplog.text


def test_a_generator_runs_to_its_end_and_its_errors_are_the_functions_own():
    def give(kind: str = "") -> Iterator[int]:
        yield 1
        if kind == "tool":
            raise ToolError("Stop here.")
        if kind == "bug":
            raise ValueError("a secret")

    call(give).assert_structured([1])
    call(give, kind="tool").assert_failed("Stop here.")
    answer = call(give, kind="bug").assert_failed("The tool failed.")
    assert "secret" not in str(answer.message)


def test_a_coroutine_that_a_decorator_hides_is_named(recwarn):
    async def later() -> int:
        return 5

    def hidden() -> int:
        return later()

    call(hidden).assert_failed("decorator hides that it is asynchronous")
    assert not [each for each in recwarn if "never awaited" in str(each.message)]
