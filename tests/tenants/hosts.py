"""Partitions that are databases, named by the first part of a request's host."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from django_mcp.auth import nonblocking
from django_mcp.partitions import DatabasePartitions, enter_partition


class DatabaseByHost(DatabasePartitions):
    @nonblocking
    def of_request(self, request: HttpRequest) -> str | None:
        name = request.get_host().partition(".")[0]
        return name if name in self.all() else None


def pages_of_tenants(respond: Callable[[HttpRequest], HttpResponse]) -> Callable[..., HttpResponse]:
    """Have the pages of logins in the database of their tenant; endpoints need nothing of it."""

    def responding(request: HttpRequest) -> HttpResponse:
        name = DatabaseByHost().of_request(request)
        if name is None or not request.path.startswith("/o/"):
            return respond(request)
        with enter_partition(name):
            return respond(request)

    return responding
