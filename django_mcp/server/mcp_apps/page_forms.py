"""A Django form in a page, whose submit is a call of the tool that ``mcp.form`` made of it."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any, Final

from django import forms
from django.utils.html import format_html
from django.utils.safestring import SafeString

from ..fields.bound_forms import CLEAR
from ..form_tools import FormTool
from ..primitives import Tool
from .rendering import PageError

_PICKERS: Final = {
    forms.DateInput: ("date", "%Y-%m-%d"),
    forms.DateTimeInput: ("datetime-local", "%Y-%m-%dT%H:%M"),
    forms.TimeInput: ("time", "%H:%M"),
}
"""Fields of text for which browsers have something better, and the values that they take."""

_KINDS: Final[tuple[tuple[type[forms.Field], str], ...]] = (
    (forms.FileField, "file"),
    (forms.NullBooleanField, "maybe"),
    (forms.BooleanField, "flag"),
    (forms.MultipleChoiceField, "many"),
    (forms.JSONField, "json"),
)
"""How a script reads what was filled in; all else is text. The more particular class first."""


def form_element(server: Any, name: str, submit: str) -> SafeString:
    """Return the form of a tool as an element, with what a script needs to call the tool."""
    tool, found = _form_tool(server, name)
    form = page_form(found)
    properties = tool.description["inputSchema"]["properties"]
    fields = {
        field: {"kind": _kind_of(each), "numeric": _is_numeric(properties.get(field, {}))}
        for field, each in form.fields.items()
    }
    clearable = _choices(properties[CLEAR]["items"]) if found.clears else []
    return format_html(
        '<form class="mcp-form" data-mcp-tool="{}" data-mcp-fields="{}" data-mcp-clearable="{}">\n'
        '<div role="alert"></div>\n{}\n<button type="submit">{}</button>\n'
        '<div role="status"></div>\n</form>',
        name,
        json.dumps(fields),
        json.dumps(clearable),
        form.as_div(),
        submit,
    )


def page_form(found: FormTool) -> forms.BaseForm:
    """Return the fields of a form as they are for everybody.

    The class itself is not called: what it does for an instance is for one caller. Choices that are
    rows of a table are left out for the same reason, and initial values that are worked out, since
    the page is kept.
    """
    fields: Mapping[str, forms.Field] = found.form_class.base_fields  # type: ignore[attr-defined]
    form = forms.Form(
        auto_id=f"{found.name}_%s", use_required_attribute=found.form_class.use_required_attribute
    )
    for name in found.fields:
        if not isinstance(fields[name], forms.ModelChoiceField):
            form.fields[name] = _prepared(copy.deepcopy(fields[name]))
    form.order_fields(found.form_class.field_order)
    if media := str(form.media):
        raise PageError(
            f"The form {found.form_class.__name__} has widgets that load files of their own "
            f"({' '.join(media.split())}), which a page of an app cannot. Give the tool a form "
            "with plain widgets."
        )
    return form


def _form_tool(server: Any, name: str) -> tuple[Tool, FormTool]:
    tool = server.find_tool(name)
    for found in server.forms:
        if found.name == name and tool is not None:
            return tool, found
    known = ", ".join(repr(each.name) for each in server.forms) or "none"
    raise PageError(
        f"{{% mcp_form %}} names {name!r}, which is no tool that mcp.form(...) has made. Those of "
        f"this server: {known}."
    )


def _prepared(field: forms.Field) -> forms.Field:
    if callable(field.initial):
        field.initial = None
    kind, written = _PICKERS.get(type(field.widget), ("", ""))
    if kind and field.widget.input_type == "text":
        field.widget.input_type, field.widget.format = kind, written
    return field


def _kind_of(field: forms.Field) -> str:
    return next((kind for kinds, kind in _KINDS if isinstance(field, kinds)), "text")


def _choices(schema: Mapping[str, Any]) -> list[Any]:
    return schema["enum"] if "enum" in schema else [schema["const"]]


def _is_numeric(schema: Mapping[str, Any]) -> bool:
    schema = schema.get("items", schema)
    return schema.get("type") in ("integer", "number") or (
        "enum" in schema and all(isinstance(each, int) for each in schema["enum"])
    )
