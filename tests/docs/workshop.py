"""Plays pages: each in a project of its own, most of them a copy of the tutorial's."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from .markdown import ROOT, Snippet, snippets, text_of
from .project import Project, free_port

DATABASE = "mcp_offices"
"""What pages make on the server."""
DROP = ("dropdb", "--if-exists", "--force", DATABASE)
TUTORIAL = "docs/tutorial/first-server.md"


class Workshop:
    """Where projects are made; one for all tests, since making the tutorial's takes a while."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._made: Path | None = None
        self._count = 0
        # One for all, because a page may use a client that the tutorial has written.
        self._port = free_port()

    def play(self, page: str) -> None:
        """Do all that a page says."""
        if page == TUTORIAL:
            self._tutorial()
        else:
            for base, own in _by_project(page, first="tutorial"):
                if base != "postgresql":
                    self._build(base, own)
                elif (url := os.environ.get("DATABASE_URL", "")).startswith("postgres"):
                    with scratch_database(url):
                        self._build(base, own)

    def _build(self, base: str, own: list[Snippet]) -> Path:
        project = self._begin(base)
        try:
            for snippet in own:
                project.play(snippet)
            project.settle()
        finally:
            project.close()
        project.check(own[-1].where)
        return project.root

    def _begin(self, name: str) -> Project:
        self._count += 1
        place = self._root / f"{self._count:02d}"
        logs = place / "logs"
        logs.mkdir(parents=True)
        project = Project(place / "project", logs, port=self._port)
        if name in ("empty", "postgresql", "wagtail"):
            project.root.mkdir()
            if name == "wagtail":
                project.settings = "mysite.settings.dev"
        elif name == "demo":
            project.settings = "example_project.settings"
            _copy_demo(project.root)
        else:
            shutil.copytree(self._tutorial(), project.root)
        return project

    def _tutorial(self) -> Path:
        if self._made is None:
            ((base, own),) = _by_project(TUTORIAL, first="empty")
            self._made = self._build(base, own)
        return self._made


@contextmanager
def scratch_database(url: str) -> Iterator[None]:
    """Let the commands of a page find the server, and leave no database behind on it."""
    parts = urlsplit(url)
    server = {"HOST": parts.hostname, "PORT": parts.port, "USER": parts.username}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**server, "PASSWORD": parts.password}.items():
            if value:
                patch.setenv(f"PG{name}", str(value))
        subprocess.run(DROP, check=True)
        try:
            yield
        finally:
            subprocess.run(DROP, check=True)


def _copy_demo(place: Path) -> None:
    # Without a database that somebody may have made beside it.
    shutil.copytree(ROOT / "example_project", place / "example_project")
    shutil.copy(ROOT / "manage.py", place)


def _by_project(page: str, *, first: str) -> Iterator[tuple[str, list[Snippet]]]:
    """Yield each project of a page: what it begins as, and what is done there, if anything is."""
    base, own = first, list[Snippet]()
    for snippet in snippets(page, text_of(page)):
        if snippet.directive == "project":
            if own:
                yield base, own
            base, own = snippet.argument, []
        elif snippet.directive in ("file", "append", "run", "server"):
            own.append(snippet)
    if own:
        yield base, own
