"""What is recorded of a call: a span around it, and how long it took."""

from __future__ import annotations

from contextvars import Token
from typing import Any, Final

from opentelemetry import context as contexts
from opentelemetry import metrics, trace
from opentelemetry.trace import Link, SpanKind, Status, StatusCode

from ...conf import get_settings
from ...server.exchange import Exchange
from ...server.methods import METHODS
from ...server.registry import MCPServer
from ...signals import CallInfo
from ...store.sessions.ended import EndedSession
from . import conventions as names
from .trace_context import received

# Both stand for what the site's SDK provides, whenever it is set up.
_tracer: Final = trace.get_tracer("django_mcp")
_meter: Final = metrics.get_meter("django_mcp")
_operations: Final = _meter.create_histogram(
    names.OPERATION_DURATION,
    unit=names.SECONDS,
    description="Duration of requests, from their beginning until the answer is there.",
    explicit_bucket_boundaries_advisory=names.BUCKETS,
)
_sessions: Final = _meter.create_histogram(
    names.SESSION_DURATION,
    unit=names.SECONDS,
    description="Duration of sessions, from their opening to their end.",
    explicit_bucket_boundaries_advisory=names.BUCKETS,
)


class CallSpan:
    """A span around a call. Spans that its function begins are children of it, on any thread."""

    def __init__(self, call: CallInfo, exchange: Exchange, server: MCPServer) -> None:
        self._call = call
        self._attributes = _common_attributes(call, server)
        present = contexts.get_current()
        parent = received(exchange.request.meta, present)
        around = trace.get_current_span(present).get_span_context()
        # Where the client names its own, that of the HTTP request is no parent any more.
        named = trace.get_current_span(parent).get_span_context()
        is_elsewhere = around.is_valid and named != around
        subject = self._attributes.get(names.TOOL) or self._attributes.get(names.PROMPT)
        method = self._attributes[names.METHOD]
        self._span = _tracer.start_span(
            f"{method} {subject}" if subject else method,
            parent,
            SpanKind.SERVER,
            {**self._attributes, **_own_attributes(call)},
            [Link(around)] if is_elsewhere else None,
        )
        self._context = trace.set_span_in_context(self._span, parent)
        self._token: Token[contexts.Context] | None = None

    def enter(self) -> None:
        """Make it the current span."""
        self._token = contexts.attach(self._context)

    def leave(self) -> None:
        """Let the one before be the current span again."""
        if self._token is not None:
            contexts.detach(self._token)

    def finish(self) -> None:
        """End it, and record how long the call took."""
        call, attributes = self._call, self._attributes
        failed: dict[str, str] = {}
        if call.error_code is not None:
            failed = {names.ERROR_TYPE: str(call.error_code)}
            self._span.set_attribute(names.STATUS_CODE, str(call.error_code))
        elif call.outcome == "tool_error":
            failed = {names.ERROR_TYPE: names.TOOL_ERROR}
        if failed:
            self._span.set_attributes(failed)
            self._span.set_status(Status(StatusCode.ERROR, call.error or None))
        # In the context of the span, by which an SDK may give examples for a histogram.
        _operations.record(call.duration, {**attributes, **failed}, context=self._context)
        self._span.end()


def record_session(session: EndedSession) -> None:
    """Record how long a session has lasted."""
    _sessions.record(session.seconds, {names.REVISION: session.revision})


def _common_attributes(call: CallInfo, server: MCPServer) -> dict[str, str]:
    """Return what spans and histograms have in common: nothing that a client can make up."""
    method = call.method if call.method in METHODS else names.OTHER
    found = {names.METHOD: method, names.REVISION: call.revision}
    if method == "tools/call":
        found[names.OPERATION] = names.EXECUTE_TOOL
        if server.find_tool(call.name) is not None:
            found[names.TOOL] = call.name
    elif method == "prompts/get" and server.find_prompt(call.name) is not None:
        found[names.PROMPT] = call.name
    return found


def _own_attributes(call: CallInfo) -> dict[str, Any]:
    """Return what a span says beside that."""
    settings = get_settings()
    found = {names.REQUEST_ID: str(call.request_id)}
    if call.session_id is not None:
        found[names.SESSION_ID] = call.session_id
    if settings.otel_resource_uris and call.method.startswith("resources/") and call.name:
        found[names.RESOURCE_URI] = call.name
    if settings.otel_users and call.user_id:
        found[names.USER_ID] = call.user_id
    return found
