"""OpenTelemetry: a span around every call, how long calls and sessions take, traces that go on.

``INSTALLED_APPS += ["django_mcp.contrib.otel"]`` switches it on. It needs the API package alone
(the extra ``otel``); which SDK records and exports is the site's affair. ``conventions`` has all
names, ``call_span`` what is recorded of a call, ``trace_context`` how a trace comes in and goes
out. The last one imports no Django: a program that is nothing but a client calls
:func:`~django_mcp.contrib.otel.trace_context.send_trace_context`.
"""
