"""What may be offered at all, and how it is described."""

from __future__ import annotations

import enum
import select
import socket
from typing import Annotated, Any, Literal

import jsonschema
import pytest
from pydantic import BaseModel, Field

from django_mcp import MCPServer, RegistrationError
from django_mcp.testing import MCPClient
from tests.support.messages import LEGACY, MODERN, REVISIONS

from . import site


class Size(enum.Enum):
    """A choice."""

    SMALL = "s"


class Box(BaseModel):
    """A model with a mirrored field."""

    label: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Label"})]


def mirrored(kind: Any, header: str = "X") -> Any:
    return Annotated[kind, Field(json_schema_extra={"x-mcp-header": header})]


UNCARRIED = {
    "underscore": mirrored(str, "With_Underscore"),
    "space": mirrored(str, "With Space"),
    "nothing": mirrored(str, ""),
    "line break": mirrored(str, "Line\nbreak"),
    "not ASCII": mirrored(str, "Ümlaut"),
    "number": mirrored(float),
    "list": mirrored(list[str]),
    "dict": mirrored(dict[str, str]),
    "two types": mirrored(int | str),
    "model": mirrored(Box),
    "inside a list": list[Box],
    "inside an option": Box | None,
}


@pytest.mark.parametrize("annotation", UNCARRIED.values(), ids=UNCARRIED.keys())
def test_a_header_that_no_call_could_carry_is_refused_at_registration(annotation):

    def tool(a):
        return a

    tool.__annotations__ = {"a": annotation, "return": str}
    with pytest.raises(RegistrationError):
        MCPServer("x").tool(tool)


def test_a_header_may_be_used_once():
    """Without regard to case."""

    def tool(a, b):
        return a + b

    tool.__annotations__ = {
        "a": mirrored(str, "Region"),
        "b": mirrored(str, "region"),
        "return": str,
    }
    with pytest.raises(RegistrationError, match="twice"):
        MCPServer("x").tool(tool)


@pytest.mark.parametrize(
    "kind", [str, int, bool, str | None, Size, Size | None, Literal["a", "b"]], ids=str
)
def test_a_mirrored_parameter_is_flat(db, kind):
    """Neither ``anyOf`` nor ``$ref``."""

    def tool(a):
        return str(a)

    tool.__annotations__ = {"a": mirrored(kind), "return": str}
    server = MCPServer("x")
    server.tool(tool)
    (described,) = MCPClient(server, revision=MODERN).list_tools()
    parameter = described["inputSchema"]["properties"]["a"]
    assert parameter["type"] in ("string", "integer", "boolean")
    assert not {"anyOf", "$ref", "oneOf", "allOf"} & set(parameter)


def test_a_reference_to_the_network_is_not_followed(db):
    """2026-07-28, basic/index, "$ref Resolution": MUST NOT."""
    server = MCPServer("x")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/schema.json"

        @server.tool(
            input_schema={"type": "object", "properties": {"a": {"$ref": url}}},
            output_schema={"type": "object", "additionalProperties": {"$ref": url}},
        )
        def tool(a: int) -> dict[str, int]:
            """Refer to somewhere else."""
            return {"a": a}

        for revision in REVISIONS:
            client = MCPClient(server, revision=revision)
            assert url in str(client.list_tools())
            client.tool("tool", a=1).assert_ok()
        assert select.select([listener], [], [], 0)[0] == []


@pytest.mark.parametrize("revision", LEGACY[1:])
def test_a_schema_of_the_sites_own_describes_what_is_sent(db, revision):
    """Whether the content is wrapped is one decision, not two."""
    server = MCPServer("x")
    own = {"type": "object", "oneOf": [{"required": ["x"]}, {"required": ["label"]}]}

    @server.tool(output_schema=own)
    def tool() -> site.Point | Box:
        """Return either."""
        return site.Point(x=1)

    client = MCPClient(server, revision=revision)
    (described,) = client.list_tools()
    assert described["outputSchema"] == own
    assert client.tool("tool").structured == {"x": 1, "y": 0}


@pytest.mark.parametrize("revision", LEGACY[1:])
def test_a_schema_that_is_wrapped_still_resolves(db, revision):
    """References into the schema itself move with it."""
    server = MCPServer("x")

    class Tree(BaseModel):
        """A recursive model."""

        children: list[Tree] = []

    Tree.model_rebuild(_types_namespace={"Tree": Tree})

    def tool():
        return [Tree(children=[Tree()])]

    tool.__annotations__ = {"return": list[Tree]}
    server.tool(tool)
    client = MCPClient(server, revision=revision)
    (described,) = client.list_tools()
    jsonschema.validate(client.tool("tool").structured, described["outputSchema"])
