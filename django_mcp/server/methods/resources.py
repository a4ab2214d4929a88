"""``resources/list``, ``resources/templates/list`` and ``resources/read``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import mcp_types
from mcp_types import PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResult

from ...protocol.cursors import Cursor, invalid_cursor
from ...protocol.errors import MCPError, invalid_params
from ...protocol.topics import Topic
from ...protocol.versions import Revision, fit, fit_contents
from .. import content
from ..calling import Caching, Call, Outcome, Result
from ..exception_table import FailureKind
from ..exchange import Exchange
from ..failures import Failure, Rescue
from ..paging import REGISTERED, describe, list_caching, listed, page, read_cursor
from ..primitives import Resource
from ..questions.calls import asking
from ..registry import MCPServer
from ..results import as_text, dump, settle
from ..signature import ArgumentError, Signature
from ..transactions import around_function


def list_templates(exchange: Exchange, params: PaginatedRequestParams) -> Result:
    """List the resource templates that the caller may use."""
    templates = [resource for resource in exchange.server.resources if resource.is_template]
    visible, following = page(templates, read_cursor(params.cursor, exchange), exchange)
    described = describe("ResourceTemplate", visible, exchange.revision)
    caching, key = list_caching(templates, exchange), (visible, exchange.revision)
    return listed("resourceTemplates", described, following, caching, exchange, key)


def list_resources(exchange: Exchange, params: PaginatedRequestParams) -> Outcome:
    """List resources: first what was registered, then what each listing function yields.

    They share pages: where one source ends, the next one goes on.
    """
    cursor = read_cursor(params.cursor, exchange)
    if cursor.source != REGISTERED:
        return _fill([], _listings_from(cursor.source, exchange), cursor.last, exchange)
    visible, following = page(_plain(exchange), cursor, exchange)
    described = describe("Resource", visible, exchange.revision)
    listings = _listings(exchange)
    if following is not None or not listings:
        key = (visible, exchange.revision)
        return listed("resources", described, following, _caching(exchange), exchange, key)
    return _fill(described, listings, None, exchange)


def read(exchange: Exchange, params: ReadResourceRequestParams) -> Outcome:
    """Read a resource; what cannot be seen does not exist."""
    private = not exchange.is_public
    for resource, variables in exchange.server.find_resources(params.uri):
        private = private or resource.permission is not None
        if not resource.allows(exchange.principal.user):
            continue
        try:
            values = resource.signature.bind(variables, exchange=exchange)
        except ArgumentError:
            continue
        exchange.guard = resource.guard
        private = private or resource.signature.depends_on_caller
        caching = Caching(resource.ttl_ms, "private" if private else "public")
        return _read(resource, params.uri, values, caching, exchange)
    raise _not_found(params.uri, exchange.revision)


@dataclass(frozen=True, slots=True)
class Served:
    """What changes at a URI, and what may serve it, as far as can be told beforehand."""

    topic: Topic
    ways: frozenset[Resource]


def look_up(uri: str, server: MCPServer) -> Served | None:
    """Return what is at ``uri``, whoever may read it."""
    if "\x00" in uri:
        return None  # legal in JSON, and no database keeps it
    topic: Topic | None = None
    ways: list[Resource] = []
    for resource, variables in server.find_resources(uri):
        topic = topic or resource.topic(uri, variables)
        if _fits(resource, variables):
            ways.append(resource)
    return Served(topic, frozenset(ways)) if topic is not None and ways else None


def is_readable(uri: str, server: MCPServer, user: Any) -> bool:
    """Return whether a user may read what is at ``uri``, as far as can be told beforehand."""
    served = look_up(uri, server)
    return served is not None and any(resource.allows(user) for resource in served.ways)


def readable_topic(uri: str, exchange: Exchange) -> Topic:
    """Return what changes at ``uri``; refuse it as reading would be, if the caller may not."""
    served, user = look_up(uri, exchange.server), exchange.principal.user
    if served is None or not any(resource.allows(user) for resource in served.ways):
        raise _not_found(uri, exchange.revision)
    return served.topic


def _fits(resource: Resource, variables: Mapping[str, str]) -> bool:
    try:
        resource.signature.bind(variables)
    except ArgumentError:
        return False
    return True


def _read(
    resource: Resource, uri: str, values: dict[str, Any], caching: Caching, exchange: Exchange
) -> Call:
    def finish(value: Any) -> Result:
        return Result(_contents(resource, uri, value, exchange), caching)

    def tell(failure: Failure) -> Outcome:
        if failure.kind is FailureKind.TOLD:
            raise invalid_params(failure.text, {"uri": uri})
        raise _not_found(uri, exchange.revision)

    call = Call(
        function=resource.signature.function,
        arguments=values,
        peer=exchange.peer,
        is_async=resource.signature.is_async,
        finish=finish,
        rescue=Rescue(exchange, tell),
        scope=lambda: around_function(atomic=resource.atomic),
    )
    return asking(call, resource.signature, exchange, target=uri)


def _contents(resource: Resource, uri: str, value: Any, exchange: Exchange) -> dict[str, Any]:
    value = settle(value)
    body: dict[str, Any] = {}
    if isinstance(value, ReadResourceResult):
        items: Sequence[Any] = value.contents
        body |= {"_meta": value.meta} if value.meta else {}
    else:
        items = value if _is_contents(value) else [value]
    contents = [_content(item, resource, uri, exchange) for item in items]
    body["contents"] = [fit_contents(item, exchange.revision) for item in contents]
    return body


def _is_contents(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and any(
        isinstance(item, mcp_types.ResourceContents) for item in value
    )


def _content(item: Any, resource: Resource, uri: str, exchange: Exchange) -> dict[str, Any]:
    if isinstance(item, mcp_types.ResourceContents):
        return dump(item)
    mime_type = resource.mime_type
    if not isinstance(item, (str, *content.BYTES)):
        item, mime_type = as_text(item), mime_type or content.JSON
    return dump(content.contents(uri, item, mime_type=mime_type))


def _fill(
    items: list[dict[str, Any]], listings: Sequence[Resource], last: str | None, exchange: Exchange
) -> Outcome:
    """Fill up a page that has ``items``; the first of ``listings`` goes on after ``last``."""
    if listings and len(items) < exchange.settings.page_size:
        return _list_by_function(items, listings, last, exchange)
    # Whether the next function yields anything is not asked for the sake of the cursor alone.
    following = Cursor(listings[0].key, last) if listings else None
    return listed("resources", items, following, _caching(exchange), exchange)


def _list_by_function(
    items: list[dict[str, Any]], listings: Sequence[Resource], last: str | None, exchange: Exchange
) -> Call:
    listing = listings[0].listing
    assert listing is not None

    def finish(value: Any) -> Outcome:
        taken, more = _take(value, listing, last, exchange.settings.page_size - len(items))
        described = [fit("Resource", _listed_resource(item), exchange.revision) for item in taken]
        if more:
            return _fill(items + described, listings, described[-1]["uri"], exchange)
        return _fill(items + described, listings[1:], None, exchange)

    def tell(failure: Failure) -> Outcome:
        if failure.kind is FailureKind.TOLD:
            raise invalid_params(failure.text)
        # Who may not see what a function lists is shown the rest, as with one that is hidden.
        return _fill(items, listings[1:], None, exchange)

    return Call(
        function=listing.function,
        arguments=_bind(listing, last, exchange),
        peer=exchange.peer,
        is_async=listing.is_async,
        finish=finish,
        rescue=Rescue(exchange, tell, _LISTED),
        scope=lambda: around_function(atomic=True),
    )


def _bind(listing: Signature, last: str | None, exchange: Exchange) -> Mapping[str, Any]:
    given: dict[str, Any] = {}
    if "after" in listing.required or ("after" in listing.names and last is not None):
        given["after"] = last
    try:
        return listing.bind(given, exchange=exchange)
    except ArgumentError as error:
        # It was made while the function took something else.
        raise invalid_cursor() from error


def _take(value: Any, listing: Signature, last: str | None, room: int) -> tuple[list[Any], bool]:
    if "after" not in listing.names:
        # The function lists everything; the page is found by URI, so that a resource that comes
        # or goes in between moves nothing.
        value = sorted(value, key=lambda item: str(item.uri))
        value = [item for item in value if last is None or str(item.uri) > last]
    items = list(islice(value, room + 1))
    return items[:room], len(items) > room


def _listed_resource(item: Any) -> dict[str, Any]:
    described = dump(item)
    described.pop("type", None)
    return described


def _plain(exchange: Exchange) -> list[Resource]:
    return [resource for resource in exchange.server.resources if not resource.is_template]


def _listings_from(source: str, exchange: Exchange) -> list[Resource]:
    listings = [each for each in _listings(exchange) if each.key >= source]
    if not listings or listings[0].key != source:
        raise invalid_cursor()
    return listings


def _listings(exchange: Exchange) -> list[Resource]:
    # Permissions are asked for before the first function runs: what follows an asynchronous one
    # is on the event loop, where the database must not be touched.
    user = exchange.principal.user
    return [each for each in exchange.server.resources if each.listing and each.allows(user)]


def _caching(exchange: Exchange) -> Caching:
    # All pages of a list have one scope, and what a function lists may depend on the caller.
    if any(resource.listing for resource in exchange.server.resources):
        return Caching(0, "private")
    return list_caching(_plain(exchange), exchange)


_LISTED = frozenset({FailureKind.TOLD, FailureKind.REFUSED})
"""What a function that lists can say: there is nothing that it could miss."""


def _not_found(uri: str, revision: Revision) -> MCPError:
    return MCPError(revision.resource_not_found, f"Resource not found: {uri[:200]}", {"uri": uri})
