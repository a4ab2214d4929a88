"""Every process describes the same things in the same words, so that lists can be cached."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.server.support import input_schema

PROGRAM = '''
from __future__ import annotations

import enum
import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from django_mcp import MCPServer


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"
    GREEN = "green"


class Address(BaseModel):
    street: str
    color: Color = Color.RED


class Order(BaseModel):
    lines: list[Address] = []
    tags: set[str] = {"x", "y", "z", "w"}
    colors: frozenset[Color] = frozenset(Color)


server = MCPServer("test")


@server.tool
def search(
    order: Order,
    address: Address | None = None,
    tags: set[str] = {"b", "a", "d", "c"},
    colors: set[Color] = set(Color),
    status: Literal["open", "shipped"] = "open",
    union: int | str | list[Order] | dict[str, Color] = 5,
) -> dict[str, Order | Address]:
    """Search."""


@server.prompt
def hello(a: int, b: str = "", c: Color = Color.RED) -> str:
    return ""


for name in "zyxabc":
    server.resource(f"x://{name}", name=name)(lambda: "")

print(json.dumps([
    [each.description for each in kind]
    for kind in (server.tools, server.prompts, server.resources)
]))
'''


@pytest.mark.slow
@pytest.mark.processes
def test_processes_with_different_hashes_agree():
    described = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
            timeout=60,
        ).stdout
        for seed in ("0", "1", "2", "3")
    }
    assert len(described) == 1
    assert '["a", "b", "c", "d"]' in described.pop()


def test_describing_twice_gives_the_same():
    def search(tags: set[str] = frozenset("dbca"), limit: int = 5) -> str:
        return ""

    assert input_schema(search) == input_schema(search)
    assert input_schema(search)["properties"]["tags"]["default"] == ["a", "b", "c", "d"]
