"""Every snippet of every page does what its page says."""

from __future__ import annotations

from pathlib import Path

import pytest

from .markdown import SnippetError, needs_sites, pages, snippets, text_of
from .project import Project, SnippetFailed, free_port
from .workshop import Workshop


def marked(page: str) -> object:
    marks = [pytest.mark.sites] if needs_sites(page) else []
    return pytest.param(page, id=page, marks=marks)


@pytest.mark.processes
@pytest.mark.parametrize("page", [marked(page) for page in pages()])
def test_every_snippet_does_what_it_says(page: str, workshop: Workshop):
    workshop.play(page)


@pytest.mark.parametrize("page", pages())
def test_every_snippet_is_understood(page: str):
    snippets(page, text_of(page))


def page_with(*lines: str) -> str:
    return "\n".join(lines)


def test_snippets_are_read_with_their_directives():
    code = ["# a/b.py", "x = 1"]
    text = page_with("# Title", "", "<!-- file: a/b.py -->", "```python", *code, "```", "", "End")
    (snippet,) = snippets("page.md", text)
    assert (snippet.directive, snippet.argument) == ("file", "a/b.py")
    assert snippet.code == "# a/b.py\nx = 1\n"
    assert snippet.where == "page.md:4"


def test_what_is_for_sphinx_is_no_snippet():
    text = page_with("```{include} ../CHANGELOG.md", ":relative-docs: docs/", "```", "End")
    assert snippets("page.md", text) == []


def test_fences_within_fences_are_code():
    text = page_with("````text", "```python", "x", "```", "````")
    (snippet,) = snippets("page.md", text)
    assert snippet.code == "```python\nx\n```\n"


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(["```python", "x = 1", "```"], id="python unmarked"),
        pytest.param(["```console", "$ ls", "```"], id="console unmarked"),
        pytest.param(["```", "x", "```"], id="no language"),
        pytest.param(["```ruby", "x", "```"], id="unknown language"),
        pytest.param(["<!-- not run: why -->", "```python", "x", "```"], id="python not run"),
        pytest.param(["<!-- not run -->", "```console", "$ x", "```"], id="no reason"),
        pytest.param(["<!-- file -->", "```python", "x", "```"], id="no path"),
        pytest.param(["<!-- run: it -->", "```python", "x", "```"], id="an argument too many"),
        pytest.param(["<!-- rnu -->", "```python", "x", "```"], id="misspelt"),
        pytest.param(["<!-- TODO -->", "text"], id="another comment"),
        pytest.param(["<!-- run -->", "", "```python", "x", "```"], id="comment apart"),
        pytest.param(["1. Step", "   ```python", "   x", "   ```"], id="indented"),
        pytest.param(["<!-- project: mine -->"], id="unknown project"),
        pytest.param(["<!-- run -->", "```python", "x"], id="never closed"),
        pytest.param(["```json", "{,}", "```"], id="not JSON"),
        pytest.param(["<!-- file: a.py -->", "```python", "x = 1", "```"], id="a file unnamed"),
        pytest.param(["<!-- append: a.py -->", "```python", "x", "```"], id="an addition unnamed"),
        pytest.param(["<!-- file: a.py -->", "```python", "# b.py", "```"], id="another file"),
        pytest.param(["<!-- append: a.py -->", "```python", "# a.py", "```"], id="where in a file"),
    ],
)
def test_what_is_not_understood_is_refused(lines: list[str]):
    with pytest.raises(SnippetError):
        snippets("page.md", page_with(*lines))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path, tmp_path, port=free_port())


def test_a_console_that_prints_something_else_fails(project: Project):
    (snippet,) = snippets("p.md", page_with("<!-- run -->", "```console", "$ echo a", "b", "```"))
    with pytest.raises(SnippetFailed):
        project.play(snippet)


def test_a_console_may_leave_out_what_it_prints(project: Project):
    text = page_with("<!-- run -->", "```console", "$ printf 'one\\ntwo 7\\n'", "two ...", "```")
    (snippet,) = snippets("p.md", text)
    project.play(snippet)


def test_python_that_fails_names_the_line_of_the_page(project: Project):
    (project.root / "mysite").mkdir()
    (project.root / "mysite" / "settings.py").write_text("SECRET_KEY = 'x'\n")
    text = page_with("# Title", "<!-- run -->", "```python", "assert True", "assert False", "```")
    (snippet,) = snippets("p.md", text)
    project.play(snippet)
    with pytest.raises(SnippetFailed, match="line 5"):
        project.settle()
