"""Google's ``Args:`` section, split off a docstring."""

from __future__ import annotations

import inspect

import pytest

from django_mcp.server.functions import Docstring, parse_docstring


def parsed(text: str) -> Docstring:
    return parse_docstring(inspect.cleandoc(text))


@pytest.mark.parametrize("heading", ["Args", "Arguments", "Parameters"])
def test_the_section_is_split_off_and_the_rest_kept(heading):
    read = parsed(f"""
        Find orders.

        More about it.

        {heading}:
            query: What to look for.
            limit: How many.

        Returns:
            The orders.

        Raises:
            ValueError: Never.
    """)
    assert read.parameters == {"query": "What to look for.", "limit": "How many."}
    assert read.text == (
        "Find orders.\n\nMore about it.\n\n"
        "Returns:\n    The orders.\n\nRaises:\n    ValueError: Never."
    )


@pytest.mark.parametrize(
    ("entry", "description"),
    [
        ("a: Text.", "Text."),
        ("a (int): Text.", "Text."),
        ("a (int, optional): Text.", "Text."),
        ("a (dict[str, int]): Text.", "Text."),
        ("a (tuple(int), default (1)): Text.", "Text."),
        ("a (Callable[[int], str]): Text.", "Text."),
        ("a : Text.", "Text."),
        ("a: Text: with a colon.", "Text: with a colon."),
        ("a: See (this): it helps.", "See (this): it helps."),
        ("a:\n        Text below.", "Text below."),
        ("a: Text,\n        over lines,\n        and more.", "Text, over lines, and more."),
        ("a: Text.\n\n        Another paragraph.", "Text. Another paragraph."),
        ("a: One of:\n        x: this\n        y: that", "One of: x: this y: that"),
        ("*a: Text.", "Text."),
        ("**a: Text.", "Text."),
    ],
)
def test_an_entry_may_be_written_in_many_ways(entry, description):
    read = parsed(f"Find.\n\nArgs:\n    {entry}\n    b: Last.")
    assert read.parameters == {"a": description, "b": "Last."}
    assert read.text == "Find."


@pytest.mark.parametrize(
    "text",
    ["", "Find.", "Find.\n\nArgs are: many", "Say Args: here", "    Args:\n    not a heading"],
)
def test_a_docstring_without_a_section_is_the_description(text):
    read = parse_docstring(text)
    assert read.text == text.strip()
    assert read.parameters == {}


def test_a_section_may_come_first_or_be_empty():
    assert parse_docstring("Args:\n    a: Text.") == Docstring("", {"a": "Text."})
    assert parse_docstring("Find.\n\nArgs:\n") == Docstring("Find.", {})
    assert parse_docstring("Find.\n\nArgs:\n    no entries here") == Docstring("Find.", {})
