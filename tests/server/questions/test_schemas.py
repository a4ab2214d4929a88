"""Whatever is asked for, each revision gets a schema that it knows, and its answers are read."""

from __future__ import annotations

import enum
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest
from django import forms
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, create_model

from django_mcp.protocol.versions import BY_NAME
from django_mcp.server.questions.django_forms import DjangoForm
from django_mcp.server.questions.fields import Form, chosen, requested_schema
from django_mcp.server.questions.type_forms import TypeForm
from tests.wire.strategies import bounded, text

from .support import MODERN, schema_faults

REVISIONS = ("2025-06-18", "2025-11-25", MODERN)


class Size(enum.Enum):
    SMALL = "s"
    LARGE = "l"


class Titled(enum.IntEnum):
    ONE = 1
    TWO = 2

    @property
    def label(self) -> str:
        return self.name.title()


described = st.fixed_dictionaries(
    {}, optional={"title": text.filter(bool), "description": text.filter(bool)}
)
limits = st.integers(min_value=0, max_value=9)
annotations = st.one_of(
    st.sampled_from([str, int, float, bool, date, datetime, Decimal, Size, Titled]),
    st.sampled_from(
        [Literal["a", "b"], Literal[1, 2], list[Size], set[Titled], list[Literal["x"]]]
    ),
    limits.map(lambda n: Annotated[str, Field(min_length=n, max_length=n + 3, pattern="^.*$")]),
    limits.map(lambda n: Annotated[int, Field(gt=n, le=n + 3)]),
    limits.map(lambda n: Annotated[float, Field(ge=n, lt=n + 3)]),
    limits.map(lambda n: Annotated[list[Size], Field(min_length=n, max_length=n + 3)]),
)
DEFAULTS: dict[Any, Any] = {
    str: "text",
    int: 3,
    float: 0.5,
    bool: True,
    date: date(2026, 7, 28),
    Size: Size.LARGE,
    Titled: Titled.TWO,
    list[Size]: [Size.SMALL],
}


@st.composite
def models(draw: Any) -> TypeForm:
    fields: dict[str, Any] = {}
    for number in range(draw(st.integers(min_value=1, max_value=5))):
        annotation, more = draw(annotations), draw(described)
        if annotation in DEFAULTS and draw(st.booleans()):
            more = {**more, "default": DEFAULTS[annotation]}
        elif draw(st.booleans()):
            annotation, more = annotation | None, {**more, "default": None}
        fields[f"f{number}"] = (annotation, Field(**more))
    return TypeForm(create_model("Drawn", **fields))


choices = [("a", "Letter a"), ("Group", [("b", "Letter b"), ("c", "Letter c")])]
form_fields = st.one_of(
    limits.map(lambda n: forms.CharField(min_length=n, max_length=n + 3)),
    limits.map(lambda n: forms.IntegerField(min_value=n, max_value=n + 3, initial=n)),
    limits.map(lambda n: forms.DecimalField(min_value=Decimal(n), max_value=Decimal("9.5"))),
    st.just(forms.FloatField(initial=0.5, required=False)),
    st.just(forms.EmailField(label="Mail", help_text="Where to")),
    st.just(forms.URLField(assume_scheme="https", initial="https://example.com")),
    st.just(forms.BooleanField(initial=True)),
    st.just(forms.DateField(initial=date(2026, 7, 28))),
    st.just(forms.DateTimeField(initial=datetime(2026, 7, 28, 12))),
    st.just(forms.ChoiceField(choices=choices, initial="b")),
    st.just(forms.TypedChoiceField(choices=[(1, "One"), (2, "Two")], coerce=int, initial=2)),
    st.just(forms.MultipleChoiceField(choices=choices, initial=["a", "c"])),
)


@st.composite
def django_forms(draw: Any) -> DjangoForm:
    drawn = draw(st.lists(form_fields, min_size=1, max_size=5))
    members = {f"f{number}": field for number, field in enumerate(drawn)}
    return DjangoForm(type("Drawn", (forms.Form,), members))


def answer_to(schema: dict[str, Any]) -> Any:
    """Return an answer as a client would make it of one field's schema alone."""
    if "oneOf" in schema:
        return schema["oneOf"][-1]["const"]
    if "enum" in schema:
        return schema["enum"][0]
    if schema["type"] == "array":
        items = schema["items"]
        known = items.get("enum") or [option["const"] for option in items["anyOf"]]
        return (known * 9)[: max(1, schema.get("minItems", 1))]
    if schema["type"] == "boolean":
        return True
    if schema["type"] in ("integer", "number"):
        return schema.get("minimum", 1)
    formats = {
        "date": "2026-07-28",
        "date-time": "2026-07-28T10:00:00Z",
        "email": "a@example.com",
        "uri": "https://example.com/",
    }
    return formats.get(schema.get("format", ""), "x" * max(1, schema.get("minLength", 1)))


@pytest.mark.parametrize("revision", REVISIONS)
@bounded
@given(form=models() | django_forms())
def test_every_revision_gets_a_schema_that_it_knows(revision: str, form: Form):
    schema = requested_schema(form.fields, BY_NAME[revision])
    assert list(schema_faults(schema, revision)) == []


@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
@bounded
@given(form=models() | django_forms())
def test_an_answer_made_by_the_schema_is_taken(revision: str, form: Form):
    schema = requested_schema(form.fields, BY_NAME[revision])
    form.read({name: answer_to(each) for name, each in schema["properties"].items()})


@bounded
@given(form=models() | django_forms())
def test_several_choices_may_be_given_as_text(form: Form):
    content: dict[str, Any] = {}
    newest = requested_schema(form.fields, BY_NAME[MODERN])["properties"]
    for each in form.fields:
        answer = answer_to(newest[each.name])
        content[each.name] = ", ".join(answer) if isinstance(answer, list) else answer
        assert chosen(each, content[each.name]) == answer
    form.read(content)
