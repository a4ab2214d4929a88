"""``completion/complete``: suggestions behind the same permissions as what they complete."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any, Final

from mcp_types import CompleteRequestParams, Completion, PromptReference

from ...protocol.errors import MCPError, invalid_params
from ..context import RequestParameter
from ..exception_table import Failure, FailureKind
from ..exchange import Exchange
from ..function_call import FunctionCall, HandlerOutcome
from ..primitives import Primitive
from ..registry import MCPServer
from ..results import Result, dump
from ..scopes import check_scopes

MAX_VALUES: Final = 100
"""2025-11-25, server/utilities/completion, "Completion Results"."""

NOTHING: Final[dict[str, Any]] = {"completion": {"values": [], "total": 0, "hasMore": False}}


def complete(
    server: MCPServer, exchange: Exchange, params: CompleteRequestParams
) -> HandlerOutcome:
    """Suggest values for an argument of a prompt or a resource template."""
    reference = params.ref.name if isinstance(params.ref, PromptReference) else params.ref.uri
    target = _target(server, reference, is_prompt=isinstance(params.ref, PromptReference))
    is_visible = target is not None and target.allows(exchange.principal.user)
    if exchange.caller.checks_scopes:
        check_scopes(server, exchange.caller, target if is_visible else None)
    if target is None or not is_visible:
        raise _unknown(reference)
    completion = server.find_completion(reference, params.argument.name)
    if completion is None:
        return Result(NOTHING)
    arguments: dict[str, Any] = {"value": params.argument.value}
    if completion.takes_arguments:
        chosen = params.context.arguments if params.context else None
        arguments["arguments"] = dict(chosen or {}) if _has_context(exchange) else {}
    provided = completion.provided
    if provided is not None:
        arguments[provided.name] = provided.value(exchange)

    def fail(failure: Failure) -> HandlerOutcome:
        hidden = failure.kind is FailureKind.DENIED
        raise _unknown(reference) if hidden else invalid_params(failure.text)

    return FunctionCall(
        function=completion.function,
        arguments=arguments,
        server=server,
        exchange=exchange,
        is_async=completion.is_async,
        takes_request=isinstance(provided, RequestParameter),
        finish=_finish,
        fail=fail,
    )


def _has_context(exchange: Exchange) -> bool:
    return exchange.revision.completion_context


def _target(server: MCPServer, reference: str, *, is_prompt: bool) -> Primitive | None:
    if is_prompt:
        return server.find_prompt(reference)
    return next((each for each in server.resources if each.key == reference), None)


def _finish(value: Completion | Iterable[Any]) -> Result:
    if isinstance(value, Completion):
        return Result({"completion": _capped(dump(value))})
    # One more than can be sent tells whether there are more, without counting them all.
    values = [str(item) for item in islice(value, MAX_VALUES + 1)]
    completion: dict[str, Any] = {
        "values": values[:MAX_VALUES],
        "hasMore": len(values) > MAX_VALUES,
    }
    if len(values) <= MAX_VALUES:
        completion["total"] = len(values)
    return Result({"completion": completion})


def _capped(completion: dict[str, Any]) -> dict[str, Any]:
    if len(completion["values"]) > MAX_VALUES:
        completion |= {"values": completion["values"][:MAX_VALUES], "hasMore": True}
    return completion


def _unknown(reference: str) -> MCPError:
    return invalid_params(f"Nothing to complete: {reference[:200]}")
