"""A server with an app, clients that show apps, and templates and static files of a test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.core.checks import CheckMessage
from django.test import override_settings

from django_mcp import MCPServer
from django_mcp.testing import MCPClient
from tests.server.support import MODERN

EXTENSION = "io.modelcontextprotocol/ui"
HTML = "text/html;profile=mcp-app"
SHOWS_APPS = {"extensions": {EXTENSION: {"mimeTypes": [HTML]}}}
BOARD = "ui://tickets/board"
PLAIN = "<!doctype html><title>Board</title><p>Nothing here yet.</p>"


@contextmanager
def written(directory: Path, files: Mapping[str, str | bytes]) -> Iterator[None]:
    """Have the site find files: those that end in ``.html`` as templates, others as static ones."""
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
    engine = {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [directory],
        "APP_DIRS": True,
        "OPTIONS": {
            # As a site has them; a page of an app must not see any of it.
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
            ]
        },
    }
    with override_settings(TEMPLATES=[engine], STATICFILES_DIRS=[directory]):
        yield


def server_with(template: str = "board.html", **options: Any) -> MCPServer:
    server = MCPServer("test", version="2.1")
    server.app(BOARD, template=template, **options)
    return server


def client_of(
    server: MCPServer, capabilities: Mapping[str, Any] = SHOWS_APPS, *, revision: str = MODERN
) -> MCPClient:
    return MCPClient(server, revision=revision, capabilities=capabilities)


def html_of(server: MCPServer) -> str:
    (contents,) = client_of(server).read(BOARD).assert_ok().result["contents"]
    return contents["text"]


def found(server: MCPServer) -> list[CheckMessage]:
    (app,) = server.apps
    return list(app.check())
