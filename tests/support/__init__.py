"""What the tests share.

Three clients send MCP messages. :class:`.caller.Caller` has whole answers, at any entrance of this
process or at a server; :class:`.client.Client` and :class:`.client.StatelessClient` read answers as
they come, at ASGI applications or at servers, and let go of them when they like;
:func:`.asgi.post` makes one request at an ASGI application, whose every event a test can choose.
None of them is a check of what the server sends: :mod:`tests.wire.validator` looks on.
"""
