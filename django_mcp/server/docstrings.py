"""The part of a docstring that describes the function, and the part that describes parameters."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_SECTION = re.compile(r"^(Args|Arguments|Parameters):\s*$", re.MULTILINE)
_NEXT_SECTION = re.compile(r"^\S", re.MULTILINE)
_ENTRY = re.compile(r"^(?P<indent>\s+)\*{0,2}(?P<name>\w+)\s*(?:\(.*?\))?:\s*(?P<text>.*)$")


@dataclass(frozen=True, slots=True)
class Docstring:
    """A docstring, read."""

    text: str
    parameters: dict[str, str] = field(default_factory=dict)


def parse_docstring(docstring: str) -> Docstring:
    """Split off an ``Args:`` section as Google's style guide has it; the rest is the description.

    ``docstring`` is dedented, as :func:`inspect.getdoc` returns it.
    """
    found = _SECTION.search(docstring)
    if found is None:
        return Docstring(docstring.strip())
    after = _NEXT_SECTION.search(docstring, found.end())
    end = after.start() if after else len(docstring)
    rest = docstring[: found.start()].rstrip() + "\n\n" + docstring[end:].strip()
    return Docstring(rest.strip(), _entries(docstring[found.end() : end]))


def _entries(section: str) -> dict[str, str]:
    entries: dict[str, str] = {}
    indent, name = "", ""
    for line in section.splitlines():
        entry = _ENTRY.match(line)
        if entry and (not indent or entry["indent"] == indent):
            indent, name = entry["indent"], entry["name"]
            entries[name] = entry["text"].strip()
        elif name and line.strip():
            entries[name] = f"{entries[name]} {line.strip()}".strip()
    return entries
