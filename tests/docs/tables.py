"""Reads the tables of reference pages."""

from __future__ import annotations

import ast
import re
from typing import Any

from .markdown import text_of

_CODE = re.compile(r"`([^`]+)`")


def section(page: str, heading: str) -> str:
    """Return the part of a page under a heading, up to the next of its level or above."""
    level = heading.split(" ", maxsplit=1)[0]
    _, found, rest = text_of(page).partition(f"\n{heading}\n")
    assert found, f"{page} has no heading {heading!r}"
    return re.split(rf"^#{{1,{len(level)}}} ", rest, maxsplit=1, flags=re.MULTILINE)[0]


def rows(text: str) -> list[list[str]]:
    """Return the cells of all tables in a text, without their heads."""
    found: list[list[str]] = []
    above = ""
    for line in text.splitlines():
        if line.startswith("|") and above.startswith("|") and not _is_rule(line):
            found.append(_cells(line))
        above = line
    return found


def first_column(text: str) -> list[str]:
    """Return what stands in the first cells: names, without their marks of code."""
    return [code(row[0]) for row in rows(text)]


def code(cell: str) -> str:
    """Return what a cell has in marks of code, or the cell."""
    match = _CODE.fullmatch(cell)
    return match[1] if match else cell


def literal(cell: str) -> Any:
    """Return the value of a cell that holds a literal of Python."""
    return ast.literal_eval(code(cell))


def _cells(line: str) -> list[str]:
    # A bar within marks of code separates nothing.
    shielded = _CODE.sub(lambda match: match[0].replace("|", "\0"), line)
    return [cell.strip().replace("\0", "|") for cell in shielded.strip().strip("|").split("|")]


def _is_rule(line: str) -> bool:
    return set(line) <= set("|-: ")
