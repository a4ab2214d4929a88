"""Builds the documentation as a site: ``make docs``."""

from __future__ import annotations

import re
import sys
import zlib
from pathlib import Path
from typing import Any

import django
from django.conf import settings

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
# Importing them needs the settings of a site that has them. Nothing of them is linked to.
sys.modules |= {"allauth": None, "django_tenants": None, "wagtail": None}  # type: ignore[dict-item]
# What docstrings and snippets import may define models; nothing asks a database.
DJANGO_APPS = [f"django.contrib.{name}" for name in ("admin", "auth", "contenttypes")]
OUR_APPS = [f"django_mcp{name}" for name in ("", ".contrib.tokens", ".contrib.oauth")]
settings.configure(INSTALLED_APPS=[*DJANGO_APPS, *OUR_APPS, "oauth2_provider"])
django.setup()

import django_mcp  # noqa: E402

project = "django_mcp"
author = copyright = "the authors of django_mcp"  # noqa: A001 - what Sphinx calls it
version = release = django_mcp.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.intersphinx",
    "sphinx.ext.viewcode",
    "sphinx_codeautolink",
    "sphinx_copybutton",
    "sphinx_external_toc",
]
exclude_patterns = ["inventories"]

# Anchors as GitHub makes them, so that a link to a heading works in both places.
myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
# Imported for type checkers only.
autodoc_type_aliases = {"HttpRequest": "django.http.HttpRequest"}

# A parameter a line where a signature is longer than this.
maximum_signature_line_length = 80
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"

nitpicky = True
nitpick_ignore_regex = [
    # Their documentation has no inventory.
    ("py:class", r"(mcp_types|httpx)\..*"),
    # Types that annotations alone use, and bases that nobody names.
    ("py:class", r"BaseForm"),
    ("py:class", r"django\.utils\.functional\.Promise"),
    (
        "py:class",
        r"django_mcp\.[\w.]+\.(F|T|AuthFlow|(Class)?Decorator|Question|Connection|\w*Options)",
    ),
]

# What `$ ` precedes, without it and without what the command has printed.
copybutton_prompt_text = "$ "

html_theme = "furo"
pygments_style = "friendly"
pygments_dark_style = "github-dark"
html_title = f"django_mcp {release}"
html_static_path = ["stylesheets"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False

# The root's pages, which the site includes, by the names that they have in the site.
ROOT_PAGES = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
# The references that pages and docstrings link to. A name has a link if it has a line in
# `inventories/`, in the form of Sphinx's own inventories: so a build needs no network.
REFERENCES = {
    "python": "https://docs.python.org/3/",
    "django": "https://docs.djangoproject.com/en/stable/",
}


def pack_inventory(name: str, directory: Path) -> str:
    """Write the inventory as intersphinx reads it; return the path."""
    lines = (HERE / "inventories" / f"{name}.txt").read_bytes()
    head = f"# Sphinx inventory version 2\n# Project: {name}\n# Version: \n# zlib\n"
    packed = directory / f"{name}.inv"
    packed.write_bytes(head.encode() + zlib.compress(lines))
    return str(packed)


def link_within_the_site(app: Any, path: Path, docname: str, content: list[str]) -> None:
    """Have a root page that is included link to the other root pages where the site has them."""
    content[0] = re.sub(
        r"\]\(([A-Z]+\.md)(?=[)#])",
        lambda link: f"]({ROOT_PAGES.get(link[1], link[1])}",
        content[0],
    )


def setup(app: Any) -> None:
    """Find the other references, and go from the root's pages to those of the site."""
    directory = Path(app.doctreedir)
    directory.mkdir(parents=True, exist_ok=True)
    app.config.intersphinx_mapping = {
        name: (url, pack_inventory(name, directory)) for name, url in REFERENCES.items()
    }
    app.connect("include-read", link_within_the_site)
