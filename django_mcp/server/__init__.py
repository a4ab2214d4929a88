"""Registry, dispatch and user code: what a server offers, and how a message becomes an answer.

Knows MCP, Python and Django, and nothing of HTTP. Begin with :mod:`.registry` for what a site says,
with :mod:`.dispatcher` for what becomes of a request. Whoever runs it implements :mod:`.ports`.
"""
