"""Where the page is on which people make tokens of their own, if the site has it."""

from __future__ import annotations

from typing import Final

from django.urls import NoReverseMatch, get_script_prefix, reverse

from ...conf import get_settings

NAME: Final = "django_mcp_tokens:own_tokens"


def path_of_page() -> str:
    """Return the path of the page; empty where the URLconf has none."""
    try:
        return reverse(NAME)
    except NoReverseMatch:
        return ""


def where_to_get(what: str) -> str:
    """Return how people get a token, as the beginning of a sentence: ``ask ... for`` and so on."""
    path = path_of_page()
    if not path:
        return f"ask whoever runs this site for {what}"
    bases = [each for each in get_settings().base_url if "*" not in each]
    place = f"{bases[0]}/{path.removeprefix(get_script_prefix())}" if bases else f"{path} here"
    return f"go to {place} for {what}"
