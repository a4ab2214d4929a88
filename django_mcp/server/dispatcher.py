"""From an accepted request to its answer: look up the method, run its handler, make its calls.

This is the only place that catches every exception. Whatever happens, one outcome comes out, and
the caller puts the request's own id on it.
"""

from __future__ import annotations

import logging
from functools import lru_cache
from typing import Any

from mcp_types import SERVER_INFO_META_KEY
from pydantic import ValidationError

from ..protocol.errors import ErrorCode, Failed, MCPError, cancelled, invalid_params
from ..protocol.lifecycle import SessionInfo
from ..protocol.messages import Notification, Request
from ..protocol.versions import Revision, fit
from ..store.database import available
from .calling import Caching, Call, CallStopped, CallTimedOut, Outcome, Result
from .exchange import Exchange
from .failures import failed
from .methods import METHODS, NOTIFICATIONS, Method
from .ports import Runner
from .questions.rounds import InputRequired
from .registry import MCPServer

logger = logging.getLogger("django_mcp.server")


async def dispatch(exchange: Exchange, runner: Runner) -> Result | MCPError:
    """Answer one request. Never raises."""
    try:
        result = await _answer(exchange, runner)
    except MCPError as error:
        if error.code == ErrorCode.INTERNAL_ERROR and not isinstance(error, Failed):
            logger.error("%s: %s", exchange.label, error, exc_info=error)
        return error
    except Exception as error:
        return failed(error, exchange)
    return _complete(result, exchange)


async def notify(
    notification: Notification, session: SessionInfo, server: str, runner: Runner
) -> None:
    """Take a legacy notification. One that nobody handles is dropped, as the protocol wants."""
    handler = NOTIFICATIONS.get(notification.method)
    if handler is not None:
        await runner.blocking(handler, notification, session, server)


async def _answer(exchange: Exchange, runner: Runner) -> Result:
    method = _find_method(exchange)
    outcome: Outcome
    if method.touches_database or exchange.server.guarded:
        outcome = await runner.ask(_with_database, method, exchange)
    elif exchange.request.is_large or _is_costly(method, exchange):
        # What may take long does not keep the loop from others.
        outcome = await runner.ask(_handle, method, exchange)
    else:
        outcome = _handle(method, exchange)
    while isinstance(outcome, Call):
        outcome = await _make(outcome, runner)
    return outcome


def _is_costly(method: Method, exchange: Exchange) -> bool:
    if method is not METHODS["tools/call"]:
        return False
    tool = exchange.server.find_tool(exchange.request.target)
    return tool is not None and tool.signature.is_costly


def _with_database(method: Method, exchange: Exchange) -> Outcome:
    with available():
        return _handle(method, exchange)


def _handle(method: Method, exchange: Exchange) -> Outcome:
    return method.handler(exchange, _read_params(method, exchange.request))


async def _make(call: Call, runner: Runner) -> Outcome:
    try:
        return await runner.call(call)
    except CallStopped:
        raise cancelled() from None
    except (InputRequired, CallTimedOut) as raised:
        if call.rescue is None:
            raise
        return call.rescue.outcome(raised)


def _find_method(exchange: Exchange) -> Method:
    name, revision = exchange.request.method, exchange.revision
    method = METHODS.get(name)
    if method is not None and method.serves(exchange.server, revision):
        return method
    lacks = method is not None and revision in method.revisions
    why = f" (this server has no {method.feature})" if method is not None and lacks else ""
    raise MCPError(ErrorCode.METHOD_NOT_FOUND, f"Method not found: {name[:100]}{why}")


def _read_params(method: Method, request: Request) -> Any:
    # 2026-07-28, basic/patterns/mrtr: answers that nobody asked for are ignored, of whatever form.
    asked = {name: value for name, value in request.params.items() if name != "inputResponses"}
    try:
        return method.params.validate(asked, many=request.many)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in ("params", *first["loc"]))
        raise invalid_params(f"{where}: {first['msg']}") from None


def _complete(result: Result, exchange: Exchange) -> Result:
    if not exchange.revision.modern:
        return result
    # 2026-07-28, basic/index: "ResultType" and "Per-response protocol fields".
    server = exchange.server
    version = server.version or exchange.version
    info = _identity(server, server.name, version, exchange.revision)
    meta = {**result.body.get("_meta", {}), SERVER_INFO_META_KEY: info}
    hints = _hints(result.caching)
    result.body = {**result.body, "resultType": result.type, "_meta": meta, **hints}
    if result.key is not None:
        result.key = (result.key, server, server.name, version, result.caching)
    return result


@lru_cache(maxsize=64)
def _identity(server: MCPServer, name: str, version: str, revision: Revision) -> dict[str, Any]:
    # By name and version as well, for those of the default server are settings.
    return fit("Implementation", server.implementation(version), revision)


def _hints(caching: Caching | None) -> dict[str, Any]:
    return {} if caching is None else {"ttlMs": caching.ttl_ms, "cacheScope": caching.scope}
