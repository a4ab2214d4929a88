"""What a client remembers of the tools that a server has listed.

Which arguments of a call are mirrored into headers (2026-07-28, server/tools, "x-mcp-header"), and
whether a call may be repeated though it may have run.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from mcp_types import Tool

log = logging.getLogger("django_mcp.client")

KEYWORD: Final = "x-mcp-header"

Paths = Mapping[str, tuple[str, ...]]

# RFC 9110, section 5.6.2.
_TOKEN: Final = re.compile(r"[A-Za-z0-9!#$%&'*+\-.^_`|~]+")
_PRIMITIVES: Final = frozenset({"string", "integer", "boolean"})


class InvalidAnnotation(ValueError):
    """A tool's annotations break the rules, so that the tool must not be used."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What matters for calling a tool. Of one that nobody has listed, nothing is known."""

    mirrored: Paths = field(default_factory=dict)
    repeatable: bool = False


class KnownTools:
    """The tools that were listed last."""

    def __init__(self) -> None:
        self._facts: dict[str, Facts] = {}

    def __getitem__(self, name: str) -> Facts:
        return self._facts.get(name, Facts())

    def learn(self, tools: list[Tool], *, mirrors: bool) -> list[Tool]:
        """Remember a whole list; return the tools in it that may be used.

        ``mirrors`` says whether the revision has mirrored arguments. Where it has, a client must
        leave out a tool whose annotations are wrong, and only that one.
        """
        facts, usable = {}, []
        for tool in tools:
            try:
                paths = mirrored(tool.input_schema) if mirrors else {}
            except InvalidAnnotation as error:
                log.warning("Left out the tool %r: %s", tool.name, error)
                continue
            facts[tool.name] = Facts(paths, _repeatable(tool))
            usable.append(tool)
        self._facts = facts
        return usable


def _repeatable(tool: Tool) -> bool:
    hints = tool.annotations
    return hints is not None and bool(hints.read_only_hint or hints.idempotent_hint)


def mirrored(schema: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return header name to property path; raises :class:`InvalidAnnotation`."""
    paths: dict[str, tuple[str, ...]] = {}
    for name, path, property_ in _annotated(schema):
        if not isinstance(name, str) or not _TOKEN.fullmatch(name):
            raise InvalidAnnotation(f"{KEYWORD} {name!r} is no name of a header")
        if name.lower() in {known.lower() for known in paths}:
            raise InvalidAnnotation(f"{KEYWORD} {name!r} is used twice")
        if property_.get("type") not in _PRIMITIVES:
            raise InvalidAnnotation(f"{KEYWORD} {name!r} is on what is no primitive")
        paths[name] = path
    if len(paths) != _occurrences(schema):
        raise InvalidAnnotation(f"{KEYWORD} is on what not every call can carry")
    return paths


def _annotated(
    schema: Mapping[str, Any], above: tuple[str, ...] = ()
) -> Iterator[tuple[Any, tuple[str, ...], Mapping[str, Any]]]:
    properties = schema.get("properties")
    for key, value in properties.items() if isinstance(properties, dict) else ():
        if isinstance(value, dict):
            if KEYWORD in value:
                yield value[KEYWORD], (*above, key), value
            yield from _annotated(value, (*above, key))


def _occurrences(schema: Any) -> int:
    if isinstance(schema, dict):
        return (KEYWORD in schema) + sum(_occurrences(value) for value in schema.values())
    if isinstance(schema, list):
        return sum(_occurrences(value) for value in schema)
    return 0
