"""``ticket://{id}``: each row as a resource, with its changes announced."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from mcp_types import ResourceLink

from .. import content
from ..protocol.uri_template import URITemplate
from ..server.checked_options import checked_template
from ..server.context import Context
from ..server.registry import MCPServer
from .finding.reading import Reading
from .options import ModelOptions
from .tool_functions import tool_function

LISTED_AT_ONCE = 200


class RowResources:
    """The resources of a model's rows."""

    def __init__(self, options: ModelOptions, reading: Reading, server: MCPServer) -> None:
        self._options = options
        self._reading = reading
        self._server = server
        self._column = reading.fields.named(reading.lookup, "lookup_field").model_field.attname

    @cached_property
    def _template(self) -> URITemplate:
        scheme = self._options.singular_name.replace("_", "-")
        return checked_template(f"{scheme}://{{{self._reading.lookup}}}")

    def offer(self) -> None:
        """Register the template, and the function that lists rows."""
        singular = self._options.singular_name
        words = singular.replace("_", " ")
        read = tool_function(
            singular,
            self._reading.get,
            self._reading.get_arguments,
            of=type(self._options),
            returns=dict[str, Any],
            description=f"One of the {self._options.plural_name.replace('_', ' ')}.",
        )
        listing = tool_function(
            f"list_{singular}",
            self._list,
            {"after": (str | None, None)},
            of=type(self._options),
            returns=Iterator[ResourceLink],
            description="",
        )
        self._server.resource(
            self._template.template,
            title=words.capitalize(),
            permission=self._options.permission("view"),
            scopes=list(self._options.scopes),
            list=listing,
            model=self._options.model,
        )(read)

    def announce(self, rows: list[Any]) -> None:
        """Tell subscribers that rows have changed, for which no signal may have been sent."""
        for row in rows:
            self._server.notify_resource_updated(self._uri(row))

    def _uri(self, row: Any) -> str:
        return self._template.expand({self._reading.lookup: str(getattr(row, self._column))})

    def _list(self, ctx: Context, given: dict[str, Any]) -> Iterator[ResourceLink]:
        rows = self._options.get_queryset(ctx).order_by(self._column)
        if "after" in given:
            known = [values for _, values in self._server.find_resources(given["after"])]
            key = known[0][self._reading.lookup] if known else None
            rows = rows.none() if key is None else rows.filter(**{f"{self._column}__gt": key})
        for row in rows.iterator(chunk_size=LISTED_AT_ONCE):
            if self._reading.may_see(ctx, row):
                uri = self._uri(row)
                yield content.resource_link(
                    uri, name=uri.replace("://", "-"), title=str(row), mime_type=content.JSON
                )
