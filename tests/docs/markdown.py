"""Reads the snippets of a page, and what is to be done with each.

A comment on the line above a fence, invisible to readers, says what a snippet is:

    <!-- file: shop/mcp.py -->          write it to this file of the page's project
    <!-- append: mysite/settings.py --> add it to the end of this file
    <!-- run -->                        run it: Python with Django set up, or a console's commands
    <!-- server -->                     start the console's command; it serves until the page ends
    <!-- not run: the reason -->        a console that the tests cannot run

and one that stands alone chooses the project in which the page goes on:

    <!-- project: tutorial -->          a copy of what the tutorial ends with; so begins every page
    <!-- project: empty -->             an empty directory
    <!-- project: demo -->              the example project, as a clone of the repository has it
    <!-- project: postgresql -->        an empty directory; what follows is run where DATABASE_URL
                                        is that of PostgreSQL, on its server
    <!-- project: wagtail -->           an empty directory; its page is marked `sites`, and fails
                                        where the packages of that dependency group are missing

Python is always a file or run. What goes into a file says so to readers, who do not see these
comments, in its first line: ``# shop/mcp.py``, or ``# shop/mcp.py, at the end`` where it is added.
What a fence of the form ``{name}`` holds is Sphinx's, and no snippet.
Whatever is not understood is an error, so that no snippet is skipped by mistake.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOT_PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
PROJECTS = ("tutorial", "empty", "demo", "postgresql", "wagtail")

ALLOWED = {
    "python": {"file", "append", "run"},
    "console": {"run", "server", "not run"},
    "html": {"file"},
    "json": {"file", ""},
    "text": {""},
}
"""Language to the directives that it may have; the empty one stands for none."""

_NEEDS_ARGUMENT = {"project", "file", "append", "not run"}
_TITLES = {"file": "# {}", "append": "# {}, at the end"}
"""Directive to the first line of Python that it writes somewhere."""
_COMMENT = re.compile(r"<!--\s*(?P<directive>[a-z ]+?)\s*(?::\s*(?P<argument>.+?))?\s*-->")
_FENCE = re.compile(r"(?P<indent>[ >]*)(?P<marks>`{3,}|~{3,})(?P<language>\{[\w-]+\}.*|\S*)")


class SnippetError(Exception):
    """A page says something about a snippet that cannot be meant."""


@dataclass(frozen=True, slots=True)
class Snippet:
    """A fenced block with its directive, or a directive that stands alone."""

    page: str
    line: int
    """The line of the fence, from one."""
    directive: str
    argument: str = ""
    language: str = ""
    code: str = ""

    @property
    def where(self) -> str:
        """The place, for messages."""
        return f"{self.page}:{self.line}"


def pages() -> list[str]:
    """Return the pages of the project, as paths from its root."""
    top = [ROOT / name for name in ROOT_PAGES]
    return [
        path.relative_to(ROOT).as_posix() for path in (*top, *sorted((ROOT / "docs").rglob("*.md")))
    ]


def text_of(page: str) -> str:
    """Return a page's text."""
    return (ROOT / page).read_text(encoding="utf-8")


def needs_sites(page: str) -> bool:
    """Return whether a page builds a site of a package that only the group ``sites`` installs."""
    return "<!-- project: wagtail -->" in text_of(page)


def snippets(page: str, text: str) -> list[Snippet]:
    """Return the snippets of a page in their order; raises :class:`SnippetError`."""
    found: list[Snippet] = []
    comment: re.Match[str] | None = None
    lines = iter(enumerate(text.splitlines(), start=1))
    for number, line in lines:
        fence = _FENCE.fullmatch(line)
        if fence is not None:
            code = _until_closed(lines, fence["marks"], f"{page}:{number}")
            if not fence["language"].startswith("{"):
                found.append(_snippet(page, number, fence, comment, code))
                comment = None
            continue
        if comment is not None:
            raise SnippetError(f"{page}:{number - 1}: the comment has no snippet below it")
        comment = _COMMENT.fullmatch(line)
        if comment is None and line.lstrip().startswith("<!--"):
            raise SnippetError(f"{page}:{number}: the comment is not understood")
        if comment is not None and comment["directive"] == "project":
            found.append(_project(page, number, comment))
            comment = None
    return found


def _until_closed(lines: Iterator[tuple[int, str]], marks: str, where: str) -> str:
    code: list[str] = []
    for _, line in lines:
        if line.strip() == marks:
            return "\n".join(code) + "\n"
        code.append(line)
    raise SnippetError(f"{where}: the fence is never closed")


def _project(page: str, line: int, comment: re.Match[str]) -> Snippet:
    if comment["argument"] not in PROJECTS:
        raise SnippetError(f"{page}:{line}: the projects are {', '.join(PROJECTS)}")
    return Snippet(page, line, "project", comment["argument"])


def _snippet(
    page: str, line: int, fence: re.Match[str], comment: re.Match[str] | None, code: str
) -> Snippet:
    language, directive, argument = fence["language"], "", ""
    if comment is not None:
        directive, argument = comment["directive"], comment["argument"] or ""
    where = f"{page}:{line}"
    if language not in ALLOWED:
        raise SnippetError(f"{where}: {language!r} is none of {', '.join(ALLOWED)}")
    if directive not in ALLOWED[language]:
        raise SnippetError(f"{where}: {language} cannot be {directive or 'without a directive'!r}")
    if (directive in _NEEDS_ARGUMENT) != bool(argument):
        raise SnippetError(f"{where}: {directive!r} with the argument {argument!r}")
    if fence["indent"] and directive:
        raise SnippetError(f"{where}: a snippet that does something begins at the margin")
    if language == "json":
        _check_json(code, where)
    if language == "python" and directive in _TITLES:
        _check_title(code, _TITLES[directive].format(argument), where)
    return Snippet(page, line, directive, argument, language, code)


def _check_title(code: str, title: str, where: str) -> None:
    if code.partition("\n")[0] != title:
        raise SnippetError(f"{where}: the first line is not {title!r}")


def _check_json(code: str, where: str) -> None:
    try:
        json.loads(code)
    except ValueError as error:
        raise SnippetError(f"{where}: {error}") from error
