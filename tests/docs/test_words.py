"""Pages use the words of MCP, HTTP and Django; a few others are explained before they are used."""

from __future__ import annotations

import re

import pytest

from .markdown import pages, text_of

ARCHITECTURE = "docs/explanation/architecture.md"
OF_THE_CODE = re.compile(
    r"\b(doors?|lanes?|gates?|errands?|calls? speaks?|has spoken|quiet calls?)\b", re.IGNORECASE
)
EXPLAINED = re.compile(r"\b(ledgers?|doorbells?|peers?)\b", re.IGNORECASE)
"""What the page of the architecture explains, at its beginning, and no other page uses."""
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def prose(page: str) -> str:
    return CODE.sub("", text_of(page))


@pytest.mark.parametrize("page", pages())
def test_no_page_uses_private_words(page: str):
    assert OF_THE_CODE.findall(prose(page)) == []
    if page != ARCHITECTURE:
        assert EXPLAINED.findall(prose(page)) == []


def test_what_is_explained_is_explained_first():
    text = text_of(ARCHITECTURE)
    for word in ("ledger", "doorbell", "peer"):
        assert text.lower().index(word) == text.index(f"**{word}**") + 2
