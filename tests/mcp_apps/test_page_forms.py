"""Forms in pages: the fields as they are for everybody, and what a script needs to know."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pytest
from django import forms
from django.contrib.auth.models import Group

from django_mcp import MCPServer

from .support import BOARD, client_of, found, html_of
from .test_pages import Elements

PAGE = '{% load mcp_apps %}{% mcp_bridge %}{% mcp_form "send" %}'


class NoteForm(forms.Form):
    text = forms.CharField(label="Note", help_text="What is there to know?")
    count = forms.TypedChoiceField(choices=[(1, "One"), (2, "Two")], coerce=int)
    day = forms.DateField(required=False, initial=date(2026, 3, 1))
    since = forms.DateField(required=False, initial=date.today)
    tags = forms.MultipleChoiceField(choices=[("a", "A")], required=False)
    agreed = forms.BooleanField(required=False)
    group = forms.ModelChoiceField(Group.objects.all(), required=False)

    def __init__(self, *args: Any, caller: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)

    def clean_text(self) -> str:
        if self.cleaned_data["text"] == "nothing":
            raise forms.ValidationError("Say something.")
        return self.cleaned_data["text"]


def server_of(write: Any, form: Any = NoteForm, page: str = PAGE, **options: Any) -> MCPServer:
    write({"board.html": page})
    server = MCPServer("test")
    server.app(BOARD, template="board.html")

    def send(form: form) -> str:  # type: ignore[valid-type]
        return "Sent."

    send.__annotations__ = {"form": form, "return": str}
    server.form(form, send, form_kwargs={"caller": None} if form is NoteForm else None, **options)
    return server


def elements(server: MCPServer) -> list[tuple[str, dict[str, Any]]]:
    return Elements(html_of(server)).found


def test_a_form_has_its_labels_help_texts_and_choices(write):
    html = html_of(server_of(write))
    assert '<label for="send_text">Note:</label>' in html
    assert "What is there to know?" in html
    assert '<option value="2">Two</option>' in html
    assert 'aria-describedby="send_text_helptext"' in html


def test_a_script_is_told_how_fields_are_read(write):
    (form,) = [attributes for tag, attributes in elements(server_of(write)) if tag == "form"]
    assert form["data-mcp-tool"] == "send"
    fields = json.loads(form["data-mcp-fields"])
    assert {name: each["kind"] for name, each in fields.items()} == {
        "text": "text",
        "count": "text",
        "day": "text",
        "since": "text",
        "tags": "many",
        "agreed": "flag",
    }
    assert [name for name, each in fields.items() if each["numeric"]] == ["count"]
    assert set(json.loads(form["data-mcp-clearable"])) == {"day", "since"}


def test_what_depends_on_the_caller_or_the_moment_is_not_in_the_page(write):
    inputs = {each.get("name"): each for tag, each in elements(server_of(write)) if tag == "input"}
    assert "group" not in inputs
    assert (inputs["day"]["type"], inputs["day"]["value"]) == ("date", "2026-03-01")
    assert "value" not in inputs["since"]


def test_two_forms_share_a_script_and_no_id(write):
    server = server_of(write, page=PAGE + '{% mcp_form "other" submit="Go" %}')

    class OtherForm(forms.Form):
        text = forms.CharField()

    server.form(OtherForm, lambda form: "", name="other")
    found = elements(server)
    ids = [each["id"] for _, each in found if "id" in each]
    assert len(ids) == len(set(ids))
    assert [tag for tag, _ in found].count("script") == 2
    assert "other_text" in ids


def test_the_button_says_what_the_template_says(write):
    html = html_of(server_of(write, page=PAGE.replace('"send"', '"send" submit="Send it"')))
    assert '<button type="submit">Send it</button>' in html


def test_a_form_is_answered_field_by_field_to_those_who_show_apps(write):
    server = server_of(write, visibility=["app"])
    failed = client_of(server).tool("send", text="nothing", count=1)
    failed.assert_failed("Say something.")
    assert failed.result["_meta"]["django-mcp/errors"] == {"text": ["Say something."]}
    client_of(server).tool("send", text="something", count=1).assert_ok()


class Loading(forms.TextInput):
    class Media:
        js = ["picker.js"]


class LoadingForm(forms.Form):
    text = forms.CharField(widget=Loading)


@pytest.mark.parametrize(
    ("form", "page", "complaint"),
    [
        (NoteForm, PAGE.replace("send", "sent"), "Those of this server: 'send'."),
        (NoteForm, PAGE.replace("{% mcp_bridge %}", ""), "needs the script"),
        (LoadingForm, PAGE, "picker.js"),
    ],
)
def test_what_cannot_be_a_form_of_a_page_is_an_error(write, form, page, complaint):
    (error,) = found(server_of(write, form, page))
    assert error.id == "django_mcp.E070"
    assert complaint in error.msg
