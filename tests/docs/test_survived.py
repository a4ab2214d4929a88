"""What the table of faults names exists: each test, by its own name."""

from __future__ import annotations

import ast
import re

import pytest

from .markdown import ROOT

NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def named() -> list[tuple[str, str]]:
    text = (ROOT / "docs" / "explanation" / "faults.md").read_text()
    return sorted(set(NAMED.findall(text)))


def test_there_are_some():
    assert len(named()) > 50


@pytest.mark.parametrize(("path", "name"), named())
def test_the_test_exists(path, name):
    tree = ast.parse((ROOT / path).read_text())
    functions = [
        each for each in tree.body if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    assert name in [each.name for each in functions]
