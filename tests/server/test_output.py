"""What tools return: structured content and its schema, revision by revision, or plain content."""

from __future__ import annotations

import asyncio
import enum
import json
import logging
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, NoReturn, TypeVar
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.db import models
from mcp_types import CallToolResult, TextContent
from pydantic import AnyUrl, BaseModel, ConfigDict, Field, JsonValue, RootModel, computed_field
from typing_extensions import TypeAliasType, TypedDict

from django_mcp import RegistrationError, ToolError, content
from tests.server.support import (
    LEGACY,
    MODERN,
    accepts,
    assert_valid_schema,
    call,
    client_of,
    describe_tool,
    serve_tool,
)


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Status(models.TextChoices):
    OPEN = "open", "Still open"


class Person(BaseModel):
    """Somebody."""

    id: int | None
    username: str


class Aliased(BaseModel):
    model_config = ConfigDict(populate_by_name=True)

    order_id: Annotated[int, Field(alias="orderId")]


class Computed(BaseModel):
    price: Decimal
    hidden: Annotated[int, Field(exclude=True)] = 1

    @computed_field
    def double(self) -> Decimal:
        return self.price * 2


class Defaulted(BaseModel):
    home: AnyUrl = "https://example.com/"
    price: Decimal = 0
    color: Color = "red"


class Node(BaseModel):
    value: int
    children: list[Node] = []


@dataclass
class Point:
    x: int
    y: int = 0


class Filters(TypedDict):
    status: Literal["open"]


class Pair(NamedTuple):
    key: str
    value: int


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    name: str


class Puppy(Dog):
    age: int = 0


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"


T = TypeVar("T")


class Page(BaseModel, Generic[T]):
    items: list[T]


class Numbers(RootModel[list[int]]):
    pass


Anything = TypeAliasType("Anything", "dict[str, Anything] | int")
OrderId = NewType("OrderId", int)

BOB = {"id": 1, "username": "bob"}
NOON = datetime(2026, 7, 28, 12, tzinfo=UTC)

# annotation, what the function returns, the structured content
STRUCTURED: dict[str, tuple[Any, Any, Any]] = {
    "model": (Person, Person(**BOB), BOB),
    "dict as model": (Person, BOB, BOB),
    "Django model as model": (Person, User(id=1, username="bob"), BOB),
    "any object as model": (Person, SimpleNamespace(**BOB), BOB),
    "list of Django models": (list[Person], [User(id=1, username="bob")], [BOB]),
    "aliased model": (Aliased, Aliased(order_id=1), {"orderId": 1}),
    "computed field": (Computed, Computed(price="1.50"), {"price": "1.50", "double": "3.00"}),
    "defaults that were never validated": (
        Defaulted,
        Defaulted(),
        {"home": "https://example.com/", "price": "0", "color": "red"},
    ),
    "recursive model": (
        Node,
        Node(value=1, children=[Node(value=2)]),
        {"value": 1, "children": [{"value": 2, "children": []}]},
    ),
    "subclass": (Dog, Puppy(name="Rex", age=1), {"kind": "dog", "name": "Rex"}),
    "generic": (Page[Dog], Page[Dog](items=[]), {"items": []}),
    "root model": (Numbers, Numbers([1, 2]), [1, 2]),
    "dataclass": (Point, Point(1), {"x": 1, "y": 0}),
    "dict as dataclass": (Point, {"x": 1}, {"x": 1, "y": 0}),
    "typed dict": (Filters, {"status": "open"}, {"status": "open"}),
    "named tuple": (Pair, Pair("a", 1), ["a", 1]),
    "dict": (dict, {"a": [1, None]}, {"a": [1, None]}),
    "dict of anything": (
        dict[str, Any],
        {"at": NOON, "price": Decimal("1.5"), "tags": {"a"}, "who": Person(**BOB)},
        {"at": "2026-07-28T12:00:00Z", "price": "1.5", "tags": ["a"], "who": BOB},
    ),
    "integer keys": (dict[int, str], {1: "a"}, {"1": "a"}),
    "mapping": (Mapping[str, int], {"a": 1}, {"a": 1}),
    "list": (list[int], [1, 2], [1, 2]),
    "empty list": (list[Person], [], []),
    "tuple as list": (list[int], (1, 2), [1, 2]),
    "plain list": (list, [1, "a"], [1, "a"]),
    "sequence": (Sequence[Person], [BOB], [BOB]),
    "tuple": (tuple[int, str], (1, "a"), [1, "a"]),
    "set": (set[int], {1}, [1]),
    "frozen set": (frozenset[str], frozenset("a"), ["a"]),
    "int": (int, 5, 5),
    "huge int": (int, 2**80, 2**80),
    "float": (float, 1.5, 1.5),
    "bool": (bool, False, False),
    "decimal": (Decimal, Decimal("1.50"), "1.50"),
    "date": (date, date(2026, 7, 28), "2026-07-28"),
    "datetime": (datetime, NOON, "2026-07-28T12:00:00Z"),
    "duration": (timedelta, timedelta(hours=1), "PT1H"),
    "uuid": (UUID, UUID(int=1), str(UUID(int=1))),
    "enum": (Color, Color.RED, "red"),
    "choices": (Status, Status.OPEN, "open"),
    "value of choices": (Status, "open", "open"),
    "literal": (Literal["a", "b"], "a", "a"),
    "new type": (OrderId, 5, 5),
    "annotated": (Annotated[int, Field(ge=1)], 5, 5),
    "optional": (Person | None, Person(**BOB), BOB),
    "optional without a value": (Person | None, None, None),
    "union": (Dog | Cat, Cat(), {"kind": "cat"}),
    "any JSON": (JsonValue, {"a": [None]}, {"a": [None]}),
    "text or number": (int | str, "a", "a"),
    "text or model": (str | Person, Person(**BOB), BOB),
    "text, number or nothing": (str | int | None, None, None),
    "recursive alias": (Anything, {"a": {"b": 1}}, {"a": {"b": 1}}),
    "generator": (Generator[int, None, None], (n for n in range(3)), [0, 1, 2]),
    "iterator": (Iterator[Person], iter([BOB]), [BOB]),
    "iterable": (Iterable[Person], [User(id=1, username="bob")], [BOB]),
}


def returning(annotation: Any, value: Any) -> Any:
    def give():
        return value() if callable(value) else value

    give.__annotations__ = {} if annotation is ... else {"return": annotation}
    return give


@pytest.mark.parametrize(("annotation", "value", "expected"), STRUCTURED.values(), ids=STRUCTURED)
def test_a_value_is_structured_as_its_annotation_promises(annotation, value, expected):
    client = client_of(serve_tool(returning(annotation, value)))
    schema = client.list_tools()[0]["outputSchema"]
    assert_valid_schema(schema)
    answer = client.tool("it").assert_ok().assert_structured(expected)
    assert accepts(schema, answer.structured)
    assert "structuredContent" in answer.result
    (block,) = answer.result["content"]
    assert json.loads(block["text"]) == expected


ONCE = ("generator", "iterator")
"""Values that can be read but once."""

MAYBE_OBJECTS = {"optional", "union", "recursive alias", "text or model", "any JSON"}
"""The schema does not say that every value is an object, so that every value is wrapped."""


@pytest.mark.django_db
@pytest.mark.parametrize("revision", LEGACY[1:])
@pytest.mark.parametrize("case", [name for name in STRUCTURED if name not in ONCE])
def test_legacy_revisions_get_an_object(case, revision):
    annotation, value, expected = STRUCTURED[case]
    client = client_of(serve_tool(returning(annotation, value)), revision)
    schema = client.list_tools()[0]["outputSchema"]
    assert_valid_schema(schema)
    assert schema["type"] == "object"
    answer = client.tool("it").assert_ok()
    assert isinstance(answer.structured, dict)
    assert accepts(schema, answer.structured)
    bare = isinstance(expected, dict) and case not in MAYBE_OBJECTS
    assert answer.structured == (expected if bare else {"result": expected})
    assert json.loads(answer.text) == expected


@pytest.mark.django_db
def test_the_oldest_revision_gets_text_alone():
    client = client_of(serve_tool(returning(Person, BOB)), LEGACY[0])
    assert "outputSchema" not in client.list_tools()[0]
    answer = client.tool("it").assert_ok()
    assert "structuredContent" not in answer.result
    assert json.loads(answer.text) == BOB


def test_constraints_and_descriptions_of_the_annotation_are_described():
    described = describe_tool(returning(Annotated[int, Field(ge=1, description="How many")], 5))
    assert described["outputSchema"] == {
        "type": "integer",
        "minimum": 1,
        "description": "How many",
    }
    schema = describe_tool(returning(list[Person], []))["outputSchema"]
    assert schema["items"] == {"$ref": "#/$defs/Person"}
    assert schema["$defs"]["Person"]["description"] == "Somebody."


def test_a_recursive_schema_has_its_type_at_the_root():
    schema = describe_tool(returning(Node, None))["outputSchema"]
    assert schema["type"] == "object"
    assert not accepts(schema, {"value": 1, "children": [{"value": "x"}]})


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
    answer = call(fail, kind="bug").assert_error(-32603, "Internal error")
    assert "secret" not in str(answer.message)
    (record,) = (each for each in caplog.records if each.levelno >= logging.ERROR)
    assert record.name == "django_mcp.server"
    assert "tools/call 'it'" in record.getMessage()
    assert "a secret" in str(record.exc_info[1])


def test_a_tool_that_takes_too_long_says_so():
    async def wait() -> int:
        await asyncio.Event().wait()
        return 5

    client = client_of(serve_tool(wait, timeout=0.05))
    client.tool("it").assert_failed("did not finish within 0.05 seconds")


def test_a_time_out_inside_of_a_tool_is_its_own(caplog):
    async def ask() -> int:
        raise TimeoutError("a secret")

    answer = client_of(serve_tool(ask, timeout=60)).tool("it").assert_error(-32603)
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
    answer = call(give, kind="bug").assert_error(-32603, "Internal error")
    assert "secret" not in str(answer.message)


def test_a_coroutine_that_a_decorator_hides_is_named(recwarn):
    async def later() -> int:
        return 5

    def hidden() -> int:
        return later()

    call(hidden).assert_error(-32603, "decorator hides that it is asynchronous")
    assert not [each for each in recwarn if "never awaited" in str(each.message)]
