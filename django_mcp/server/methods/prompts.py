"""``prompts/list`` and ``prompts/get``."""

from __future__ import annotations

from typing import Any

from mcp_types import GetPromptRequestParams, GetPromptResult, PaginatedRequestParams

from ...protocol.errors import MCPError, invalid_params
from ...protocol.versions import fit_content
from ..arguments import ArgumentError
from ..exception_table import Failure, FailureKind
from ..exchange import Exchange
from ..file_links import with_links
from ..function_call import FunctionCall, HandlerOutcome
from ..paging import describe, language_of, list_caching, list_result, page, read_cursor
from ..primitives import Prompt
from ..questions.asking import Questions
from ..registry import MCPServer
from ..results import Result, collect, dump, prompt_messages
from ..scopes import check_scopes


def list_prompts(server: MCPServer, exchange: Exchange, params: PaginatedRequestParams) -> Result:
    """List the prompts that the caller may use."""
    prompts = server.prompts
    visible, following = page(prompts, read_cursor(params.cursor, exchange), exchange)
    key = (visible, exchange.revision, language_of(visible))
    described = describe("Prompt", *key)
    caching = list_caching(prompts, exchange)
    return list_result("prompts", described, following, caching, exchange, key)


def get(server: MCPServer, exchange: Exchange, params: GetPromptRequestParams) -> HandlerOutcome:
    """Get a prompt's messages (2025-11-25, server/prompts, "Error Handling": -32602)."""
    prompt = server.find_prompt(params.name)
    is_visible = prompt is not None and prompt.allows(exchange.principal.user)
    if exchange.caller.checks_scopes:
        check_scopes(server, exchange.caller, prompt if is_visible else None)
    if prompt is None or not is_visible:
        raise _unknown(params.name)
    exchange.guard = prompt.guard
    questions = Questions(exchange, prompt.key, params.arguments)
    try:
        values = prompt.signature.bind(
            params.arguments or {},
            strict=exchange.settings.strict_arguments,
            exchange=exchange,
            questions=questions,
        )
    except ArgumentError as error:
        raise invalid_params(str(error)) from None
    questions.restore()

    def fail(failure: Failure) -> HandlerOutcome:
        # A prompt has no result that could carry an error, so what the function wants to say goes
        # into the protocol's own.
        hidden = failure.kind is FailureKind.DENIED
        raise _unknown(params.name) if hidden else invalid_params(failure.text)

    return FunctionCall(
        function=prompt.signature.prepared(exchange, questions),
        arguments=values,
        server=server,
        exchange=exchange,
        questions=questions,
        is_async=prompt.signature.is_async,
        takes_request=prompt.signature.takes_request,
        sends_messages=prompt.signature.sends_messages,
        finish=lambda value: Result(_result(prompt, value, exchange)),
        fail=fail,
        atomic=prompt.atomic,
    )


def _result(prompt: Prompt, value: Any, exchange: Exchange) -> dict[str, Any]:
    value = collect(value)
    if isinstance(value, GetPromptResult):
        result = dump(value)
    else:
        result = {"messages": prompt_messages(with_links(value, exchange))}
        if "description" in prompt.description:
            result["description"] = prompt.describe()["description"]
    for message in result["messages"]:
        message["content"] = fit_content(message["content"], exchange.revision)
    result.pop("resultType", None)
    return result


def _unknown(name: str) -> MCPError:
    return invalid_params(f"Unknown prompt: {name[:100]}")
