"""Calls while they run: where the site's functions run, and how their client is reached meanwhile.

Begin with :mod:`~django_mcp.running.running_call`; :mod:`~django_mcp.running.user_code` decides in
which thread or on which loop a function runs. Only ``django_mcp.http`` and what is above it may
import this package.
"""
