"""``manage.py mcp list``: what each server offers, and to whom."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.urls import get_resolver

from ..routing import find_endpoints, path_of
from ..server.default_server import mcp
from ..server.primitives import Primitive
from ..server.registry import MCPServer
from .users import find_user

Row = tuple[str, str, str, str, str]
"""Kind, name or URI, function, permission, toolset and tags."""


def add_list(subcommands: argparse._SubParsersAction[CommandParser]) -> None:
    """Add ``list``."""
    parser = subcommands.add_parser("list", help="Show what the servers offer.")
    parser.add_argument("--server", metavar="NAME", help="Only the server of this name.")
    parser.add_argument(
        "--user",
        metavar="NAME",
        help='Only what the user of this name may see and use; "" stands for anonymous callers.',
    )
    parser.set_defaults(run=show)


def show(command: BaseCommand, options: dict[str, Any]) -> None:
    """Print a table for each server."""
    user = _user(options["user"])
    for server, urls in _servers(options["server"]).items():
        places = ", ".join(urls) or "no URL"
        command.stdout.write(command.style.MIGRATE_HEADING(f"{server.name} ({places})"))
        rows = list(_rows(server, user))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            cells = zip(row, widths, strict=True)
            line = "  ".join(text.ljust(width) for text, width in cells)
            command.stdout.write(f"  {line}".rstrip())
        if not rows:
            command.stdout.write("  Nothing, or nothing for this user." if user else "  Nothing.")


def _servers(name: str | None) -> dict[MCPServer, list[str]]:
    found: dict[MCPServer, list[str]] = {mcp: []}
    for chain, endpoint in find_endpoints(get_resolver()):
        found.setdefault(endpoint.server, []).append(f"/{path_of(chain)}")
    if not found[mcp] and len(found) > 1 and not any(_primitives(mcp)):
        del found[mcp]  # nobody has a use for it
    chosen = {server: urls for server, urls in found.items() if name in (None, server.name)}
    if not chosen:
        names = ", ".join(server.name for server in found)
        raise CommandError(f"There is no server {name!r} among those with a URL: {names}.")
    return chosen


def _user(name: str | None) -> Any:
    if name is None:
        return None
    return find_user(name) if name else AnonymousUser()


def _rows(server: MCPServer, user: Any) -> Iterator[Row]:
    for kind, primitive in _primitives(server):
        if user is None or primitive.allows(user):
            signature = primitive.signature
            module = getattr(signature.function, "__module__", None)
            function = f"{module}.{signature.label}" if module else signature.label
            names = ", ".join(sorted(getattr(primitive, "toolsets", ())))
            yield kind, primitive.key, function, _permission(primitive), names


def _primitives(server: MCPServer) -> Iterator[tuple[str, Any]]:
    kinds: dict[str, Sequence[Primitive]] = {
        "tool": server.tools,
        "resource": server.resources,
        "prompt": server.prompts,
    }
    for kind, primitives in kinds.items():
        for primitive in primitives:
            yield kind, primitive


def _permission(primitive: Primitive) -> str:
    wanted = primitive.permission
    if wanted is None or isinstance(wanted, str):
        return wanted or ""
    return f"{getattr(wanted, '__qualname__', wanted)}(user)"
