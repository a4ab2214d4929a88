"""A trace on its way through ``_meta``: in with a request of a client, out with one to a server.

2026-07-28, basic/index, "Trace Context": ``traceparent``, ``tracestate`` and ``baggage``, in the
formats of the W3C. Clients of earlier revisions send them, too. This module imports no Django.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.context import Context
from opentelemetry.propagators.composite import CompositePropagator
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from ...client.outgoing_meta import additions

KEYS: Final = ("traceparent", "tracestate", "baggage")

_propagator: Final = CompositePropagator([TraceContextTextMapPropagator(), W3CBaggagePropagator()])


def received(meta: Mapping[str, Any], context: Context) -> Context:
    """Return ``context`` with the trace and the baggage in a request's ``_meta``, if any."""
    carrier = {key: value for key in KEYS if isinstance(value := meta.get(key), str)}
    return _propagator.extract(carrier, context) if carrier else context


def to_send() -> dict[str, str]:
    """Return the present trace, as members of ``_meta``."""
    carrier: dict[str, str] = {}
    _propagator.inject(carrier)
    return carrier


def send_trace_context() -> None:
    """Have every client of this process name the present trace in its requests.

    Servers of others then read its ids, and what the program has put into its baggage.
    """
    if to_send not in additions:
        additions.append(to_send)
