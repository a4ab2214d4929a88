"""Apps beside that of the example project: one that would load what it must not, and others."""

from __future__ import annotations

from django import forms

from django_mcp import Context, mcp
from example_project.support.mcp.board import Board, show_board

PLANTED = "ui://tests/planted"
DECLARED = "ui://tests/declared"
OFFICIAL = "ui://tests/official"
FIELDS = "ui://tests/fields"

# Nobody answers there; that the browser asks at all is what a policy has to prevent.
ELSEWHERE = "http://127.0.0.1:9"

mcp.app(PLANTED, template="browser_site/planted.html", context={"elsewhere": ELSEWHERE})
mcp.app(
    DECLARED,
    template="browser_site/planted.html",
    context={"elsewhere": ELSEWHERE},
    csp={"resource_domains": [ELSEWHERE]},
)
mcp.app(OFFICIAL, template="browser_site/official.html")
mcp.app(FIELDS, template="browser_site/fields.html")


@mcp.tool(app=PLANTED, read_only=True)
def show_planted() -> str:
    """Show a page that would load a script from elsewhere."""
    return "shown"


@mcp.tool(app=DECLARED, read_only=True)
def show_declared() -> str:
    """Show the same page, which says so."""
    return "shown"


@mcp.tool(app=OFFICIAL, read_only=True)
def show_official(ctx: Context) -> Board:
    """Show an app by the official SDK."""
    return show_board(ctx)


class FieldsForm(forms.Form):
    """A field of each kind that browsers have."""

    name = forms.CharField(initial="Anna", required=False)
    count = forms.IntegerField()
    price = forms.DecimalField(decimal_places=2)
    day = forms.DateField()
    moment = forms.DateTimeField()
    agreed = forms.BooleanField(required=False)
    known = forms.NullBooleanField(required=False)
    size = forms.TypedChoiceField(choices=[(1, "Small"), (2, "Large")], coerce=int)
    colours = forms.MultipleChoiceField(choices=[("r", "Red"), ("g", "Green"), ("b", "Blue")])
    days = forms.MultipleChoiceField(
        choices=[("mo", "Monday"), ("tu", "Tuesday")], widget=forms.CheckboxSelectMultiple
    )
    speed = forms.ChoiceField(
        choices=[("slow", "Slow"), ("fast", "Fast")], widget=forms.RadioSelect
    )
    more = forms.JSONField(required=False)
    file = forms.FileField(required=False)


@mcp.form(FieldsForm, app=FIELDS, permission="support.view_ticket")
def send_fields(form: FieldsForm) -> str:
    """Say what has been filled in."""
    values = dict(form.cleaned_data)
    if values["file"]:
        values["file"] = values["file"].read().decode()
    return repr(values)


@mcp.tool(app=FIELDS, read_only=True)
def show_fields() -> str:
    """Show the form."""
    return "shown"
