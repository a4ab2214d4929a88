"""What a check has to say, and how grave it is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

#: Of what a server has sent, in one finding.
SHOWN_CHARACTERS: Final = 200

_UNPRINTABLE: Final = re.compile(r"[^\x20-\x7e\xa0-\u2027\u202f-\u2065\u2070-\ud7ff\uf900-\ufffd]+")


class Level(StrEnum):
    """How grave a finding is."""

    GOOD = "good"
    """It is as it should be."""
    NOTE = "note"
    """Neither good nor bad, and worth knowing."""
    WARNING = "warning"
    """Some clients fail, or something will."""
    BROKEN = "broken"
    """Clients fail."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was found out."""

    level: Level
    name: str
    """What it is about, for machines: a word or two with hyphens, which stays."""
    message: str
    """Plain sentences."""
    cure: str = ""
    """What to do about it; empty where there is nothing to do."""


def good(name: str, message: str) -> Finding:
    """Return a finding that all is well."""
    return Finding(Level.GOOD, name, message)


def note(name: str, message: str, cure: str = "") -> Finding:
    """Return a finding that is worth knowing."""
    return Finding(Level.NOTE, name, message, cure)


def warning(name: str, message: str, cure: str) -> Finding:
    """Return a finding that some clients fail."""
    return Finding(Level.WARNING, name, message, cure)


def broken(name: str, message: str, cure: str) -> Finding:
    """Return a finding that clients fail."""
    return Finding(Level.BROKEN, name, message, cure)


def shown(value: object) -> str:
    """Return what a server has sent as it may be shown: short, in one line, and harmless.

    A terminal takes some characters for commands.

    >>> shown("no" + chr(27) + "[2J such page")
    'no [2J such page'
    """
    text = _UNPRINTABLE.sub(" ", str(value)).strip()
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"


def in_words(items: list[str] | tuple[str, ...]) -> str:
    """Return items as a sentence has them.

    >>> in_words(["a", "b", "c"])
    'a, b and c'
    """
    *most, last = items
    return f"{', '.join(most)} and {last}" if most else last
