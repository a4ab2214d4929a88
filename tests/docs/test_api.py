"""The page that is made from docstrings names everything that is public; names link elsewhere."""

from __future__ import annotations

import re
from importlib import import_module

import pytest

from .markdown import ROOT, text_of

PAGE = "docs/reference/api.md"
DIRECTIVE = re.compile(r"^\.\. (?:auto|py:)(\w+):: ([\w.]+)(.*\n(?:   .*\n)*)", re.MULTILINE)


def named() -> set[str]:
    """Return the names that the page has, with those of modules that it takes as a whole."""
    found, module = set(), ""
    page = re.sub(r"^\.\. currentmodule:: (\S+)$", r".. automodule:: \1", text_of(PAGE), flags=re.M)
    for kind, name, options in DIRECTIVE.findall(page):
        if kind == "module":
            module = name
            if ":members:" in options:
                found |= {f"{module}.{each}" for each in import_module(module).__all__}
        else:
            found.add(name if name.startswith("django_mcp.") else f"{module}.{name}")
    return found


@pytest.mark.parametrize(
    "module",
    ["", ".auth", ".content", ".testing", ".client", ".partitions"],
    ids=lambda name: name or "top",
)
def test_every_public_name_is_on_the_page(module: str):
    name = f"django_mcp{module}"
    assert {f"{name}.{each}" for each in import_module(name).__all__} <= named()


@pytest.mark.parametrize("inventory", ["django", "python"])
def test_names_of_other_references_are_listed_once_and_in_order(inventory: str):
    lines = (ROOT / f"docs/inventories/{inventory}.txt").read_text(encoding="utf-8").splitlines()
    names = [tuple(line.split(" ")[:2]) for line in lines]
    assert names == sorted(set(names))
    assert all(re.fullmatch(r"\S+ py:\w+ 1 \S+ -", line) for line in lines)
