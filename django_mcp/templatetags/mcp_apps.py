"""``{% load mcp_apps %}``: what a page of an app needs, written into it."""

from __future__ import annotations

import json
from importlib import import_module
from typing import TYPE_CHECKING, Any

from django import template
from django.utils.safestring import SafeString, mark_safe

if TYPE_CHECKING:
    from ..server.mcp_apps.app import Page

register = template.Library()


# Every site imports this module, when it looks for its tags; the rest is for those with an app.
def _part(name: str) -> Any:
    return import_module(f"django_mcp.server.mcp_apps.{name}")


@register.simple_tag(takes_context=True)
def mcp_bridge(context: template.Context, display_modes: str = "inline") -> SafeString:
    """Write the script by which the page talks with its host: ``mcpApp``.

    ``display_modes`` are those that the page is made for: ``"inline"``, ``"fullscreen"``,
    ``"pip"``, separated by blanks.
    """
    page = _page(context)
    page.has_bridge = True
    about = {
        "name": page.app.name,
        "version": page.app.server.version or "0",
        "displayModes": display_modes.split(),
    }
    return _own_script("bridge.js", mcp_app=json.dumps(about))


@register.simple_tag
def mcp_styles() -> SafeString:
    """Write a style sheet with the host's colours and fonts, and plain controls in them."""
    inlining = _part("inlining")
    element: SafeString = inlining.as_style(inlining.own_style("styles.css"))
    return element


@register.simple_tag(takes_context=True)
def mcp_form(context: template.Context, tool: str, submit: str = "Submit") -> SafeString:
    """Write the form that ``mcp.form(...)`` has made the tool of this name of.

    Who submits it calls the tool. ``submit`` is what its button says.
    """
    page = _page(context)
    if not page.has_bridge:
        raise _part("rendering").PageError(
            "{% mcp_form %} needs the script that {% mcp_bridge %} writes. Write that in front of "
            "it, for example in <head>."
        )
    element: SafeString = _part("page_forms").form_element(page.app.server, tool, submit)
    script = mark_safe("") if page.has_forms else _own_script("forms.js")
    page.has_forms = True
    return element + script


@register.simple_tag
def mcp_css(name: str) -> SafeString:
    """Write a style sheet of the site into the page: the static file of this name."""
    element: SafeString = _part("inlining").style_element(name)
    return element


@register.simple_tag
def mcp_script(name: str) -> SafeString:
    """Write a script of the site into the page: the static file of this name."""
    element: SafeString = _part("inlining").script_element(name)
    return element


@register.simple_tag
def mcp_data_uri(name: str) -> str:
    """Write a URI that holds a static file, for ``src`` of a picture."""
    return str(_part("inlining").data_uri(name))


def _own_script(name: str, **data: str) -> SafeString:
    inlining = _part("inlining")
    element: SafeString = inlining.as_script(inlining.own_script(name), **data)
    return element


def _page(context: template.Context) -> Page:
    page: Page | None = context.get(_part("app").VARIABLE)
    if page is None:
        raise _part("rendering").PageError(
            "{% mcp_bridge %} and {% mcp_form %} are for templates of mcp.app(...). A page of the "
            "site has no host to talk with."
        )
    return page
