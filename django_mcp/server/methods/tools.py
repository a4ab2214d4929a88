"""``tools/list`` and ``tools/call``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from mcp_types import CallToolRequestParams, CallToolResult, PaginatedRequestParams

from ...protocol import headers
from ...protocol.errors import invalid_params
from ...protocol.versions import Revision, fit, fit_content
from ..calling import Call, Outcome, Result
from ..exception_table import FailureKind
from ..exchange import Exchange
from ..failures import EVERYTHING, Failure, Rescue
from ..paging import list_caching, listed, page, read_cursor
from ..primitives import Tool
from ..questions.calls import asking
from ..questions.requests import fills_in_forms
from ..results import (
    content_blocks,
    dump,
    failure,
    is_object,
    json_text,
    settle,
    structured,
    structured_text,
    wrap_schema,
)
from ..signature import ArgumentError
from ..transactions import around_function


@dataclass(frozen=True, slots=True)
class Variant:
    """What decides, beside its own properties, how a tool is described."""

    revision: Revision
    strict: bool
    asks: bool
    structures_text: bool


def list_tools(exchange: Exchange, params: PaginatedRequestParams) -> Result:
    """List the tools that the caller may use."""
    tools = exchange.server.tools
    visible, following = page(tools, read_cursor(params.cursor, exchange), exchange)
    variant = Variant(
        revision=exchange.revision,
        strict=exchange.settings.strict_arguments,
        asks=fills_in_forms(exchange.sender.capabilities, exchange.revision),
        structures_text=exchange.server.structured_text,
    )
    caching, key = list_caching(tools, exchange), (visible, variant)
    return listed("tools", _describe(visible, variant), following, caching, exchange, key)


def call(exchange: Exchange, params: CallToolRequestParams) -> Outcome:
    """Call a tool. What the model can put right comes back as a result, not as an error."""
    tool = exchange.server.find_tool(params.name)
    if tool is None or not tool.allows(exchange.principal.user):
        # 2025-11-25, server/tools, "Error Handling": an unknown tool is a protocol error. One that
        # the caller may not use is as good as unknown.
        raise invalid_params(f"Unknown tool: {params.name[:100]}")
    exchange.guard = tool.guard
    arguments = params.arguments or {}
    if exchange.revision.modern:
        headers.check_parameters(tool.headers, arguments, exchange.headers)
    unasked = tool.signature.unasked
    signature = tool.signature if unasked is None or _asks(exchange) else unasked
    try:
        values = signature.bind(
            arguments, strict=exchange.settings.strict_arguments, exchange=exchange
        )
    except ArgumentError as error:
        return _failure(str(error))
    except Exception as error:  # out of a validator of the site's
        return _rescue(exchange).outcome(error)
    return asking(
        _call(tool, values, exchange),
        signature,
        exchange,
        target=tool.key,
        arguments=arguments,
        once=tool.once,
    )


def _asks(exchange: Exchange) -> bool:
    # The list goes by what the client can; a call sees whether it can be reached, too.
    is_reached = exchange.revision.modern or exchange.peer.answers
    return is_reached and fills_in_forms(exchange.sender.capabilities, exchange.revision)


def _call(tool: Tool, values: Mapping[str, Any], exchange: Exchange) -> Call:
    return Call(
        function=tool.signature.function,
        arguments=values,
        peer=exchange.peer,
        is_async=tool.signature.is_async,
        finish=lambda value: _finish(tool, value, values, exchange),
        rescue=_rescue(exchange),
        scope=lambda: around_function(atomic=tool.atomic),
        timeout=tool.timeout,
    )


def _rescue(exchange: Exchange) -> Rescue:
    def tell(failure: Failure) -> Result:
        # 2025-11-25, server/tools, "Error Handling": what goes wrong in a tool is a result, which
        # the model reads, and not an error, which often ends its turn.
        blocks = [fit_content(block, exchange.revision) for block in failure.blocks]
        body = {"content": blocks, "isError": True}
        return Result(body, tells_errors=True, failed=failure.kind is FailureKind.FAILED)

    return Rescue(exchange, tell, EVERYTHING)


def _finish(tool: Tool, value: Any, values: Mapping[str, Any], exchange: Exchange) -> Result:
    result = _result(tool, value, exchange)
    if not result.get("isError"):
        for template in tool.invalidates:
            exchange.server.notify_resource_updated(template.expand(values))
    return Result(result, tells_errors=True)


@lru_cache(maxsize=64)
def _describe(tools: tuple[Tool, ...], variant: Variant) -> list[dict[str, Any]]:
    return [_described(tool, variant) for tool in tools]


def _described(tool: Tool, variant: Variant) -> dict[str, Any]:
    described = dict(tool.description)
    if tool.unasked_schema is not None and not variant.asks:
        described["inputSchema"] = tool.unasked_schema
    if tool.follows_signature and variant.strict:
        described["inputSchema"] = {**described["inputSchema"], "additionalProperties": False}
    if _is_wrapped(tool, variant.revision):
        described["outputSchema"] = wrap_schema(described["outputSchema"])
    if tool.text is not None and variant.structures_text:
        described["outputSchema"] = wrap_schema(tool.text.schema)
    return fit("Tool", described, variant.revision)


def _is_wrapped(tool: Tool, revision: Revision) -> bool:
    # One answer for the list and for every call, or clients would find that a result breaks the
    # schema they were shown.
    schema = tool.description.get("outputSchema")
    return schema is not None and revision.structured_objects_only and not is_object(schema)


def _result(tool: Tool, value: Any, exchange: Exchange) -> dict[str, Any]:
    revision = exchange.revision
    value = settle(value)
    if isinstance(value, CallToolResult):
        return _ready_made(value, revision)
    if tool.output is None:
        blocks = content_blocks(value)
        result: dict[str, Any] = {
            "content": [fit_content(block, revision) for block in blocks],
            "isError": False,
        }
        if tool.text is not None and exchange.server.structured_text:
            result["structuredContent"] = structured_text(tool.text, value)
            return fit("CallToolResult", result, revision)
        return result
    dumped = structured(tool.output, value)
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
