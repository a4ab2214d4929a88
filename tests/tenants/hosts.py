"""Partitions that are databases, named by the first part of a request's host."""

from __future__ import annotations

from django.http import HttpRequest

from django_mcp.auth import nonblocking
from django_mcp.partitions import DatabasePartitions


class DatabaseByHost(DatabasePartitions):
    @nonblocking
    def of_request(self, request: HttpRequest) -> str | None:
        name = request.get_host().partition(".")[0]
        return name if name in self.all() else None
