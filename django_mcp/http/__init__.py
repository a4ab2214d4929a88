"""Streamable HTTP: what comes in at an endpoint, and what goes out.

Begin with :mod:`~django_mcp.http.endpoint`, which every request passes, and go on with
:func:`~django_mcp.http.post.handle_post`. The two ways in are :mod:`~django_mcp.http.views` and
``django_mcp.asgi``; nothing below this package may import it.
"""
