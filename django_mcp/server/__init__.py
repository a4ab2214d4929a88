"""Registry, dispatch and user code: what a server offers, and how a message becomes an answer.

Knows MCP and Python; knows neither Django nor HTTP. What it needs of them comes in through
:mod:`~django_mcp.server.ports`.
"""
