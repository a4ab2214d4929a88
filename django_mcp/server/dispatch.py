"""From an accepted request to its answer: look up the method, run its handler, call the function.

In two steps, since where the function runs depends on what the handler has found. Whatever happens,
one outcome comes out, and the caller puts the request's own id on it. What a function of the site
raises is translated where it runs, in ``running/user_code.py``.
"""

from __future__ import annotations

import logging
from functools import lru_cache
from typing import Any

from mcp_types import SERVER_INFO_META_KEY
from pydantic import ValidationError

from ..conf import get_site_settings
from ..protocol.errors import ErrorCode, Failed, MCPError, cancelled, invalid_params
from ..protocol.lifecycle import SessionInfo
from ..protocol.messages import Notification, Request
from ..protocol.versions import Revision, fit
from ..store.database import reporting_outages
from .default_server import site_version
from .errors import CallStopped
from .exchange import Exchange
from .failures import internal_error
from .function_call import FunctionCall, HandlerOutcome, Runner
from .methods import METHODS, NOTIFICATIONS, Method
from .registry import MCPServer
from .results import Caching, Result
from .scopes import check_scopes

logger = logging.getLogger("django_mcp.server")


Begun = Result | FunctionCall | MCPError
"""What a handler has made of a request: its outcome, or the function that is to be called."""


async def begin(server: MCPServer, exchange: Exchange, runner: Runner) -> Begun:
    """Look up the method of a request to ``server``, and run its handler. Never raises."""
    request = exchange.request
    try:
        method = METHODS.get(request.method)
        if (
            method is None
            or exchange.revision not in method.revisions
            or not (method.feature is None or method.feature in server.features)
        ):
            raise _not_found(request.method, method, exchange.revision)
        if exchange.caller.checks_scopes and not method.depends_on_target:
            check_scopes(server, exchange.caller)
        if method.touches_database or server.guarded:
            begun: HandlerOutcome = await runner.run(
                _handle_with_database, method, server, exchange
            )
        elif request.is_large or request.target in server.costly_tools:
            # What may take long does not keep the loop from others.
            begun = await runner.run(_handle, method, server, exchange)
        else:
            begun = method.handler(server, exchange, _read_params(method, request))
    except Exception as error:
        return _error(error, exchange)
    return begun


async def finish(
    begun: Begun, server: MCPServer, exchange: Exchange, runner: Runner
) -> Result | MCPError:
    """Call the function, if one is to be called; return what becomes of the request.

    Never raises.
    """
    try:
        while isinstance(begun, FunctionCall):
            begun = await runner.call(begun)
        if isinstance(begun, MCPError) or not exchange.revision.modern:
            return begun
        return _complete(begun, server, exchange)
    except CallStopped:
        return cancelled()
    except Exception as error:
        return _error(error, exchange)


def _error(error: Exception, exchange: Exchange) -> MCPError:
    """Return what the client is told of an exception."""
    if isinstance(error, MCPError):
        if error.code == ErrorCode.INTERNAL_ERROR and not isinstance(error, Failed):
            logger.error("%s: %s", exchange.label, error, exc_info=error)
        return error
    return internal_error(error, exchange)


async def handle_notification(
    notification: Notification, session: SessionInfo, server: str, runner: Runner
) -> None:
    """Handle a legacy notification. An unknown one is dropped, as the protocol wants."""
    handler = NOTIFICATIONS.get(notification.method)
    if handler is not None:
        await runner.run_blocking(handler, notification, session, server)


def _handle_with_database(method: Method, server: MCPServer, exchange: Exchange) -> HandlerOutcome:
    with reporting_outages():
        return _handle(method, server, exchange)


def _handle(method: Method, server: MCPServer, exchange: Exchange) -> HandlerOutcome:
    return method.handler(server, exchange, _read_params(method, exchange.request))


def _not_found(name: str, method: Method | None, revision: Revision) -> MCPError:
    lacks = method is not None and revision in method.revisions
    why = f" (this server has no {method.feature})" if method is not None and lacks else ""
    return MCPError(ErrorCode.METHOD_NOT_FOUND, f"Method not found: {name[:100]}{why}")


def _read_params(method: Method, request: Request) -> Any:
    asked = request.params
    if "inputResponses" in asked:
        # 2026-07-28, basic/patterns/mrtr: answers that nobody asked for are ignored, of whatever
        # form.
        asked = {name: value for name, value in asked.items() if name != "inputResponses"}
    try:
        if request.many:
            return method.params.validate_many(asked)
        return method.params.validate_few(asked)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in ("params", *first["loc"]))
        raise invalid_params(f"{where}: {first['msg']}") from None


def _complete(result: Result, server: MCPServer, exchange: Exchange) -> Result:
    # 2026-07-28, basic/index: "ResultType" and "Per-response protocol fields".
    # A server's own name and version do not change; those of the default server are settings.
    settings = exchange.settings
    # Where these name no version it is that of the site, which another URLconf may belong to.
    urlconf = get_site_settings().root_urlconf
    source = (server, settings.server_name, settings.server_version, urlconf, exchange.revision)
    info = _identity(*source)
    body = {**result.body, "resultType": result.type}
    body["_meta"] = {**result.body.get("_meta", {}), SERVER_INFO_META_KEY: info}
    if result.caching is not None:
        body |= _hints(result.caching)
    result.body = body
    if result.key is not None:
        result.key = (result.key, source, result.caching)
    return result


@lru_cache(maxsize=64)
def _identity(
    server: MCPServer, default_name: str, default_version: str, urlconf: Any, revision: Revision
) -> dict[str, Any]:
    return fit("Implementation", server.implementation(default_version or site_version()), revision)


def _hints(caching: Caching) -> dict[str, Any]:
    return {"ttlMs": caching.ttl_ms, "cacheScope": caching.scope}
