"""Streamable HTTP: the endpoint, behind either door."""
