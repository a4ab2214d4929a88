"""What clients make of the schemas in ``tools/list``: each has failed on something, somewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, RootModel

from django_mcp import MCPServer
from tests.server.shapes import Address, Color, Filters, Node, Order, Page, Point, Status
from tests.server.support import REVISIONS, assert_valid_schema, call, client_of, mirrored

pytestmark = pytest.mark.django_db


class Card(BaseModel):
    kind: Literal["card"]
    number: str


class Invoice(BaseModel):
    kind: Literal["invoice"]
    to: Address


class Tags(RootModel[list[Color]]):
    pass


Payment = Annotated[Card | Invoice, Field(discriminator="kind")]
server = MCPServer("shop")


@server.tool
def find_orders(
    status: Status,
    color: Color | None = None,
    since: date | None = None,
    address: Address | None = None,
    filters: Filters | None = None,
    tags: Tags | None = None,
    page: int = 1,
) -> Page[Order]:
    """Find orders."""
    return Page[Order](items=[])


@server.tool
def pay(order: int, payment: Payment, address: Address = Address(street="Kerk 1")) -> Payment:  # noqa: B008
    """Pay for an order."""
    return payment


@server.tool
def draw(points: list[Point], colors: dict[str, Color], size: Literal["s", None] = None) -> str:
    """Draw something."""
    return size or "any"


@server.tool
def plant(tree: Node) -> Node:
    """Plant a tree, which is the only thing here that contains itself."""
    return tree


def tools(revision: str = REVISIONS[-1]) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in client_of(server, revision).list_tools()}


def schemas(*, of: str = "inputSchema") -> dict[str, Any]:
    return {name: each[of] for name, each in tools().items() if of in each}


def parts(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        yield schema
    for each in schema.values() if isinstance(schema, dict) else schema:
        if isinstance(each, (dict, list)):
            yield from parts(each)


@pytest.mark.parametrize("revision", REVISIONS)
def test_gemini_cli_copilot_cli_and_cursor_fail_on_references(revision):
    """Gemini CLI, Copilot CLI, Cursor 3.4."""
    for name, tool in tools(revision).items():
        for schema in (tool["inputSchema"], tool.get("outputSchema", {})):
            assert ("$ref" in json.dumps(schema)) == (name == "plant" and schema != {})
            assert_valid_schema(schema)


def test_openai_agents_refuses_references_and_nulls_beside_a_type():
    """The strict mode of openai-agents refused five tools of one server."""
    for name in ("find_orders", "pay", "draw"):
        for part in parts(schemas()[name]):
            assert "$ref" not in part
            assert {"type": "null"} not in part.get("anyOf", [])
            assert part.get("default", ...) is not None


def test_llama_index_makes_an_object_of_an_enum_that_is_referred_to():
    properties = schemas()["find_orders"]["properties"]
    assert properties["status"]["type"] == properties["color"]["type"] == "string"
    assert properties["color"]["enum"] == ["red", "blue"]


def test_crewai_sends_null_for_a_reference_with_a_default():
    answer = client_of(server).tool(
        "pay", order=1, payment={"kind": "card", "number": "1"}, address=None
    )
    answer.assert_ok()
    assert schemas()["pay"]["properties"]["address"]["default"] == {
        "street": "Kerk 1",
        "city": "Leuven",
    }


@pytest.mark.parametrize("of", ["inputSchema", "outputSchema"])
def test_the_gemini_adapter_of_langchain_makes_a_string_of_one_of_several(of):
    """It does so where there is oneOf; and the discriminator's mapping leads nowhere."""
    schema = schemas(of=of)["pay"]
    payment = schema["properties"]["payment"] if of == "inputSchema" else schema
    assert [each["title"] for each in payment["anyOf"]] == ["Card", "Invoice"]
    assert not {"oneOf", "discriminator"} & payment.keys()


def test_claude_code_takes_no_alternatives_at_the_root_of_any_tool():
    """One such tool, and the interface of the model refuses all tools of the session."""
    for schema in schemas().values():
        assert schema["type"] == "object"
        assert not {"anyOf", "oneOf", "allOf", "not", "enum"} & schema.keys()


def test_a_choice_that_may_be_left_out_has_a_type():
    assert schemas()["draw"]["properties"]["size"] == {"type": "string", "const": "s"}


def test_cursor_and_claude_code_may_say_null_in_their_own_ways():
    client = client_of(server)
    for sent in (None, "", "null"):
        client.tool("find_orders", status="open", color=sent, since=sent).assert_ok()


def test_a_model_that_is_used_twice_is_mirrored_by_neither():
    """Where it is copied to, each call could carry it, but not where it is defined."""

    class Place(BaseModel):
        region: Annotated[str, mirrored("Region")]

    def go(place, other=None): ...

    go.__annotations__ = {"place": Place, "other": Place | None}
    with pytest.raises(TypeError, match="only parameters that every call can carry"):
        MCPServer("test").tool(go)


def test_what_is_shown_is_what_is_taken():
    def take(order: Order, payment: Payment) -> str:
        return payment.kind

    sent = {"lines": [{"sku": "a"}], "address": None}
    assert call(take, order=sent, payment={"kind": "card", "number": "1"}).text == "card"
    call(take, order=sent, payment={"number": "1"}).assert_failed("payment: ")
