"""Who uses none of it imports none of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SETTING_UP = """
import sys
import django
django.setup()
from django_mcp import MCPServer, mcp
"""
OF_A_MODEL = """
from django_mcp import ModelTools
from tests.model_tools.desk.models import Tag
@MCPServer("desk").model(Tag)
class TagTools(ModelTools):
    fields = ["id", "name"]
    filters = ["name"]
"""


@pytest.mark.parametrize(
    ("code", "left_out"),
    [
        (SETTING_UP, ["django_mcp.model_tools"]),
        (
            SETTING_UP + OF_A_MODEL,
            ["django_filters", "django_mcp.model_tools.changing.deleting"],
        ),
    ],
)
def test_what_is_not_used_is_not_imported(code, left_out):
    asked = f"print([each for each in {left_out!r} if each in sys.modules])"
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"}
    done = subprocess.run(
        [sys.executable, "-c", code + asked],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"
