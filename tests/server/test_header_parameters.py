"""``x-mcp-header``: parameters that clients mirror into headers (2026-07-28, server/tools)."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Literal, Optional

import pytest
from pydantic import BaseModel, Field

from django_mcp import RegistrationError
from tests.server.support import (
    assert_valid_schema,
    client_of,
    mirrored,
    serve_tool,
)


class Region(enum.Enum):
    """Where."""

    EAST = "east"
    WEST = "west"


class Level(enum.IntEnum):
    LOW = 1


class Place(BaseModel):
    region: Annotated[str, mirrored("Region")]


class Plain(BaseModel):
    region: str


@dataclass
class Point:
    x: Annotated[int, mirrored("X")]


def taking(annotation: Any, default: Any = ...) -> Any:
    if default is ...:

        def run(region):
            return repr(region)
    else:

        def run(region=default):
            return repr(region)

    run.__annotations__ = {"region": annotation, "return": str}
    return run


ALLOWED: dict[str, tuple[Any, dict[str, Any]]] = {
    "text": (str, {"type": "string"}),
    "integer": (int, {"type": "integer"}),
    "boolean": (bool, {"type": "boolean"}),
    "bounded": (Annotated[int, Field(ge=1)], {"type": "integer", "minimum": 1}),
    "literal": (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
    "one literal": (Literal["a"], {"type": "string", "const": "a"}),
    "date": (date, {"type": "string", "format": "date"}),
    "optional": (str | None, {"type": "string"}),
    "old optional": (Optional[int], {"type": "integer"}),  # noqa: UP045 - the old spelling, too
    "enum": (
        Region,
        {"type": "string", "enum": ["east", "west"], "title": "Region", "description": "Where."},
    ),
    "optional enum": (
        Region | None,
        {"type": "string", "enum": ["east", "west"], "title": "Region", "description": "Where."},
    ),
    "integer enum": (Level, {"type": "integer", "enum": [1], "title": "Level"}),
}


@pytest.mark.parametrize(("annotation", "expected"), ALLOWED.values(), ids=ALLOWED)
def test_a_mirrored_parameter_is_a_plain_primitive(annotation, expected):
    server = serve_tool(taking(Annotated[annotation, mirrored("Region")]))
    schema = client_of(server).list_tools()[0]["inputSchema"]
    assert_valid_schema(schema)
    assert schema["properties"]["region"] == {**expected, "x-mcp-header": "Region"}
    assert schema["required"] == ["region"]
    assert server.find_tool("it").headers == {"Region": ("region",)}


def test_a_default_of_null_is_left_out_with_the_null():
    server = serve_tool(taking(Annotated[Region | None, mirrored("Region")], None))
    properties = client_of(server).list_tools()[0]["inputSchema"]["properties"]
    assert "default" not in properties["region"]
    assert properties["region"]["type"] == "string"
    server = serve_tool(taking(Annotated[str | None, mirrored("Region")], "east"))
    properties = client_of(server).list_tools()[0]["inputSchema"]["properties"]
    assert properties["region"] == {
        "type": "string",
        "default": "east",
        "x-mcp-header": "Region",
    }


def test_a_description_of_the_parameter_goes_before_that_of_its_type():
    function = taking(Annotated[Region, mirrored("Region", description="Mine")])
    properties = client_of(serve_tool(function)).list_tools()[0]["inputSchema"]["properties"]
    assert properties["region"]["description"] == "Mine"


def test_an_annotation_in_the_default_counts_too():
    def run(region: str = mirrored("Region", default="east")) -> str:
        return region

    assert serve_tool(run).find_tool("it").headers == {"Region": ("region",)}


@pytest.mark.parametrize(
    "annotation",
    [
        float,
        float | None,
        Decimal,
        int | str,
        int | str | None,
        list[str],
        dict[str, str],
        Any,
        Plain,
        Plain | None,
        None,
        Literal["a", 1],
    ],
    ids=str,
)
def test_other_types_are_refused(annotation):
    with pytest.raises(RegistrationError, match="run: x-mcp-header: a mirrored parameter must"):
        serve_tool(taking(Annotated[annotation, mirrored("Region")]))


@pytest.mark.parametrize(
    "annotation",
    [
        Place,
        Place | None,
        list[Place],
        dict[str, Place],
        Point,
        list[Annotated[str, mirrored("Region")]],
        dict[str, Annotated[str, mirrored("Region")]],
        Annotated[str, mirrored("Region")] | None,
        Annotated[str, mirrored("Region")] | int,
        tuple[Annotated[str, mirrored("Region")], int],
    ],
    ids=str,
)
def test_what_is_not_reached_through_properties_alone_is_refused(annotation):
    with pytest.raises(RegistrationError, match="only parameters that every call can carry"):
        serve_tool(taking(annotation))


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        "a b",
        "a:b",
        "a_b",
        "a\n",
        "a\r\nb",
        "a,b",
        "größe",
        "(a)",
        "a/b",
        5,
        None,
        True,
        ["a"],
        {"a": 1},
    ],
    ids=repr,
)
def test_a_name_that_is_no_token_or_that_servers_drop_is_refused(name):
    with pytest.raises(RegistrationError, match="is not a header name"):
        serve_tool(taking(Annotated[str, mirrored(name)]))


@pytest.mark.parametrize("name", ["Region", "region", "X-1", "a.b", "!#$%&'*+-.^`|~", "9"])
def test_any_other_token_is_a_name(name):
    assert serve_tool(taking(Annotated[str, mirrored(name)])).find_tool("it").headers == {
        name: ("region",)
    }


def test_a_name_is_used_once_whatever_its_case():
    def run(
        a: Annotated[str, mirrored("Region")], b: Annotated[str, mirrored("REGION")]
    ) -> None: ...

    with pytest.raises(RegistrationError, match="the header 'REGION' is used twice"):
        serve_tool(run)


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"items": {"x-mcp-header": "A", "type": "string"}}}},
        {"properties": {"a": {"type": "number", "x-mcp-header": "A"}}},
        {"properties": {"a": {"oneOf": [{"properties": {"b": {"x-mcp-header": "A"}}}]}}},
        {"x-mcp-header": "A"},
        {"if": {"properties": {"a": {"type": "string", "x-mcp-header": "A"}}}},
        {"patternProperties": {"a": {"type": "string", "x-mcp-header": "A"}}},
        {"$defs": {"a": {"type": "string", "x-mcp-header": "A"}}},
        {"properties": {"a": {"anyOf": [{"type": "string"}], "x-mcp-header": "A"}}},
        {"properties": {"a": {"type": ["string", "null"], "x-mcp-header": "A"}}},
        {"properties": {"a": {"$ref": "#/definitions/a", "x-mcp-header": "A"}}},
        {"properties": {"a": {"$ref": "https://example.com/a", "x-mcp-header": "A"}}},
    ],
    ids=range(11),
)
def test_an_explicit_schema_is_held_to_the_same_rules(schema):
    with pytest.raises(RegistrationError, match="x-mcp-header"):
        serve_tool(lambda: "", input_schema={"type": "object", **schema})


def test_an_explicit_schema_is_sent_with_its_mirrored_parameters_as_they_stand():
    region = {"type": "string", "$ref": "#/$defs/a", "default": None, "x-mcp-header": "Region"}
    schema = {"type": "object", "properties": {"a": region}, "$defs": {"a": {"maxLength": 9}}}
    server = serve_tool(lambda: "", input_schema=schema)
    assert client_of(server).list_tools()[0]["inputSchema"] == schema
    assert server.find_tool("it").headers == {"Region": ("a",)}
