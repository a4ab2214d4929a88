"""``resources/list``, ``resources/templates/list`` and ``resources/read``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import mcp_types
from mcp_types import PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResult

from ... import content
from ...protocol.cursors import Cursor, invalid_cursor
from ...protocol.errors import MCPError, invalid_params
from ...protocol.topics import Topic
from ...protocol.versions import Revision, fit, fit_contents
from ..arguments import ArgumentError
from ..exception_table import Failure, FailureKind
from ..exchange import Exchange
from ..files import is_file, read_file
from ..function_call import FunctionCall, HandlerOutcome
from ..paging import REGISTERED, describe, language_of, list_caching, list_result, page, read_cursor
from ..primitives import Resource
from ..questions.asking import Questions
from ..registry import MCPServer
from ..results import Caching, Result, as_text, collect, dump
from ..scopes import check_scopes, granted_scopes
from ..signature import Signature
from ..ui_extension import shows_apps


def list_templates(server: MCPServer, exchange: Exchange, params: PaginatedRequestParams) -> Result:
    """List the resource templates that the caller may use."""
    templates = [resource for resource in server.resources if resource.is_template]
    visible, following = page(templates, read_cursor(params.cursor, exchange), exchange)
    key = (visible, exchange.revision, language_of(visible))
    described = describe("ResourceTemplate", *key)
    caching = list_caching(templates, exchange)
    return list_result("resourceTemplates", described, following, caching, exchange, key)


def list_resources(
    server: MCPServer, exchange: Exchange, params: PaginatedRequestParams
) -> HandlerOutcome:
    """List resources: first what was registered, then what each listing function yields.

    They share pages: where one source ends, the next one goes on.
    """
    cursor = read_cursor(params.cursor, exchange)
    if cursor.source != REGISTERED:
        return _fill(
            [], _listings_from(cursor.source, server, exchange), cursor.last, server, exchange
        )
    visible, following = page(_listed(server, exchange), cursor, exchange)
    key = (visible, exchange.revision, language_of(visible))
    described = describe("Resource", *key)
    listings = _listings(server, exchange)
    if following is not None or not listings:
        return list_result(
            "resources", described, following, _caching(server, exchange), exchange, key
        )
    return _fill(described, listings, None, server, exchange)


def read(
    server: MCPServer, exchange: Exchange, params: ReadResourceRequestParams
) -> HandlerOutcome:
    """Read a resource; what cannot be seen does not exist."""
    private = not exchange.is_public
    for resource, variables in server.find_resources(params.uri):
        private = private or resource.permission is not None
        if not resource.allows(exchange.principal.user):
            continue
        questions = Questions(exchange, params.uri)
        try:
            values = resource.signature.bind(variables, exchange=exchange, questions=questions)
        except ArgumentError:
            continue
        if exchange.caller.checks_scopes:
            check_scopes(server, exchange.caller, resource)
        exchange.guard = resource.guard
        private = private or resource.signature.depends_on_caller
        caching = Caching(resource.ttl_ms, "private" if private else "public")
        questions.restore()
        return FunctionCall(
            function=resource.signature.prepared(exchange, questions),
            arguments=values,
            is_async=resource.signature.is_async,
            takes_request=resource.signature.takes_request,
            sends_messages=resource.signature.sends_messages,
            server=server,
            exchange=exchange,
            finish=partial(_finish, resource, params.uri, caching, exchange.revision),
            fail=partial(_fail, params.uri, exchange.revision),
            questions=questions,
            atomic=resource.atomic,
        )
    if exchange.caller.checks_scopes:
        check_scopes(server, exchange.caller)
    raise _not_found(params.uri, exchange.revision)


@dataclass(frozen=True, slots=True)
class ResourceAtURI:
    """What changes at a URI, and the resources that may serve it, as far as is known beforehand."""

    topic: Topic
    candidates: frozenset[Resource]


def resource_at(uri: str, server: MCPServer) -> ResourceAtURI | None:
    """Return what is at ``uri``, whoever may read it."""
    if "\x00" in uri:
        return None  # legal in JSON, and no database keeps it
    topic: Topic | None = None
    candidates: list[Resource] = []
    for resource, variables in server.find_resources(uri):
        topic = topic or resource.topic(uri, variables)
        if _fits(resource, variables):
            candidates.append(resource)
    return None if topic is None else ResourceAtURI(topic, frozenset(candidates))


def is_readable(uri: str, server: MCPServer, user: Any) -> bool:
    """Return whether a user may read what is at ``uri``, as far as is known beforehand."""
    served = resource_at(uri, server)
    return served is not None and any(resource.allows(user) for resource in served.candidates)


def readable_topic(uri: str, server: MCPServer, exchange: Exchange) -> Topic:
    """Return what changes at ``uri``; refuse it as reading would be, if the caller may not."""
    served, user = resource_at(uri, server), exchange.principal.user
    candidates = () if served is None else served.candidates
    readable = [resource for resource in candidates if resource.allows(user)]
    if exchange.caller.checks_scopes:
        check_scopes(server, exchange.caller, *readable)
    if served is None or not readable:
        raise _not_found(uri, exchange.revision)
    return served.topic


def _fits(resource: Resource, variables: Mapping[str, str]) -> bool:
    try:
        resource.signature.bind(variables)
    except ArgumentError:
        return False
    return True


def _finish(
    resource: Resource, uri: str, caching: Caching, revision: Revision, value: Any
) -> Result:
    return Result(_contents(resource, uri, value, revision), caching)


def _fail(uri: str, revision: Revision, failure: Failure) -> HandlerOutcome:
    if failure.kind is FailureKind.EXPLAINED:
        raise invalid_params(failure.text, {"uri": uri})
    raise _not_found(uri, revision)


def _contents(resource: Resource, uri: str, value: Any, revision: Revision) -> dict[str, Any]:
    value = collect(value)
    body: dict[str, Any] = {}
    if isinstance(value, ReadResourceResult):
        items: Sequence[Any] = value.contents
        body |= {"_meta": value.meta} if value.meta else {}
    else:
        items = value if _is_contents(value) else [value]
    contents = [_content(item, resource, uri) for item in items]
    body["contents"] = [fit_contents(item, revision) for item in contents]
    return body


def _is_contents(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and any(
        isinstance(item, mcp_types.ResourceContents) for item in value
    )


def _content(item: Any, resource: Resource, uri: str) -> dict[str, Any]:
    if isinstance(item, mcp_types.ResourceContents):
        return dump(item)
    mime_type = resource.mime_type
    if is_file(item):
        file = read_file(item)
        item, mime_type = file.data, mime_type or file.mime_type
    if not isinstance(item, (str, *content.BYTES)):
        item, mime_type = as_text(item), mime_type or content.JSON
    return dump(content.contents(uri, item, mime_type=mime_type))


def _fill(
    items: list[dict[str, Any]],
    listings: Sequence[Resource],
    last: str | None,
    server: MCPServer,
    exchange: Exchange,
) -> HandlerOutcome:
    """Fill up a page that has ``items``; the first of ``listings`` goes on after ``last``."""
    if listings and len(items) < exchange.settings.page_size:
        return _list_by_function(items, listings, last, server, exchange)
    # Whether the next function yields anything is not asked for the sake of the cursor alone.
    following = Cursor(listings[0].key, last) if listings else None
    return list_result("resources", items, following, _caching(server, exchange), exchange)


def _list_by_function(
    items: list[dict[str, Any]],
    listings: Sequence[Resource],
    last: str | None,
    server: MCPServer,
    exchange: Exchange,
) -> FunctionCall:
    listing = listings[0].listing
    assert listing is not None

    def finish(value: Any) -> HandlerOutcome:
        taken, more = _take(value, listing, last, exchange.settings.page_size - len(items))
        described = [fit("Resource", _listed_resource(item), exchange.revision) for item in taken]
        if more:
            return _fill(items + described, listings, described[-1]["uri"], server, exchange)
        return _fill(items + described, listings[1:], None, server, exchange)

    def fail(failure: Failure) -> HandlerOutcome:
        if failure.kind is FailureKind.EXPLAINED:
            raise invalid_params(failure.text)
        # Who may not see what a function lists is shown the rest, as with one that is hidden.
        return _fill(items, listings[1:], None, server, exchange)

    return FunctionCall(
        function=listing.prepared(exchange, None),
        arguments=_bind(listing, last, exchange),
        server=server,
        exchange=exchange,
        is_async=listing.is_async,
        takes_request=listing.takes_request,
        sends_messages=listing.sends_messages,
        finish=finish,
        fail=fail,
        failure_kinds=_LISTED,
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


def _plain(server: MCPServer) -> list[Resource]:
    return [resource for resource in server.resources if not resource.is_template]


def _listed(server: MCPServer, exchange: Exchange) -> list[Resource]:
    plain = _plain(server)
    if not server.apps or shows_apps(exchange.sender.capabilities, exchange.revision):
        return plain
    return [resource for resource in plain if not resource.is_app]


def _listings_from(source: str, server: MCPServer, exchange: Exchange) -> list[Resource]:
    listings = [each for each in _listings(server, exchange) if each.key >= source]
    if not listings or listings[0].key != source:
        raise invalid_cursor()
    return listings


def _listings(server: MCPServer, exchange: Exchange) -> list[Resource]:
    # Permissions are asked for before the first function runs: what follows an asynchronous one
    # is on the event loop, where the database must not be touched.
    user = exchange.principal.user
    listings = [each for each in server.resources if each.listing and each.allows(user)]
    if not exchange.caller.checks_scopes:
        return listings
    # What a function lists is no description but the site's data. A list of all resources is not
    # refused for the scopes of a few.
    granted = granted_scopes(exchange.principal, exchange.settings)
    return [each for each in listings if granted is None or granted.issuperset(each.scopes)]


def _caching(server: MCPServer, exchange: Exchange) -> Caching:
    # All pages of a list have one scope, and what a function lists may depend on the caller.
    if any(resource.listing for resource in server.resources):
        return Caching(0, "private")
    return list_caching(_plain(server), exchange)


_LISTED = frozenset({FailureKind.EXPLAINED, FailureKind.DENIED})
"""What a function that lists can say: there is nothing that it could miss."""


def _not_found(uri: str, revision: Revision) -> MCPError:
    return MCPError(revision.resource_not_found, f"Resource not found: {uri[:200]}", {"uri": uri})
