"""What Sentry is told of a call: a transaction's name, a user, tags; and a span of its own."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from contextvars import ContextVar, Token
from typing import Any, Final

import sentry_sdk
from sentry_sdk.scope import add_global_event_processor

from ...server.exchange import Exchange
from ...server.registry import MCPServer
from ...signals import CallInfo
from .hiding import hidden, secrets_in_frames, secrets_of

OP: Final = "mcp.server"
"""What Sentry calls the operation of its spans."""

_HOOKS: Final = (
    "before_send",
    "before_send_transaction",
    "before_send_log",
    "before_send_metric",
    "before_send_span",
)
"""The options of a client that say what happens to something before it is sent."""

Event = dict[str, Any]
Hint = dict[str, Any]


class CallScope:
    """A scope of Sentry's for one call, so that nothing of it is in what comes later."""

    def __init__(self, call: CallInfo, exchange: Exchange, server: MCPServer) -> None:
        subject = "" if call.method.startswith("resources/") else call.name
        self.name = f"{call.method} {subject}".strip()
        self.secrets = secrets_of(exchange)
        self._call = call
        self._entered = ExitStack()
        self._token: Token[CallScope | None] | None = None

    def enter(self) -> None:
        """Have everything that is sent from here on belong to the call."""
        if not _prepare():
            return
        self._token = _current.set(self)
        scope = self._entered.enter_context(sentry_sdk.isolation_scope())
        if self._call.user_id:
            scope.set_user({"id": self._call.user_id})
        for name, value in _tags(self._call).items():
            scope.set_tag(name, value)
        title = f"MCP {self.name}"
        current = sentry_sdk.get_current_scope()
        # Of a transaction that has begun with the HTTP request, too.
        current.set_transaction_name(title, source="custom")
        if _streams_spans(sentry_sdk.get_client().options):
            return  # whose spans are of another kind
        if current.transaction is not None:
            self._entered.enter_context(sentry_sdk.start_span(op=OP, name=self.name))
        else:
            # At the mount nobody has begun one.
            transaction = sentry_sdk.start_transaction(op=OP, name=title, source="custom")
            self._entered.enter_context(transaction)

    def leave(self) -> None:
        """Leave the scope."""
        if self._token is not None:
            self._entered.close()
            _current.reset(self._token)

    def finish(self) -> None:
        """Do nothing: what there is to tell has been told."""


def _tags(call: CallInfo) -> Mapping[str, str]:
    tags = {
        "mcp.server": call.server,
        "mcp.method": call.method,
        "mcp.era": call.era,
        "mcp.revision": call.revision,
        "mcp.request_id": str(call.request_id),
        "mcp.session": call.session_id or "",
        "mcp.client": call.client_id,
    }
    if not call.method.startswith("resources/"):
        tags["mcp.name"] = call.name
    return {name: value for name, value in tags.items() if value}


def install() -> None:
    """Have every client of Sentry's hide what is secret, whenever it is set up. Once."""
    global _is_installed
    if not _is_installed:
        _is_installed = True
        add_global_event_processor(_prepare_for)
    _prepare()


def _prepare_for(event: Any, hint: Any) -> Any:
    _prepare()
    return event


def _prepare() -> bool:
    """Come before what the site wants to happen to an event; return whether any are sent.

    What is secret is hidden there and not by a processor of events, since others may add to one
    after that: nothing comes later but what the site has given to Sentry itself.
    """
    client = sentry_sdk.get_client()
    if not client.is_active():
        return False
    options: dict[str, Any] = client.options
    if not isinstance(options.get("before_send"), _Hiding):
        given = {**(options.get("_experiments") or {}), **_set(options)}
        options.update((name, _Hiding(given.get(name))) for name in _HOOKS)
    return True


def _set(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _streams_spans(options: Mapping[str, Any]) -> bool:
    given = {**(options.get("_experiments") or {}), **_set(options)}
    return given.get("trace_lifecycle") == "stream"


class _Hiding:
    """What a client of Sentry's calls before it sends something."""

    def __init__(self, then: Any) -> None:
        self._then = then

    def __call__(self, event: Event, hint: Hint) -> Any:
        scope = _current.get()
        is_error = event.get("type") in (None, "default", "error") and "event_id" in event
        if scope is not None and is_error:
            # Sentry's own integration names it after the URL as soon as an exception is reported.
            event["transaction"] = f"MCP {scope.name}"
            event["transaction_info"] = {"source": "custom"}
        known = (scope.secrets if scope is not None else frozenset()) | secrets_in_frames(hint)
        clean = hidden(event, known)
        return clean if self._then is None else self._then(clean, hint)


_current: ContextVar[CallScope | None] = ContextVar("mcp_call_scope", default=None)
_is_installed = False
