"""OpenTelemetry: spans around functions, traces from client to server, and durations."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from contextvars import Context
from typing import Any

import httpx
import pytest
from django.utils import timezone
from opentelemetry import baggage, metrics, trace
from opentelemetry import context as contexts
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, PeriodicExportingMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from django_mcp.client import Client, outgoing_meta
from django_mcp.client.bounds import Deadline
from django_mcp.client.outgoing_request import OutgoingRequest
from django_mcp.contrib.otel import apps as otel_apps
from django_mcp.contrib.otel import call_span, conventions
from django_mcp.models import Session
from django_mcp.store.sessions import ended
from django_mcp.store.sessions.session_rows import end_sessions
from tests.support.caller import Caller
from tests.support.messages import LEGACY, REVISIONS, modern, tool_call
from tests.support.sites import run

from . import site
from .conftest import TOKEN
from .otlp import collector

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{PARENT}-01"


@pytest.fixture(scope="session")
def sdk() -> tuple[InMemorySpanExporter, InMemoryMetricReader, TracerProvider]:
    """What a site sets up, once in a process."""
    exporter, reader = InMemorySpanExporter(), InMemoryMetricReader()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    metrics.set_meter_provider(MeterProvider([reader]))
    return exporter, reader, provider


@pytest.fixture(autouse=True)
def spans(sdk: Any) -> Iterator[InMemorySpanExporter]:
    """The app as it is installed; and what has been recorded."""
    exporter, reader, _ = sdk
    additions = list(outgoing_meta.additions)
    otel_apps.OTelConfig("django_mcp.contrib.otel", sys.modules["django_mcp.contrib.otel"]).ready()
    exporter.clear()
    reader.get_metrics_data()
    yield exporter
    outgoing_meta.additions[:] = additions


@pytest.fixture
def tracer(sdk: Any) -> trace.Tracer:
    """That of the site."""
    provider: TracerProvider = sdk[2]
    return provider.get_tracer("site")


def named(exporter: InMemorySpanExporter, name: str) -> ReadableSpan:
    (span,) = [each for each in exporter.get_finished_spans() if each.name == name]
    return span


def call_with(caller: Caller, meta: dict[str, Any], tool: str = "add") -> None:
    message, headers = modern("tools/call", name=tool, arguments={"a": 1, "b": 2}, meta=meta)
    assert caller.post(message, **headers).status == 200


@pytest.mark.parametrize("tool", ["add", "aadd"])
def test_a_call_is_a_span_around_the_function(caller, spans, tracer, tool):
    def inside() -> int:
        with tracer.start_as_current_span("inside"):
            return trace.get_current_span().get_span_context().trace_id

    site.look = inside
    answer = caller.call("tools/call", "seven", name=tool, arguments={"a": 1, "b": 2})
    assert answer.result["isError"] is False
    span, child = named(spans, f"tools/call {tool}"), named(spans, "inside")
    assert child.parent is not None
    assert child.parent.span_id == span.context.span_id
    assert (span.kind, span.status.status_code) == (SpanKind.SERVER, StatusCode.UNSET)
    assert span.start_time <= child.start_time
    assert child.end_time <= span.end_time
    assert dict(span.attributes) == {
        "mcp.method.name": "tools/call",
        "mcp.protocol.version": "2026-07-28",
        "jsonrpc.request.id": "seven",
        "gen_ai.tool.name": tool,
        "gen_ai.operation.name": "execute_tool",
    }


def test_also_where_the_answer_has_long_begun_to_stream(entrance, caller, spans, tracer):
    site.look = lambda: tracer.start_span("inside").end()
    caller.tool("speak_and_crash")
    span, child = named(spans, "tools/call speak_and_crash"), named(spans, "inside")
    assert child.parent.span_id == span.context.span_id
    assert span.attributes["error.type"] == "tool_error"


@pytest.mark.parametrize("revision", LEGACY)
def test_a_session_is_named_by_its_public_id(caller, spans, revision):
    member = caller.opened(revision)
    member.tool("add", a=1, b=2)
    span = named(spans, "tools/call add")
    assert span.attributes["mcp.session.id"] == str(Session.objects.get().pk)
    everything = " ".join(each.to_json() for each in spans.get_finished_spans())
    assert str(member.session) not in everything


@pytest.mark.parametrize(
    ("tool", "kind"),
    [("crash", "tool_error"), ("refuse", "tool_error"), ("unknown", "-32602")],
)
def test_an_error_has_its_type(caller, spans, tool, kind):
    caller.tool(tool)
    name = "tools/call" if tool == "unknown" else f"tools/call {tool}"
    span = named(spans, name)
    assert span.attributes["error.type"] == kind
    assert span.status.status_code is StatusCode.ERROR


def test_what_a_client_makes_up_is_no_name(caller, spans):
    caller.call("no/method")
    caller.tool("no tool")
    caller.call("prompts/get", name="no prompt")
    names = [each.name for each in spans.get_finished_spans()]
    assert names == ["_OTHER", "tools/call", "prompts/get"]
    assert "no " not in str([dict(each.attributes) for each in spans.get_finished_spans()])


def test_uris_arguments_results_and_users_are_not_recorded(caller, spans, settings):
    caller.call("resources/read", uri="note://7777")
    caller.tool("add", a=4444, b=1111)
    caller.call("prompts/get", name="greet", arguments={"name": "Ariadne"})
    found = spans.get_finished_spans()
    everything = str(
        [(each.name, dict(each.attributes), each.status.description) for each in found]
    )
    for secret in ("7777", "4444", "5555", "Ariadne", "enduser", "anna"):
        assert secret not in everything
    assert named(spans, "prompts/get greet").attributes["gen_ai.prompt.name"] == "greet"


def test_uris_and_users_are_where_the_site_wants_it(caller, spans, settings):
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "OTEL_RESOURCE_URIS": True, "OTEL_USERS": True}
    caller.call("resources/read", uri="note://7777")
    span = named(spans, "resources/read")
    assert span.attributes["mcp.resource.uri"] == "note://7777"
    assert span.attributes["enduser.id"] == "7"


def test_the_trace_of_the_client_goes_on(caller, spans):
    site.look = lambda: baggage.get_baggage("desk")
    call_with(caller, {"traceparent": TRACEPARENT, "tracestate": "a=b", "baggage": "desk=4"})
    span = named(spans, "tools/call add")
    assert f"{span.context.trace_id:032x}" == TRACE
    assert f"{span.parent.span_id:016x}" == PARENT
    assert span.context.trace_state.get("a") == "b"
    assert site.seen.notes == ["4"]
    assert span.links == ()


def test_baggage_may_come_alone(caller, spans):
    site.look = lambda: baggage.get_baggage("desk")
    call_with(caller, {"baggage": "desk=4"})
    assert site.seen.notes == ["4"]
    assert named(spans, "tools/call add").parent is None


def test_also_in_a_session(caller, spans):
    member = caller.opened()
    message = tool_call("add", a=1, b=2)
    message["params"]["_meta"] = {"traceparent": TRACEPARENT}
    member.post(message)
    assert f"{named(spans, 'tools/call add').context.trace_id:032x}" == TRACE


@pytest.mark.parametrize("value", ["nonsense", 7, None, "00-0-0-00", {"a": 1}])
def test_a_trace_that_is_none_is_ignored(caller, spans, value):
    call_with(caller, {"traceparent": value, "baggage": value})
    assert named(spans, "tools/call add").parent is None


@pytest.mark.parametrize("has_own", [True, False])
def test_the_span_of_the_http_request_is_a_link_or_the_parent(caller, spans, tracer, has_own):
    meta = {"traceparent": TRACEPARENT} if has_own else {}
    with tracer.start_as_current_span("POST /mcp") as around:
        call_with(caller, meta)
    span, outer = named(spans, "tools/call add"), around.get_span_context()
    if has_own:
        assert [each.context.span_id for each in span.links] == [outer.span_id]
        assert f"{span.context.trace_id:032x}" == TRACE
    else:
        assert span.parent.span_id == outer.span_id
        assert span.links == ()


@pytest.mark.parametrize("tool", ["add", "aadd"])
def test_the_line_of_the_log_belongs_to_the_span(caller, spans, caplog, tool):
    ids: list[int] = []

    def note(record: logging.LogRecord) -> bool:
        ids.append(trace.get_current_span().get_span_context().span_id)
        return True

    caplog.set_level(logging.INFO, "django_mcp.calls")
    logger = logging.getLogger("django_mcp.calls")
    logger.addFilter(note)
    caller.tool(tool, a=1, b=2)
    logger.removeFilter(note)
    assert ids == [named(spans, f"tools/call {tool}").context.span_id]


def test_nothing_of_a_call_is_left_in_the_context_of_the_next(caller, spans):
    caller.tool("add", a=1, b=2)
    assert not trace.get_current_span().get_span_context().is_valid
    caller.call("tools/list")
    assert named(spans, "tools/list").parent is None


def test_calls_of_a_batch_are_spans_of_their_own(caller, spans):
    member = caller.opened("2025-03-26")
    member.post([tool_call("add", 1, a=1, b=2), tool_call("aadd", 2, a=1, b=2)])
    one, other = named(spans, "tools/call add"), named(spans, "tools/call aadd")
    assert one.parent is other.parent is None


def points(reader: InMemoryMetricReader, name: str) -> list[Any]:
    data = reader.get_metrics_data()
    return [
        point
        for resource in (data.resource_metrics if data else ())
        for scope in resource.scope_metrics
        for metric in scope.metrics
        if metric.name == name
        for point in metric.data.data_points
    ]


def test_durations_are_a_histogram(caller, sdk):
    before = {
        json.dumps(dict(each.attributes), sort_keys=True): each.count
        for each in points(sdk[1], "mcp.server.operation.duration")
    }
    caller.tool("add", a=1, b=2)
    caller.tool("refuse")
    caller.tool("no tool")
    after = {
        json.dumps(dict(each.attributes), sort_keys=True): each
        for each in points(sdk[1], "mcp.server.operation.duration")
    }
    grown = [
        dict(each.attributes) for key, each in after.items() if each.count > before.get(key, 0)
    ]
    common = {
        "mcp.method.name": "tools/call",
        "mcp.protocol.version": "2026-07-28",
        "gen_ai.operation.name": "execute_tool",
    }
    assert sorted(grown, key=str) == sorted(
        [
            {**common, "gen_ai.tool.name": "add"},
            {**common, "gen_ai.tool.name": "refuse", "error.type": "tool_error"},
            {**common, "error.type": "-32602"},
        ],
        key=str,
    )
    assert next(iter(after.values())).explicit_bounds == conventions.BUCKETS


@pytest.mark.parametrize("ending", ["client", "admin", "expired"])
def test_sessions_that_this_process_ends_are_measured(caller, sdk, ending, settings):
    def total() -> int:
        return sum(each.count for each in points(sdk[1], "mcp.server.session.duration"))

    before = total()
    member = caller.opened("2025-06-18")
    if ending == "client":
        assert member.send("DELETE").status == 204
        assert member.send("DELETE").status == 404
    elif ending == "admin":
        assert end_sessions(Session.objects.all()) == 1
        assert end_sessions(Session.objects.all()) == 0
    else:
        settings.DJANGO_MCP = {**settings.DJANGO_MCP, "MAX_SESSIONS_PER_USER": 1}
        caller.opened("2025-06-18")
    assert total() == before + 1
    kinds = [dict(each.attributes) for each in points(sdk[1], "mcp.server.session.duration")]
    assert {"mcp.protocol.version": "2025-06-18"} in kinds
    assert {len(each) for each in kinds} == {1}


def test_a_session_that_another_process_ends_at_the_same_moment_is_not_measured_twice(
    caller, monkeypatch
):
    def too_late(end: Any) -> int:
        Session.objects.update(state=Session.State.ENDED, ended=timezone.now())
        return int(end())

    heard: list[Any] = []
    ended.watchers.append(heard.append)
    caller.opened()
    with monkeypatch.context() as patch:
        patch.setattr("django_mcp.store.sessions.session_rows.with_retries", too_late)
        assert end_sessions(Session.objects.all()) == 0
    assert heard == []


def test_a_collector_reads_what_is_exported(caller, monkeypatch):
    """OTLP, protobuf over HTTP, as it goes over the wire."""
    with collector() as found:
        provider = TracerProvider()
        exporter = OTLPSpanExporter(endpoint=f"{found.url}/v1/traces")
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        reader = PeriodicExportingMetricReader(
            OTLPMetricExporter(endpoint=f"{found.url}/v1/metrics"), 60_000
        )
        meters = MeterProvider([reader])
        histogram = meters.get_meter("django_mcp").create_histogram(
            conventions.OPERATION_DURATION, unit="s"
        )
        monkeypatch.setattr(call_span, "_tracer", provider.get_tracer("django_mcp"))
        monkeypatch.setattr(call_span, "_operations", histogram)
        call_with(caller, {"traceparent": TRACEPARENT}, tool="aadd")
        caller.tool("crash")
        provider.shutdown()
        meters.shutdown()
    good, bad = sorted(found.spans, key=lambda span: span.name)
    assert (good.name, good.kind) == ("tools/call aadd", 2)  # SPAN_KIND_SERVER
    assert good.trace_id.hex() == TRACE
    assert good.parent_span_id.hex() == PARENT
    attributes = {each.key: each.value.string_value for each in bad.attributes}
    assert attributes["error.type"] == "tool_error"
    assert bad.status.code == 2  # STATUS_CODE_ERROR
    (metric,) = found.metrics
    assert (metric.name, metric.unit) == ("mcp.server.operation.duration", "s")
    assert sum(point.count for point in metric.histogram.data_points) == 2
    assert TOKEN.encode() not in b"".join(found.bodies)


class Apart(httpx.AsyncBaseTransport):
    """Sends to an application that has nothing of the client's context, as another process."""

    def __init__(self, application: Any) -> None:
        self._inner = httpx.ASGITransport(app=application)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        sending = self._inner.handle_async_request(request)
        return await asyncio.create_task(sending, context=Context())


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_client_gives_its_trace_on(application, spans, tracer, revision):
    own = {"Authorization": f"Bearer {TOKEN}"}
    site.look = lambda: baggage.get_baggage("desk")

    async def main() -> None:
        transport = Apart(application)
        url = "http://testserver/mcp"
        async with Client(url, revision=revision, headers=own, transport=transport) as client:
            with tracer.start_as_current_span("agent"):
                token = contexts.attach(baggage.set_baggage("desk", "4"))
                await client.call_tool("aadd", {"a": 1, "b": 2})
                contexts.detach(token)
            await client.call_tool("add", {"a": 1, "b": 2})

    run(main())
    agent = named(spans, "agent")
    span, alone = named(spans, "tools/call aadd"), named(spans, "tools/call add")
    assert span.context.trace_id == agent.context.trace_id
    assert span.parent.span_id == agent.context.span_id
    assert alone.parent is None
    assert site.seen.notes == ["4", None]


def test_what_a_caller_gives_in_meta_comes_first():
    async def meta() -> Any:
        asked = OutgoingRequest("ping", {"_meta": {"traceparent": "own"}}, Deadline("ping", 1, 1))
        return json.loads(asked.body({}))["params"]["_meta"]

    outgoing_meta.additions.append(lambda: {"traceparent": "added", "other": 1})
    assert asyncio.run(meta()) == {"traceparent": "own", "other": 1}


def in_process(code: str) -> str:
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings", "DATABASE_URL": ""}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


WITH_APP = """
import sys
sys.modules[{without!r}] = None
from django.conf import settings
settings.INSTALLED_APPS.append("django_mcp.contrib.otel")
import django
from django.core.exceptions import ImproperlyConfigured
try:
    django.setup()
except ImproperlyConfigured as error:
    print(error)
else:
    from django.test.utils import setup_databases
    from django_mcp.testing import MCPClient
    setup_databases(0, interactive=False)
    print(MCPClient(revision="2026-07-28").list_tools() is not None)
"""


@pytest.mark.processes
def test_the_api_is_all_that_it_needs():
    assert in_process(WITH_APP.format(without="opentelemetry.sdk")) == "True\n"


@pytest.mark.processes
def test_without_the_api_the_site_is_told_what_to_install():
    assert "django-mcp-endpoints[otel]" in in_process(WITH_APP.format(without="opentelemetry"))


@pytest.mark.processes
def test_a_program_that_is_a_client_alone_needs_no_django():
    in_process(
        """
import sys
sys.modules["django"] = None
from django_mcp.client import Client
from django_mcp.contrib.otel.trace_context import send_trace_context
from django_mcp.client.outgoing_meta import additions
assert additions == []
send_trace_context()
send_trace_context()
assert len(additions) == 1
"""
    )
