"""``tools/list`` and ``tools/call``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, Final

from mcp_types import CallToolRequestParams, CallToolResult, PaginatedRequestParams

from ...auth import ProtectedResource
from ...protocol import headers
from ...protocol.errors import invalid_params
from ...protocol.scopes import AS_IT_IS
from ...protocol.versions import Revision, fit, fit_content
from ..arguments import ArgumentError
from ..exception_table import ALL_KINDS, Failure, FailureKind
from ..exchange import ALL_TOOLS, Exchange
from ..failures import ExceptionTranslator
from ..file_links import with_links
from ..function_call import FunctionCall, HandlerOutcome
from ..paging import language_of, list_caching, list_result, page, read_cursor
from ..primitives import Tool
from ..questions.asking import Questions
from ..questions.input_requests import fills_in_forms
from ..registry import MCPServer
from ..results import (
    COLLECTED_TYPES,
    Result,
    collect,
    content_blocks,
    dump,
    json_text,
    tool_failure,
)
from ..scopes import check_scopes
from ..structured_output import is_object, structured_text, wrap_schema
from ..tool_selection import selection_of
from ..ui_extension import shows_apps

FIELD_ERRORS: Final = "django-mcp/errors"
"""The key in `_meta` of a result that failed because of fields: their messages, by name."""


@dataclass(frozen=True, slots=True)
class Variant:
    """What decides, beside its own properties, how a tool is described."""

    revision: Revision
    strict: bool
    asks: bool
    structures_text: bool
    language: str
    base_scopes: tuple[str, ...] | None
    """What all tools need, where clients can get tokens with scopes; else nothing is said."""
    resource: ProtectedResource | None
    """What tokens are for, where scopes are asked for by other names than tools have."""
    shows_apps: bool


def list_tools(server: MCPServer, exchange: Exchange, params: PaginatedRequestParams) -> Result:
    """List the tools that the caller may use."""
    tools, wanted = server.tools, exchange.http.wanted_tools
    if wanted != ALL_TOOLS:
        selection = selection_of(wanted)
        tools = [tool for tool in tools if selection.includes(tool)]
    caching = list_caching(tools, exchange)
    with_apps = server.has_app_tools and shows_apps(exchange.sender.capabilities, exchange.revision)
    if server.has_app_tools and not with_apps:
        # Clients that show apps keep these from their models themselves; others do not know of it.
        tools = [tool for tool in tools if not tool.is_for_apps_alone]
    visible, following = page(tools, read_cursor(params.cursor, exchange), exchange)
    resource = exchange.caller.resource
    variant = Variant(
        revision=exchange.revision,
        strict=exchange.settings.strict_arguments,
        asks=fills_in_forms(exchange.sender.capabilities, exchange.revision),
        structures_text=server.structured_text,
        language=language_of(visible),
        base_scopes=None if resource is None else server.scopes,
        resource=None if resource is None or resource.scope_format == AS_IT_IS else resource,
        shows_apps=with_apps,
    )
    key = (visible, variant)
    if any(wanted[1:]):
        # Caches go by the URL, and not by these headers.
        caching = replace(caching, scope="private")
    return list_result("tools", _describe(visible, variant), following, caching, exchange, key)


def call(server: MCPServer, exchange: Exchange, params: CallToolRequestParams) -> HandlerOutcome:
    """Call a tool. What the model can put right comes back as a result, not as an error."""
    tool = server.find_tool(params.name)
    is_visible = tool is not None and (
        tool.permission is None or tool.allows(exchange.principal.user)
    )
    if exchange.caller.checks_scopes:
        # A second look, where a client comes back with answers: its credentials may be others.
        check_scopes(server, exchange.caller, tool if is_visible else None)
    wanted = exchange.http.wanted_tools
    is_wanted = wanted == ALL_TOOLS or tool is None or selection_of(wanted).includes(tool)
    if tool is None or not is_visible or not is_wanted:
        # 2025-11-25, server/tools, "Error Handling": an unknown tool is a protocol error. One that
        # the caller may not use is as good as unknown.
        raise invalid_params(f"Unknown tool: {params.name[:100]}")
    if tool.permission is not None:
        exchange.guard = tool.allows
    arguments = params.arguments or {}
    if tool.headers and exchange.revision.modern:
        headers.check_parameters(tool.headers, arguments, exchange.http.headers)
    without_asking = tool.signature.without_asking
    signature = tool.signature if without_asking is None or _asks(exchange) else without_asking
    questions: Questions | None = None
    if signature.sends_messages or "requestState" in exchange.request.params:
        questions = Questions(exchange, tool.key, arguments, once=tool.once)
    try:
        values = signature.bind(
            arguments,
            strict=exchange.settings.strict_arguments if tool.strict is None else tool.strict,
            exchange=exchange,
            questions=questions,
        )
    except ArgumentError as error:
        return _failure(str(error))
    except Exception as error:  # out of a validator of the site's
        fail = partial(_fail, exchange.revision)
        return ExceptionTranslator(server, exchange, fail, ALL_KINDS).outcome(error)
    if questions is not None:
        questions.restore()
    is_bare = questions is None and not signature.filled
    return FunctionCall(
        function=signature.function if is_bare else signature.prepared(exchange, questions),
        arguments=values,
        is_async=signature.is_async,
        takes_request=signature.takes_request,
        sends_messages=signature.sends_messages,
        server=server,
        exchange=exchange,
        finish=partial(_finish, tool, values, server, exchange),
        fail=partial(_fail, exchange.revision),
        failure_kinds=ALL_KINDS,
        questions=questions,
        atomic=tool.atomic,
        timeout=tool.timeout,
    )


def _asks(exchange: Exchange) -> bool:
    # The list goes by what the client can; a call sees whether it can be reached, too.
    is_reached = exchange.revision.modern or exchange.can_request
    return is_reached and fills_in_forms(exchange.sender.capabilities, exchange.revision)


def _fail(revision: Revision, failure: Failure) -> Result:
    # 2025-11-25, server/tools, "Error Handling": what goes wrong in a tool is a result, which the
    # model reads, and not an error, which often ends its turn.
    blocks = [fit_content(block, revision) for block in failure.blocks]
    body: dict[str, Any] = {"content": blocks, "isError": True}
    if failure.fields:
        body["_meta"] = {FIELD_ERRORS: failure.fields}
    return Result(body, is_tool_result=True, failed=failure.kind is FailureKind.UNEXPECTED)


def _finish(
    tool: Tool, values: Mapping[str, Any], server: MCPServer, exchange: Exchange, value: Any
) -> Result:
    revision = exchange.revision
    if type(value) not in COLLECTED_TYPES:
        value = collect(value)
    if isinstance(value, CallToolResult):
        body = _ready_made(value, revision)
    elif tool.output is None:
        body = _unstructured(tool, with_links(value, exchange), server, revision)
    else:
        dumped = tool.output.dump(value)
        # 2025-06-18, server/tools, "Structured Content": the same as text, for clients without it.
        blocks = [{"type": "text", "text": json_text(dumped)}]
        if revision.structured_objects_only and _is_wrapped(tool, revision):
            dumped = {"result": dumped}
        body = {"content": blocks, "structuredContent": dumped, "isError": False}
        body = fit("CallToolResult", body, revision)
    if tool.invalidates and not body.get("isError"):
        for template in tool.invalidates:
            server.notify_resource_updated(template.expand(values))
    return Result(body, is_tool_result=True)


@lru_cache(maxsize=64)
def _describe(tools: tuple[Tool, ...], variant: Variant) -> list[dict[str, Any]]:
    return [_described(tool, variant) for tool in tools]


def _described(tool: Tool, variant: Variant) -> dict[str, Any]:
    described = dict(tool.describe())
    if tool.schema_without_asking is not None and not variant.asks:
        described["inputSchema"] = tool.schema_without_asking
    if tool.follows_signature and (variant.strict if tool.strict is None else tool.strict):
        described["inputSchema"] = {**described["inputSchema"], "additionalProperties": False}
    if variant.base_scopes is not None and (tool.scopes or variant.base_scopes):
        described["_meta"] = _with_security(tool, variant, described)
    if tool.ui is not None and variant.shows_apps:
        described["_meta"] = {**described.get("_meta", {}), "ui": tool.ui}
    if _is_wrapped(tool, variant.revision):
        described["outputSchema"] = wrap_schema(described["outputSchema"])
    if tool.text is not None and variant.structures_text:
        described["outputSchema"] = wrap_schema(tool.text.schema)
    return fit("Tool", described, variant.revision)


def _with_security(tool: Tool, variant: Variant, described: Mapping[str, Any]) -> dict[str, Any]:
    # What ChatGPT reads of a tool, before it calls it; what the site says itself counts for more.
    scopes = list(dict.fromkeys((*(variant.base_scopes or ()), *tool.scopes)))
    if variant.resource is not None:
        scopes = variant.resource.as_asked(scopes)
    schemes = {"securitySchemes": [{"type": "oauth2", "scopes": scopes}]}
    return {**schemes, **described.get("_meta", {})}


def _is_wrapped(tool: Tool, revision: Revision) -> bool:
    # One answer for the list and for every call, or clients would find that a result breaks the
    # schema they were shown.
    if not revision.structured_objects_only:
        return False
    schema = tool.description.get("outputSchema")
    return schema is not None and not is_object(schema)


def _unstructured(tool: Tool, value: Any, server: MCPServer, revision: Revision) -> dict[str, Any]:
    blocks = [fit_content(block, revision) for block in content_blocks(value)]
    if tool.text is None or not server.structured_text:
        return {"content": blocks, "isError": False}
    text = structured_text(tool.text, value)
    return fit(
        "CallToolResult",
        {"content": blocks, "structuredContent": text, "isError": False},
        revision,
    )


def _ready_made(value: CallToolResult, revision: Revision) -> dict[str, Any]:
    result = fit("CallToolResult", dump(value), revision)
    json_text(result)
    result["content"] = [fit_content(block, revision) for block in result["content"]]
    content = result.get("structuredContent")
    if content is not None and revision.structured_objects_only and not isinstance(content, dict):
        result["structuredContent"] = {"result": content}
    return result


def _failure(text: str) -> Result:
    return Result(tool_failure(text), is_tool_result=True)
