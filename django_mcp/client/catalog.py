"""What a server says that it is and has: itself, its lists page by page, and its tools.

Of the tools a client remembers which arguments of a call are mirrored into headers (2026-07-28,
server/tools, "x-mcp-header"), and whether a call may be repeated though it may have run.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from mcp_types import (
    SERVER_INFO_META_KEY,
    Implementation,
    PaginatedResult,
    ServerCapabilities,
    Tool,
)
from pydantic import BaseModel, ValidationError

from ..protocol.bounded import validate
from ..protocol.messages import encode
from ..protocol.values import count_values
from ..protocol.versions import Revision
from .bounds import Limits
from .errors import MessageTooLarge, UnexpectedAnswer

log = logging.getLogger("django_mcp.client")

Model = TypeVar("Model", bound=BaseModel)

MIRROR_KEYWORD: Final = "x-mcp-header"

# RFC 9110, section 5.6.2.
_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+\-.^_`|~]+")
_PRIMITIVES: Final = frozenset({"string", "integer", "boolean"})


@dataclass(frozen=True, slots=True)
class ServerDescription:
    """What a server has said of itself, and the revision that both sides speak."""

    revision: Revision
    capabilities: ServerCapabilities
    info: Implementation | None = None
    instructions: str | None = None


def validated(model: type[Model], value: Any) -> Model:
    """Return what a server has sent as the model that it must be, or :class:`UnexpectedAnswer`."""
    try:
        return validate(model, value)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UnexpectedAnswer(
            f"The server sent no valid {model.__name__}: {where}: {first['msg']}"
        ) from None


def server_info(result: Mapping[str, Any]) -> Implementation | None:
    """Return what a server of revision 2026-07-28 says of itself in ``_meta``."""
    meta = result.get("_meta")
    info = meta.get(SERVER_INFO_META_KEY) if isinstance(meta, dict) else None
    return None if info is None else validated(Implementation, info)


class PagedList:
    """What has been read of a list, and what to ask for next. Its pages are bounded together."""

    def __init__(
        self, method: str, model: type[PaginatedResult], attribute: str, limits: Limits
    ) -> None:
        self.method = method
        self.params: dict[str, Any] = {}
        self.items: list[Any] = []
        self.has_more = True
        self._model = model
        self._attribute = attribute
        self._limits = limits
        self._cursors: set[str] = set()
        self._bytes = self._values = 0

    def add(self, result: dict[str, Any]) -> None:
        """Add a page; raises :class:`UnexpectedAnswer` where the list has no end."""
        self._count(encode(result))
        page = validated(self._model, result)
        self.items += getattr(page, self._attribute)
        self.has_more = page.next_cursor is not None
        if page.next_cursor is not None:
            self._turn_to(page.next_cursor)

    def _count(self, page: bytes) -> None:
        self._bytes += len(page)
        self._values += count_values(page)
        if self._bytes > self._limits.list_bytes:
            raise MessageTooLarge(f"{self.method} has more than {self._limits.list_bytes} bytes")
        if self._values > self._limits.list_values:
            raise MessageTooLarge(f"{self.method} has more than {self._limits.list_values} values")

    def _turn_to(self, cursor: str) -> None:
        if cursor in self._cursors:
            raise UnexpectedAnswer(
                f"{self.method} does not end: the server's cursors lead in a circle"
            )
        self._cursors.add(cursor)
        if len(self._cursors) >= self._limits.pages:
            raise UnexpectedAnswer(f"{self.method} has more than {self._limits.pages} pages")
        self.params = {"cursor": cursor}


class InvalidMirroring(ValueError):
    """A tool's ``x-mcp-header`` breaks the rules, so that the tool must not be used."""


@dataclass(frozen=True, slots=True)
class KnownTool:
    """What matters for calling a tool. Of one that was not listed, nothing is known."""

    mirrored: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Name of a header to the path of the property that it mirrors."""
    repeatable: bool = False


class KnownTools:
    """The tools that were listed last, by name."""

    def __init__(self) -> None:
        self._tools: dict[str, KnownTool] = {}

    def __getitem__(self, name: str) -> KnownTool:
        return self._tools.get(name, KnownTool())

    def update(self, tools: list[Tool], *, mirrors: bool) -> list[Tool]:
        """Remember a whole list in the place of the last; return the tools that may be used.

        ``mirrors`` says whether the revision has mirrored arguments. Where it has, a client must
        leave out a tool whose annotations are wrong, and only that one.
        """
        known, usable = {}, []
        for tool in tools:
            try:
                paths = mirrored_properties(tool.input_schema) if mirrors else {}
            except InvalidMirroring as error:
                log.warning("Left out the tool %r: %s", tool.name, error)
                continue
            known[tool.name] = KnownTool(paths, _is_repeatable(tool))
            usable.append(tool)
        self._tools = known
        return usable


def _is_repeatable(tool: Tool) -> bool:
    hints = tool.annotations
    return hints is not None and bool(hints.read_only_hint or hints.idempotent_hint)


def mirrored_properties(schema: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return header name to property path; raises :class:`InvalidMirroring`."""
    paths: dict[str, tuple[str, ...]] = {}
    lowered: set[str] = set()
    for name, path, property_ in _annotated(schema):
        if not isinstance(name, str) or not _HEADER_NAME.fullmatch(name):
            raise InvalidMirroring(f"{MIRROR_KEYWORD} {name!r} is no name of a header")
        if name.lower() in lowered:
            raise InvalidMirroring(f"{MIRROR_KEYWORD} {name!r} is used twice")
        if property_.get("type") not in _PRIMITIVES:
            raise InvalidMirroring(f"{MIRROR_KEYWORD} {name!r} is on what is no primitive")
        lowered.add(name.lower())
        paths[name] = path
    if len(paths) != _occurrences(schema):
        raise InvalidMirroring(f"{MIRROR_KEYWORD} is on what not every call can carry")
    return paths


def _annotated(
    schema: Mapping[str, Any], above: tuple[str, ...] = ()
) -> Iterator[tuple[Any, tuple[str, ...], Mapping[str, Any]]]:
    properties = schema.get("properties")
    for key, value in properties.items() if isinstance(properties, dict) else ():
        if isinstance(value, dict):
            if MIRROR_KEYWORD in value:
                yield value[MIRROR_KEYWORD], (*above, key), value
            yield from _annotated(value, (*above, key))


def _occurrences(schema: Any) -> int:
    if isinstance(schema, dict):
        return (MIRROR_KEYWORD in schema) + sum(map(_occurrences, schema.values()))
    if isinstance(schema, list):
        return sum(map(_occurrences, schema))
    return 0
