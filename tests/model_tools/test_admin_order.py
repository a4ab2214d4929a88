"""An admin site is complete when its models are asked for, in whatever order the apps are."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.docs.markdown import ROOT

SETTINGS = """
from tests.settings import *

INSTALLED_APPS = [
    "django_mcp",
    "late",
    *(app for app in INSTALLED_APPS if app != "django_mcp"),
]
"""
ADMIN = """
from django.contrib import admin

from tests.model_tools.desk.models import Ticket

admin.site.register(Ticket)
"""
OFFERS = """
from django.contrib import admin

from django_mcp import mcp

mcp.admin_site(admin.site, models=["desk.*", "auth.Group"])
"""
SHOW = """
import django
django.setup()
from django_mcp import mcp
print([tool.key for tool in mcp.tools if tool.key in ("find", "get")])
"""


def test_apps_that_come_before_the_admin_find_what_is_registered_with_it(tmp_path):
    late = tmp_path / "late"
    late.mkdir()
    texts = {
        "__init__.py": "",
        "admin.py": ADMIN,
        "mcp.py": OFFERS,
        "../late_settings.py": SETTINGS,
    }
    for name, text in texts.items():
        (late / name).write_text(text, encoding="utf-8")
    path = os.pathsep.join([str(ROOT), str(tmp_path)])
    done = subprocess.run(
        [sys.executable, "-c", SHOW],
        env={**os.environ, "PYTHONPATH": path, "DJANGO_SETTINGS_MODULE": "late_settings"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "['find', 'get']", done.stderr
