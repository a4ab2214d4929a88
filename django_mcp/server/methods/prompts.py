"""``prompts/list`` and ``prompts/get``."""

from __future__ import annotations

from typing import Any

from mcp_types import GetPromptRequestParams, GetPromptResult, PaginatedRequestParams

from ...protocol.errors import MCPError, invalid_params
from ...protocol.versions import fit_content
from ..calling import Call, Outcome, Result
from ..exception_table import FailureKind
from ..exchange import Exchange
from ..failures import Failure, Rescue
from ..paging import describe, list_caching, listed, page, read_cursor
from ..primitives import Prompt
from ..questions.calls import asking
from ..results import dump, prompt_messages, settle
from ..signature import ArgumentError
from ..transactions import around_function


def list_prompts(exchange: Exchange, params: PaginatedRequestParams) -> Result:
    """List the prompts that the caller may use."""
    prompts = exchange.server.prompts
    visible, following = page(prompts, read_cursor(params.cursor, exchange), exchange)
    described = describe("Prompt", visible, exchange.revision)
    caching, key = list_caching(prompts, exchange), (visible, exchange.revision)
    return listed("prompts", described, following, caching, exchange, key)


def get(exchange: Exchange, params: GetPromptRequestParams) -> Outcome:
    """Get a prompt's messages (2025-11-25, server/prompts, "Error Handling": -32602)."""
    prompt = exchange.server.find_prompt(params.name)
    if prompt is None or not prompt.allows(exchange.principal.user):
        raise _unknown(params.name)
    exchange.guard = prompt.guard
    try:
        values = prompt.signature.bind(
            params.arguments or {},
            strict=exchange.settings.strict_arguments,
            exchange=exchange,
        )
    except ArgumentError as error:
        raise invalid_params(str(error)) from None

    def tell(failure: Failure) -> Outcome:
        # A prompt has no result that could carry an error, so what the function wants to say goes
        # into the protocol's own.
        hidden = failure.kind is FailureKind.REFUSED
        raise _unknown(params.name) if hidden else invalid_params(failure.text)

    call = Call(
        function=prompt.signature.function,
        arguments=values,
        peer=exchange.peer,
        is_async=prompt.signature.is_async,
        finish=lambda value: Result(_result(prompt, value, exchange)),
        rescue=Rescue(exchange, tell),
        scope=lambda: around_function(atomic=prompt.atomic),
    )
    return asking(call, prompt.signature, exchange, target=prompt.key, arguments=params.arguments)


def _result(prompt: Prompt, value: Any, exchange: Exchange) -> dict[str, Any]:
    value = settle(value)
    if isinstance(value, GetPromptResult):
        result = dump(value)
    else:
        result = {"messages": prompt_messages(value)}
        if "description" in prompt.description:
            result["description"] = prompt.description["description"]
    for message in result["messages"]:
        message["content"] = fit_content(message["content"], exchange.revision)
    result.pop("resultType", None)
    return result


def _unknown(name: str) -> MCPError:
    return invalid_params(f"Unknown prompt: {name[:100]}")
