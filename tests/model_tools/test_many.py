"""What the list of tools of a site with thirty models takes, one way and another."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any

import pytest

from django_mcp.doctor.known_clients import CHARACTERS_IN_A_TOKEN
from django_mcp.doctor.many_models import GENERIC_CHARACTERS
from tests.docs.markdown import ROOT, text_of
from tests.docs.tables import rows, section

PAGE = "docs/how-to/many-models.md"


@pytest.fixture(scope="module")
def sizes() -> Any:
    """Tools and characters of lists of tools, in a process of its own: it has other apps."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.model_tools.many.measure"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def test_two_tools_for_each_model_take_a_thousand_characters(sizes):
    assert sizes["each"]["tools"] == 60
    assert sizes["each"]["characters"] <= 30 * 1_000


def test_five_tools_take_the_same_for_any_number_of_models(sizes):
    assert sizes["five"]["tools"] == 4
    assert sizes["five, to write"]["tools"] == 5
    assert sizes["five, to write"]["characters"] <= 4_500
    assert sizes["five of one"] == sizes["five, to write"]


def test_the_check_tells_what_they_take(sizes):
    assert 0 <= GENERIC_CHARACTERS - sizes["five, to write"]["characters"] < 200


def test_the_page_has_these_figures(sizes):
    table = rows(section(PAGE, "## What it costs a model"))
    ways = ("each", "each admin", "five", "five, to write")
    assert len(table) == len(ways)
    for row, way in zip(table, ways, strict=True):
        tools, characters, tokens = (int(cell.replace(",", "")) for cell in row[1:])
        measured = sizes[way]["characters"]
        assert tools == sizes[way]["tools"]
        assert characters == pytest.approx(measured, rel=0.05)
        assert tokens == pytest.approx(measured / CHARACTERS_IN_A_TOKEN, rel=0.05)
    (number,) = re.findall(r"about (\d+) characters more", text_of(PAGE))
    assert int(number) == pytest.approx(sizes["described"]["characters"], rel=0.05)
