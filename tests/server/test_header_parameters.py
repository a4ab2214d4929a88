"""``x-mcp-header``: parameters that clients mirror into headers (2026-07-28, server/tools)."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Literal, Optional

import pytest
from django.db import models
from pydantic import BaseModel, Field

from django_mcp import MCPServer, RegistrationError
from tests.server.support import LEGACY, MODERN, assert_valid_schema, client_of


def mirrored(name: Any, **more: Any) -> Any:
    return Field(json_schema_extra={"x-mcp-header": name}, **more)


class Region(enum.Enum):
    """Where."""

    EAST = "east"
    WEST = "west"


class Level(enum.IntEnum):
    LOW = 1


class Status(models.TextChoices):
    OPEN = "open", "Open"


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


def serve(function: Any, **options: Any) -> MCPServer:
    server = MCPServer("test")
    server.tool(name="run", **options)(function)
    return server


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
    server = serve(taking(Annotated[annotation, mirrored("Region")]))
    schema = client_of(server).list_tools()[0]["inputSchema"]
    assert_valid_schema(schema)
    assert schema["properties"]["region"] == {**expected, "x-mcp-header": "Region"}
    assert schema["required"] == ["region"]
    assert server.find_tool("run").headers == {"Region": ("region",)}


def test_a_default_of_null_is_left_out_with_the_null():
    server = serve(taking(Annotated[Region | None, mirrored("Region")], None))
    properties = client_of(server).list_tools()[0]["inputSchema"]["properties"]
    assert "default" not in properties["region"]
    assert properties["region"]["type"] == "string"
    server = serve(taking(Annotated[str | None, mirrored("Region")], "east"))
    properties = client_of(server).list_tools()[0]["inputSchema"]["properties"]
    assert properties["region"] == {
        "type": "string",
        "default": "east",
        "x-mcp-header": "Region",
    }


def test_a_description_of_the_parameter_goes_before_that_of_its_type():
    function = taking(Annotated[Region, mirrored("Region", description="Mine")])
    properties = client_of(serve(function)).list_tools()[0]["inputSchema"]["properties"]
    assert properties["region"]["description"] == "Mine"


def test_an_annotation_in_the_default_counts_too():
    def run(region: str = mirrored("Region", default="east")) -> str:
        return region

    assert serve(run).find_tool("run").headers == {"Region": ("region",)}


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
        serve(taking(Annotated[annotation, mirrored("Region")]))


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
        serve(taking(annotation))


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
        serve(taking(Annotated[str, mirrored(name)]))


@pytest.mark.parametrize("name", ["Region", "region", "X-1", "a.b", "!#$%&'*+-.^`|~", "9"])
def test_any_other_token_is_a_name(name):
    assert serve(taking(Annotated[str, mirrored(name)])).find_tool("run").headers == {
        name: ("region",)
    }


def test_a_name_is_used_once_whatever_its_case():
    def run(
        a: Annotated[str, mirrored("Region")], b: Annotated[str, mirrored("REGION")]
    ) -> None: ...

    with pytest.raises(RegistrationError, match="the header 'REGION' is used twice"):
        serve(run)


NESTED = {
    "type": "object",
    "properties": {
        "place": {
            "type": "object",
            "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
        }
    },
}


def nested(place: dict[str, Any]) -> str:
    return repr(place)


def test_a_nested_property_of_an_explicit_schema_may_be_mirrored():
    server = serve(nested, input_schema=NESTED)
    assert server.find_tool("run").headers == {"Region": ("place", "region")}
    client = client_of(server)
    client.tool("run", place={"region": "east"}).assert_ok()
    client.headers = {"Mcp-Param-Region": "west"}
    client.tool("run", place={"region": "east"}).assert_error(-32020, "place.region")
    client.headers = {}
    client.tool("run", place={}).assert_ok()
    client.tool("run", place={"region": None}).assert_ok()


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
    ],
    ids=range(7),
)
def test_an_explicit_schema_is_held_to_the_same_rules(schema):
    with pytest.raises(RegistrationError, match="x-mcp-header"):
        serve(lambda: "", input_schema={"type": "object", **schema})


def run(
    region: Annotated[str | None, mirrored("Region")] = None,
    number: Annotated[int | None, mirrored("Number")] = None,
    flag: Annotated[bool | None, mirrored("Flag")] = None,
    status: Annotated[Status | None, mirrored("Status")] = None,
) -> str:
    return f"{region!r} {number!r} {flag!r} {status!r}"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "None None None None"),
        ({"region": "east", "number": 5, "flag": True}, "'east' 5 True None"),
        ({"region": None, "number": None, "flag": None, "status": None}, "None None None None"),
        ({"region": "größe", "number": -1, "flag": False}, "'größe' -1 False None"),
        ({"region": " padded "}, "' padded ' None None None"),
        ({"region": ""}, "'' None None None"),
        ({"region": "a\nb"}, "'a\\nb' None None None"),
        ({"region": "=?base64?x?="}, "'=?base64?x?=' None None None"),
        ({"number": 2**53 - 1}, f"None {2**53 - 1} None None"),
        ({"number": "5"}, "None 5 None None"),
        ({"status": "open"}, "None None None Status.OPEN"),
    ],
    ids=repr,
)
def test_a_client_that_mirrors_is_served(arguments, text):
    client_of(serve(run)).tool("run", **arguments).assert_ok().assert_contains(text)


@pytest.mark.parametrize(
    ("arguments", "headers", "message"),
    [
        ({"region": "east"}, {"Region": "west"}, "does not match the value of region"),
        ({"region": "east"}, {"Region": "East"}, "does not match"),
        ({"region": "east"}, {"Region": ""}, "does not match"),
        ({"region": "east"}, {"Region": "=?base64?d2VzdA==?="}, "does not match"),
        ({"region": "east"}, {"Region": "=?base64?!?="}, "is not valid Base64"),
        ({"region": "east"}, {"Region": "gr\xf6\xdfe"}, "invalid characters"),
        ({}, {"Region": "east"}, "is set, but the body has no value for region"),
        ({"region": None}, {"Region": "east"}, "is set, but the body has no value"),
        ({"number": 5}, {"Number": "6"}, "does not match"),
        ({"number": 5}, {"Number": "five"}, "does not match"),
        ({"number": 5}, {"Number": "NaN"}, "does not match"),
        ({"flag": True}, {"Flag": "True"}, "does not match"),
        ({"flag": True}, {"Flag": "1"}, "does not match"),
    ],
    ids=repr,
)
def test_a_header_that_says_something_else_is_a_mismatch(arguments, headers, message):
    client = client_of(serve(run))
    client.headers = {f"Mcp-Param-{name}": value for name, value in headers.items()}
    answer = client.tool("run", **arguments)
    answer.assert_error(-32020, f"Header mismatch: Mcp-Param-{next(iter(headers))}")
    answer.assert_error(-32020, message)
    assert answer.http.status_code == 400


@pytest.mark.parametrize("value", ["5", "5.0", "=?base64?NQ==?="])
def test_integers_are_compared_as_numbers(value):
    client = client_of(serve(run))
    client.headers = {"Mcp-Param-Number": value}
    client.tool("run", number=5).assert_ok()


def test_a_header_that_is_missing_is_a_mismatch():
    client = client_of(serve(run))
    mirror = client._mirrored
    client._mirrored = lambda message: {
        name: value for name, value in mirror(message).items() if "Param" not in name
    }
    client.tool("run", region="east").assert_error(-32020, "Mcp-Param-Region is missing")
    client.tool("run", region=None).assert_ok()


def test_headers_are_compared_before_arguments_are_judged():
    client = client_of(serve(run))
    client.headers = {"Mcp-Param-Number": "6"}
    client.tool("run", number="x").assert_error(-32020, "does not match")


def test_headers_of_no_parameter_are_ignored():
    client = client_of(serve(run))
    client.headers = {"Mcp-Param-Other": "x"}
    client.tool("run", region="east").assert_ok()


@pytest.mark.django_db
@pytest.mark.parametrize("revision", LEGACY)
def test_legacy_revisions_do_not_mirror(revision):
    client = client_of(serve(run), revision)
    client.headers = {"Mcp-Param-Region": "west"}
    client.tool("run", region="east").assert_ok().assert_contains("'east'")


def test_modern_is_the_revision_that_does():
    assert client_of(serve(run), MODERN).tool("run", region="east").assert_ok()
