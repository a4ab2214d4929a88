"""Links within the project lead somewhere, and every page of the site is in its sidebar."""

from __future__ import annotations

import re

import pytest

from .markdown import ROOT, pages, text_of

_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def anchors(page: str) -> set[str]:
    """Return the anchors of a page's headings, as Sphinx and GitHub make them."""
    plain = (
        re.sub(r"[^\w\- ]", "", heading.lower()) for heading in _HEADING.findall(text_of(page))
    )
    return {re.sub(r"[ ]+", "-", heading.strip()) for heading in plain}


@pytest.mark.parametrize("page", pages())
def test_links_lead_somewhere(page: str):
    for link in _LINK.findall(text_of(page)):
        path, _, anchor = link.partition("#")
        if "://" in link:
            continue
        target = (ROOT / page).parent / path if path else ROOT / page
        assert target.exists(), link
        name = target.resolve().relative_to(ROOT).as_posix()
        assert not anchor or anchor in anchors(name), link


def test_the_sidebar_has_every_page():
    contents = (ROOT / "docs/_toc.yml").read_text(encoding="utf-8")
    named = re.findall(r"^(?:root| +- file): (\S+)$", contents, re.MULTILINE)
    assert sorted(f"docs/{name}.md" for name in named) == [
        page for page in pages() if page.startswith("docs/")
    ]


def test_the_home_page_links_to_every_other():
    linked = {f"docs/{link}" for link in _LINK.findall(text_of("docs/index.md"))}
    others = {page for page in pages() if page.startswith("docs/")} - {"docs/index.md"}
    assert linked == others
