"""``resources/list``, ``resources/templates/list`` and ``resources/read``."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

import mcp_types
from mcp_types import PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResult

from ...protocol.cursors import Cursor
from ...protocol.errors import MCPError, invalid_params
from ...protocol.versions import Revision, fit, fit_contents
from .. import content
from ..calling import Caching, Call, Outcome, Result
from ..errors import ResourceNotFound, ToolError
from ..exchange import Exchange
from ..paging import REGISTERED, list_caching, page, read_cursor
from ..primitives import Resource
from ..results import as_text, dump, settle
from ..signature import ArgumentError, Signature


def list_templates(exchange: Exchange, params: PaginatedRequestParams) -> Result:
    """List the resource templates that the caller may use."""
    templates = [resource for resource in exchange.server.resources if resource.is_template]
    visible, following = page(templates, read_cursor(params.cursor), exchange)
    described = [fit("ResourceTemplate", each.description, exchange.revision) for each in visible]
    return _listed("resourceTemplates", described, following, list_caching(templates, exchange))


def list_resources(exchange: Exchange, params: PaginatedRequestParams) -> Outcome:
    """List resources: first what was registered, then what each listing function yields."""
    cursor = read_cursor(params.cursor)
    plain = [resource for resource in exchange.server.resources if not resource.is_template]
    if cursor.source != REGISTERED:
        return _list_by_function(_listing(cursor.source, exchange), cursor, exchange)
    visible, following = page(plain, cursor, exchange)
    if not visible and following is None:
        following = _next_listing(None, exchange)
        if following is not None:
            return _list_by_function(_listing(following.source, exchange), following, exchange)
    described = [fit("Resource", each.description, exchange.revision) for each in visible]
    following = following or _next_listing(None, exchange)
    return _listed("resources", described, following, _caching(plain, exchange))


def read(exchange: Exchange, params: ReadResourceRequestParams) -> Outcome:
    """Read a resource; what cannot be seen does not exist."""
    private = not exchange.policy.public
    for resource, variables in exchange.server.find_resources(params.uri):
        private = private or resource.permission is not None
        if not resource.allows(exchange.principal.user):
            continue
        try:
            values = resource.signature.bind(variables, exchange=exchange)
        except ArgumentError:
            continue
        private = private or resource.signature.context_parameter is not None
        caching = Caching(resource.ttl_ms, "private" if private else "public")
        return _read(resource, params.uri, values, caching, exchange)
    raise _not_found(params.uri, exchange.revision)


def _read(
    resource: Resource, uri: str, values: dict[str, Any], caching: Caching, exchange: Exchange
) -> Call:
    def finish(value: Any) -> Result:
        return Result(_contents(resource, uri, value, exchange), caching)

    def rescue(error: Exception) -> Result:
        if isinstance(error, (ResourceNotFound, *exchange.bridge.not_found)):
            raise _not_found(uri, exchange.revision) from error
        if isinstance(error, ToolError):
            raise invalid_params(str(error), {"uri": uri}) from None
        raise error

    return Call(
        function=resource.signature.function,
        arguments=values,
        is_async=resource.signature.is_async,
        finish=finish,
        rescue=rescue,
        scope=lambda: exchange.bridge.scope(atomic=True),
    )


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
        item, mime_type = as_text(item, exchange.bridge.jsonable), mime_type or content.JSON
    return dump(content.contents(uri, item, mime_type=mime_type))


def _list_by_function(resource: Resource, cursor: Cursor, exchange: Exchange) -> Call:
    # One function per page: the next one starts on a page of its own.
    assert resource.listing is not None
    listing = resource.listing
    values = listing.bind(_after(listing, cursor), exchange=exchange)

    def finish(value: Any) -> Result:
        items, more = _take(value, listing, cursor, exchange.policy.page_size)
        described = [fit("Resource", _listed_resource(item), exchange.revision) for item in items]
        following = (
            Cursor(resource.key, described[-1]["uri"])
            if more
            else _next_listing(resource.key, exchange)
        )
        return _listed("resources", described, following, _caching((), exchange))

    def rescue(error: Exception) -> Result:
        raise error

    return Call(
        function=listing.function,
        arguments=values,
        is_async=listing.is_async,
        finish=finish,
        rescue=rescue,
        scope=lambda: exchange.bridge.scope(atomic=True),
    )


def _after(listing: Signature, cursor: Cursor) -> dict[str, Any]:
    if "after" in listing.required or ("after" in listing.names and cursor.last is not None):
        return {"after": cursor.last}
    return {}


def _take(value: Any, listing: Signature, cursor: Cursor, size: int) -> tuple[list[Any], bool]:
    if "after" not in listing.names:
        # The function lists everything; the page is found by URI, so that a resource that comes
        # or goes in between moves nothing.
        value = sorted(value, key=lambda item: str(item.uri))
        value = [item for item in value if cursor.last is None or str(item.uri) > cursor.last]
    items = list(islice(value, size + 1))
    return items[:size], len(items) > size


def _listed_resource(item: Any) -> dict[str, Any]:
    described = dump(item)
    described.pop("type", None)
    return described


def _listing(source: str, exchange: Exchange) -> Resource:
    for resource in _listings(exchange):
        if resource.key == source:
            return resource
    raise invalid_params("Invalid cursor; start again without one")


def _next_listing(after: str | None, exchange: Exchange) -> Cursor | None:
    keys = (each.key for each in _listings(exchange) if after is None or each.key > after)
    key = next(keys, None)
    return None if key is None else Cursor(key)


def _listings(exchange: Exchange) -> list[Resource]:
    user = exchange.principal.user
    return [each for each in exchange.server.resources if each.listing and each.allows(user)]


def _listed(
    member: str, items: list[dict[str, Any]], following: Cursor | None, caching: Caching
) -> Result:
    body: dict[str, Any] = {member: items}
    if following is not None:
        body["nextCursor"] = following.encode()
    return Result(body, caching)


def _caching(plain: Sequence[Resource], exchange: Exchange) -> Caching:
    # All pages of a list have one scope, and what a function lists may depend on the caller.
    if any(resource.listing for resource in exchange.server.resources):
        return Caching(0, "private")
    return list_caching(plain, exchange)


def _not_found(uri: str, revision: Revision) -> MCPError:
    return MCPError(revision.resource_not_found, f"Resource not found: {uri[:200]}", {"uri": uri})
