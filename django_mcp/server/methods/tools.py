"""``tools/list`` and ``tools/call``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from mcp_types import CallToolRequestParams, CallToolResult, PaginatedRequestParams

from ...protocol import headers
from ...protocol.errors import invalid_params
from ...protocol.versions import Revision, fit, fit_content
from ..calling import Call, CallTimedOut, Outcome, Result
from ..errors import ToolError
from ..exchange import Exchange
from ..paging import list_caching, listed, page, read_cursor
from ..primitives import Tool
from ..questions.calls import asking
from ..results import (
    content_blocks,
    dump,
    failure,
    is_object,
    json_text,
    settle,
    structured,
    wrap_schema,
)
from ..signature import ArgumentError


def list_tools(exchange: Exchange, params: PaginatedRequestParams) -> Result:
    """List the tools that the caller may use."""
    tools = exchange.server.tools
    visible, following = page(tools, read_cursor(params.cursor), exchange)
    key = (visible, exchange.revision, exchange.policy.strict_arguments)
    return listed("tools", _describe(*key), following, list_caching(tools, exchange), key)


def call(exchange: Exchange, params: CallToolRequestParams) -> Outcome:
    """Call a tool. What the model can put right comes back as a result, not as an error."""
    tool = exchange.server.find_tool(params.name)
    if tool is None or not tool.allows(exchange.principal.user):
        # 2025-11-25, server/tools, "Error Handling": an unknown tool is a protocol error. One that
        # the caller may not use is as good as unknown.
        raise invalid_params(f"Unknown tool: {params.name[:100]}")
    exchange.is_admitted = True
    arguments = params.arguments or {}
    if exchange.revision.modern:
        headers.check_parameters(tool.headers, arguments, exchange.headers)
    try:
        values = tool.signature.bind(
            arguments, strict=exchange.policy.strict_arguments, exchange=exchange
        )
    except ArgumentError as error:
        return _failure(str(error))
    return asking(
        _call(tool, values, exchange),
        tool.signature,
        exchange,
        target=tool.key,
        arguments=arguments,
    )


def _call(tool: Tool, values: Mapping[str, Any], exchange: Exchange) -> Call:
    def rescue(error: Exception) -> Result:
        if isinstance(error, ToolError):
            return _failure(str(error))
        if isinstance(error, CallTimedOut):
            return _failure(f"The tool did not finish within {tool.timeout:g} seconds.")
        raise error

    return Call(
        function=tool.signature.function,
        arguments=values,
        peer=exchange.peer,
        is_async=tool.signature.is_async,
        finish=lambda value: _finish(tool, value, values, exchange),
        rescue=rescue,
        scope=lambda: exchange.bridge.scope(atomic=tool.atomic),
        timeout=tool.timeout,
    )


def _finish(tool: Tool, value: Any, values: Mapping[str, Any], exchange: Exchange) -> Result:
    result = _result(tool, value, exchange)
    if not result.get("isError"):
        for template in tool.invalidates:
            exchange.server.notify_resource_updated(template.expand(values))
    return Result(result, tells_errors=True)


@lru_cache(maxsize=64)
def _describe(tools: tuple[Tool, ...], revision: Revision, strict: bool) -> list[dict[str, Any]]:
    return [_described(tool, revision, strict=strict) for tool in tools]


def _described(tool: Tool, revision: Revision, *, strict: bool) -> dict[str, Any]:
    described = dict(tool.description)
    if strict and described["inputSchema"] is tool.signature.schema:
        described["inputSchema"] = {**tool.signature.schema, "additionalProperties": False}
    if _is_wrapped(tool, revision):
        described["outputSchema"] = wrap_schema(described["outputSchema"])
    return fit("Tool", described, revision)


def _is_wrapped(tool: Tool, revision: Revision) -> bool:
    # One answer for the list and for every call, or clients would find that a result breaks the
    # schema they were shown.
    schema = tool.description.get("outputSchema")
    return schema is not None and revision.structured_objects_only and not is_object(schema)


def _result(tool: Tool, value: Any, exchange: Exchange) -> dict[str, Any]:
    revision, jsonable = exchange.revision, exchange.bridge.jsonable
    value = settle(value)
    if isinstance(value, CallToolResult):
        return _ready_made(value, revision)
    if tool.output is None:
        blocks = content_blocks(value, jsonable)
        return {"content": [fit_content(block, revision) for block in blocks], "isError": False}
    dumped = structured(tool.output, value, jsonable)
    # 2025-06-18, server/tools, "Structured Content": the same as text, for clients without it.
    text = {"type": "text", "text": json_text(dumped)}
    if _is_wrapped(tool, revision):
        dumped = {"result": dumped}
    result = {"content": [text], "structuredContent": dumped, "isError": False}
    return fit("CallToolResult", result, revision)


def _ready_made(value: CallToolResult, revision: Revision) -> dict[str, Any]:
    result = fit("CallToolResult", dump(value), revision)
    json_text(result)
    result["content"] = [fit_content(block, revision) for block in result["content"]]
    content = result.get("structuredContent")
    if content is not None and revision.structured_objects_only and not isinstance(content, dict):
        result["structuredContent"] = {"result": content}
    return result


def _failure(text: str) -> Result:
    return Result(failure(text), tells_errors=True)
