"""Django's forms as questions."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from django import forms
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.utils import translation
from django.utils.translation import gettext_lazy

from django_mcp import Context
from django_mcp.protocol.versions import BY_NAME
from django_mcp.server.questions.django_forms import DjangoForm, form_of
from django_mcp.server.questions.fields import InvalidAnswer, requested_schema

from .support import MODERN, modern


def form_with(**fields: Any) -> type[forms.Form]:
    return type("Made", (forms.Form,), fields)


def described(field: forms.Field, revision: str = MODERN) -> dict[str, Any]:
    (only,) = requested_schema(DjangoForm(form_with(a_field=field)).fields, BY_NAME[revision])[
        "properties"
    ].values()
    return only


def required(field: forms.Field) -> bool:
    schema = requested_schema(DjangoForm(form_with(it=field)).fields, BY_NAME[MODERN])
    return schema.get("required") == ["it"]


PAIRS = [("a", "Letter a"), ("b", "Letter b")]
TITLED = [{"const": "a", "title": "Letter a"}, {"const": "b", "title": "Letter b"}]


@pytest.mark.parametrize(
    ("field", "schema"),
    [
        (forms.CharField(), {"type": "string"}),
        (
            forms.CharField(min_length=1, max_length=5),
            {"type": "string", "minLength": 1, "maxLength": 5},
        ),
        (forms.CharField(initial="x"), {"type": "string", "default": "x"}),
        (forms.CharField(initial=lambda: "x"), {"type": "string", "default": "x"}),
        (forms.CharField(help_text="Say it"), {"type": "string", "description": "Say it"}),
        (forms.SlugField(), {"type": "string"}),
        (forms.EmailField(max_length=99), {"type": "string", "format": "email", "maxLength": 99}),
        (forms.URLField(assume_scheme="https"), {"type": "string", "format": "uri"}),
        (
            forms.IntegerField(min_value=1, max_value=9, initial=5),
            {"type": "integer", "minimum": 1, "maximum": 9, "default": 5},
        ),
        (forms.FloatField(initial="0.5"), {"type": "number", "default": 0.5}),
        (
            forms.DecimalField(min_value=Decimal("0.5"), initial=Decimal(3)),
            {"type": "number", "minimum": 0.5, "default": 3},
        ),
        (forms.BooleanField(initial=True), {"type": "boolean", "default": True}),
        (forms.DateField(), {"type": "string", "format": "date"}),
        (
            forms.DateField(initial=date(2026, 7, 28)),
            {"type": "string", "format": "date", "default": "2026-07-28"},
        ),
        (
            forms.DateTimeField(initial=datetime(2026, 7, 28, 12)),
            {"type": "string", "format": "date-time", "default": "2026-07-28T12:00:00-05:00"},
        ),
        (forms.ChoiceField(choices=PAIRS), {"type": "string", "oneOf": TITLED}),
        (forms.ChoiceField(choices=lambda: PAIRS), {"type": "string", "oneOf": TITLED}),
        (
            forms.ChoiceField(choices=[("", "---"), ("All", PAIRS)], initial="b"),
            {"type": "string", "oneOf": TITLED, "default": "b"},
        ),
        (
            forms.TypedChoiceField(choices=[(1, "One")], coerce=int, initial=1),
            {"type": "string", "oneOf": [{"const": "1", "title": "One"}], "default": "1"},
        ),
        (
            forms.MultipleChoiceField(choices=PAIRS, initial=["a"]),
            {"type": "array", "items": {"anyOf": TITLED}, "default": ["a"]},
        ),
    ],
    ids=map(str, range(20)),
)
def test_each_field_is_asked_for_as_what_it_is(settings, field: Any, schema: Any):
    settings.TIME_ZONE = "America/Chicago"
    assert described(field) == {"title": "A field", **schema}
    assert required(field)


def test_labels_name_the_fields_in_the_language_of_the_moment():
    field = forms.CharField(label=gettext_lazy("Yes"))
    assert described(field)["title"] == "Yes"
    with translation.override("de"):
        assert described(field)["title"] == "Ja"
    assert "title" not in described(forms.CharField(label=""))


def test_what_need_not_be_filled_in_is_not_required():
    assert not required(forms.CharField(required=False))
    assert not required(forms.ChoiceField(choices=PAIRS, required=False))


@pytest.mark.parametrize(
    ("field", "problem"),
    [
        (forms.FileField(), r"Made\.it: FileField is no flat value\. Use one of .*CharField"),
        (forms.SplitDateTimeField(), "SplitDateTimeField is no flat value"),
        (forms.DurationField(), "DurationField is no flat value"),
        (forms.CharField(widget=forms.PasswordInput), r"a password must not.*ctx\.elicit_url"),
    ],
    ids=["file", "two", "span", "password"],
)
def test_what_cannot_be_asked_for_is_refused_with_the_cure(field: Any, problem: str):
    with pytest.raises(TypeError, match=problem):
        DjangoForm(form_with(it=field))


class Booking(forms.Form):
    name = forms.CharField(max_length=5)
    day = forms.DateField(input_formats=["%d.%m.%Y"])
    at = forms.DateTimeField(required=False)
    seats = forms.TypedChoiceField(choices=[(1, "One"), (2, "Two")], coerce=int)
    extras = forms.MultipleChoiceField(choices=PAIRS, required=False)
    window = forms.BooleanField(required=False)

    def clean(self) -> dict[str, Any]:
        if self.cleaned_data.get("name") == "Bob":
            raise ValidationError("Bob has one already.")
        return self.cleaned_data


GOOD = {"name": "Ada", "day": "2026-07-28", "seats": "2", "extras": ["b"], "window": True}


def test_the_answer_is_what_the_form_has_cleaned():
    read = DjangoForm(Booking).read({**GOOD, "at": "2026-07-28T10:00:00Z", "more": 1})
    assert read == {
        "name": "Ada",
        "day": date(2026, 7, 28),
        "at": datetime(2026, 7, 28, 10, tzinfo=UTC),
        "seats": 2,
        "extras": ["b"],
        "window": True,
    }


def test_a_site_without_zones_shows_an_offset_and_takes_a_moment_of_its_own_zone(settings):
    settings.TIME_ZONE, settings.USE_TZ = "America/Chicago", False
    moment = datetime(2026, 7, 28, 12)
    field = forms.DateTimeField(initial=moment)
    assert described(field)["default"] == "2026-07-28T12:00:00-05:00"
    for written in ("2026-07-28T12:00:00-05:00", "2026-07-28T17:00:00Z", "2026-07-28T12:00:00"):
        assert DjangoForm(form_with(at=field)).read({"at": written}) == {"at": moment}
    with pytest.raises(InvalidAnswer):
        DjangoForm(form_with(at=field)).read({"at": "2026-07-28T12:00:00Q"})


def test_a_field_without_an_answer_is_empty():
    del (content := dict(GOOD))["window"], content["extras"]
    read = DjangoForm(Booking).read(content)
    assert (read["window"], read["extras"], read["at"]) == (False, [], None)


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"name": "Bartholomew"}, "Name: Ensure this value has at most 5 characters (it has 11)."),
        ({"name": None}, "Name: This field is required."),
        ({"name": "Bob"}, "Bob has one already."),
        ({"day": "someday"}, "Day: Enter a valid date."),
        ({"seats": "3"}, "Seats: Select a valid choice. 3 is not one of the available choices."),
        ({"extras": "a, c"}, "Extras: Select a valid choice. c is not one of the available"),
        ({"extras": 5}, "Extras: Enter a list of values."),
    ],
    ids=str,
)
def test_errors_of_the_form_are_the_problems(wrong: Any, problem: str):
    with pytest.raises(InvalidAnswer) as caught:
        DjangoForm(Booking).read(GOOD | wrong)
    assert problem in " ".join(caught.value.problems)


def test_what_is_hidden_or_disabled_keeps_its_value():
    form = DjangoForm(
        form_with(
            seen=forms.CharField(),
            hidden=forms.CharField(widget=forms.HiddenInput, initial="kept"),
            disabled=forms.CharField(disabled=True, initial="kept, too"),
        )
    )
    assert [field.name for field in form.fields] == ["seen"]
    assert form.read({"seen": "x", "hidden": "?", "disabled": "?"}) == {
        "seen": "x",
        "hidden": "kept",
        "disabled": "kept, too",
    }


def test_a_form_may_be_given_with_arguments():
    class Prefixed(forms.Form):
        def __init__(self, *args: Any, greeting: str, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.fields["name"] = forms.CharField(label=greeting)

    form = form_of(partial(Prefixed, greeting="Hello", prefix="p"))
    assert form is not None
    assert form.fields[0].title == "Hello"
    assert form.read({"name": "x"}) == {"name": "x"}


def test_a_form_that_is_made_already_is_refused_with_the_cure():
    with pytest.raises(TypeError, match=r"Booking, or functools\.partial\(Booking"):
        form_of(Booking())


@pytest.mark.parametrize("value", [str, "form", partial(int), None])
def test_nothing_else_is_a_form(value: Any):
    assert form_of(value) is None


class GroupForm(forms.ModelForm):
    class Meta:
        model = Group
        fields = ("name",)


class ChooseGroup(forms.Form):
    group = forms.ModelChoiceField(Group.objects.order_by("name"))


@pytest.mark.django_db
def test_forms_may_ask_the_database():
    group = Group.objects.create(name="taken")
    assert DjangoForm(ChooseGroup).read({"group": str(group.pk)}) == {"group": group}
    with pytest.raises(InvalidAnswer, match="Group with this Name already exists"):
        DjangoForm(GroupForm).read({"name": "taken"})
    assert described(ChooseGroup.base_fields["group"])["oneOf"] == [
        {"const": str(group.pk), "title": "taken"}
    ]


async def choose(ctx: Context) -> str:
    """Choose a group."""
    answer = await ctx.aelicit("Which one?", ChooseGroup)
    return answer["group"].name


@pytest.mark.django_db
def test_asynchronous_functions_may_ask_with_such_forms():
    group = Group.objects.create(name="chosen")
    modern(choose, answers=[group.pk]).tool("it").assert_ok().assert_contains("chosen")


def fill_in(ctx: Context) -> str:
    """Ask for a booking."""
    return str(ctx.elicit("Your booking", Booking))


@pytest.mark.django_db
def test_an_answer_that_the_form_refuses_is_asked_for_again_with_its_errors():
    client = modern(fill_in, answers=[GOOD | {"name": "Bob"}, GOOD])
    client.tool("it").assert_contains("'name': 'Ada'")
    assert [asked.message for asked in client.asked] == [
        "Your booking",
        "Your booking\n\nBob has one already.",
    ]
