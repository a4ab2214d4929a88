"""Imports every module of what is installed, and finds the files that are no modules.

``python -m tests.installed PREFIX`` runs where no checkout is: the package must come from PREFIX.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from importlib.resources import files
from pathlib import Path

import django
from django.apps import apps
from django.contrib.staticfiles import finders
from django.core.management import call_command
from django.template.loader import get_template

DOT = tuple(f"django_mcp.contrib.oauth.{name}" for name in ("dot", "urls"))
"""What cannot be imported where django-oauth-toolkit is not installed as an app."""
ALLAUTH = "django_mcp.contrib.oauth.allauth"
"""Of which some cannot be imported where allauth is not installed as an app."""
APPS = ("django_mcp", "django_mcp.contrib.oauth", "django_mcp.contrib.tokens")


def main(prefix: str) -> None:
    """See that what is installed is whole."""
    django.setup()
    package = importlib.import_module("django_mcp")
    place = Path(package.__file__ or "").resolve().parent
    assert place.is_relative_to(Path(prefix).resolve()), f"{place} is not below {prefix}"
    names = [each.name for each in pkgutil.walk_packages(package.__path__, "django_mcp.")]
    if not apps.is_installed("oauth2_provider"):
        names = [each for each in names if not each.startswith(DOT)]
    if not apps.is_installed(ALLAUTH):
        names = [each for each in names if not each.startswith(f"{ALLAUTH}.")]
    for name in names:
        importlib.import_module(name)
    assert (place / "py.typed").is_file()

    found = 0
    for app in APPS:
        root = Path(str(files(app)))
        assert (root / "migrations" / "0001_initial.py").is_file(), app
        for template in sorted((root / "templates").rglob("*.*")):
            get_template(template.relative_to(root / "templates").as_posix())
            found += 1
    assert found, "no template was found"
    static = place / "static"
    scripts = [each.relative_to(static) for each in static.rglob("*") if each.is_file()]
    assert scripts, "no static file was found"
    for each in scripts:
        assert finders.AppDirectoriesFinder().find(each.as_posix()), each
    call_command("check")
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)
    print(f"{len(names)} modules, {found} templates, {len(scripts)} static files below {place}")


if __name__ == "__main__":
    main(*sys.argv[1:])
