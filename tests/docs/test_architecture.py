"""The page of the architecture names files that are there, and what is in them."""

from __future__ import annotations

import re

import pytest

from .markdown import ROOT, text_of

PAGE = text_of("docs/explanation/architecture.md")
PACKAGE = ROOT / "django_mcp"
FILES = sorted(set(re.findall(r"\b[a-z_]+(?:/[a-z_]+)*\.py\b", PAGE)))
STEP = re.compile(r"^ *(\S.*?) {3,}([a-z_/]+\.py(?:, [a-z_/]+\.py)*): ", re.MULTILINE)
STEPS = STEP.findall(PAGE)


def test_it_has_files_and_steps():
    assert len(FILES) > 25
    assert len(STEPS) > 18


@pytest.mark.parametrize("name", FILES)
def test_each_file_exists(name: str):
    # In the table of packages a file stands beside the package that it is in.
    assert list(PACKAGE.glob(name)) or list(PACKAGE.glob(f"*/{name}")), name


@pytest.mark.parametrize(("names", "files"), dict.fromkeys(STEPS))
def test_each_step_is_where_the_page_says(names: str, files: str):
    texts = [(PACKAGE / file).read_text(encoding="utf-8") for file in files.split(", ")]
    for name in re.split(r", | +or +", names):
        if name == "add" or name.startswith("ctx."):
            continue
        word = re.escape(name.rpartition(".")[2])
        assert any(re.search(rf"\b(?:def|class) {word}\b", text) for text in texts), name
