"""django_mcp: the view in a WSGI server, the mount in an ASGI server."""
