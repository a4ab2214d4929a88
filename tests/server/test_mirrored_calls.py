"""Calls whose parameters are mirrored: headers are held against the body."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from django.db import models

from tests.server.support import (
    LEGACY,
    MODERN,
    client_of,
    mirrored,
    serve_tool,
)


class Status(models.TextChoices):
    OPEN = "open", "Open"


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
    client_of(serve_tool(run)).tool("it", **arguments).assert_ok().assert_contains(text)


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
    client = client_of(serve_tool(run))
    client.headers = {f"Mcp-Param-{name}": value for name, value in headers.items()}
    answer = client.tool("it", **arguments)
    answer.assert_error(-32020, f"Header mismatch: Mcp-Param-{next(iter(headers))}")
    answer.assert_error(-32020, message)
    assert answer.http.status_code == 400


@pytest.mark.parametrize("value", ["5", "5.0", "=?base64?NQ==?="])
def test_integers_are_compared_as_numbers(value):
    client = client_of(serve_tool(run))
    client.headers = {"Mcp-Param-Number": value}
    client.tool("it", number=5).assert_ok()


def test_a_header_that_is_missing_is_a_mismatch():
    client = client_of(serve_tool(run))
    mirror = client._mirrored
    client._mirrored = lambda message: {
        name: value for name, value in mirror(message).items() if "Param" not in name
    }
    client.tool("it", region="east").assert_error(-32020, "Mcp-Param-Region is missing")
    client.tool("it", region=None).assert_ok()


def test_headers_are_compared_before_arguments_are_judged():
    client = client_of(serve_tool(run))
    client.headers = {"Mcp-Param-Number": "6"}
    client.tool("it", number="x").assert_error(-32020, "does not match")


def test_headers_of_no_parameter_are_ignored():
    client = client_of(serve_tool(run))
    client.headers = {"Mcp-Param-Other": "x"}
    client.tool("it", region="east").assert_ok()


@pytest.mark.django_db
@pytest.mark.parametrize("revision", LEGACY)
def test_legacy_revisions_do_not_mirror(revision):
    client = client_of(serve_tool(run), revision)
    client.headers = {"Mcp-Param-Region": "west"}
    client.tool("it", region="east").assert_ok().assert_contains("'east'")


def test_modern_is_the_revision_that_does():
    assert client_of(serve_tool(run), MODERN).tool("it", region="east").assert_ok()


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
    server = serve_tool(nested, input_schema=NESTED)
    assert server.find_tool("it").headers == {"Region": ("place", "region")}
    client = client_of(server)
    client.tool("it", place={"region": "east"}).assert_ok()
    client.headers = {"Mcp-Param-Region": "west"}
    client.tool("it", place={"region": "east"}).assert_error(-32020, "place.region")
    client.headers = {}
    client.tool("it", place={}).assert_ok()
    client.tool("it", place={"region": None}).assert_ok()
