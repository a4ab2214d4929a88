"""``mcp.form``: a Django form is the input of a tool."""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from io import BytesIO
from typing import Annotated, Any

import pytest
from django import forms
from django.contrib.auth.models import User
from django.core.files.uploadedfile import UploadedFile
from django.core.validators import (
    MaxValueValidator,
    MinLengthValidator,
    MinValueValidator,
    RegexValidator,
)
from django.db import models
from django.http import HttpRequest
from django.test.utils import isolate_apps
from PIL import Image
from pydantic import TypeAdapter

from django_mcp import Context, Load, MCPServer, Provide, RegistrationError
from django_mcp.server.fields.form_schema import form_parameters
from django_mcp.testing import Answer, MCPClient
from tests.model_tools.desk.models import Customer, Ticket
from tests.model_tools.support import customer, ticket, user_with

from .support import LEGACY, MODERN, REVISIONS, assert_valid_schema

pytestmark = pytest.mark.django_db

ADD = "desk.add_ticket"


class RefundForm(forms.Form):
    """Pay a customer back."""

    amount = forms.DecimalField(min_value=Decimal("0.01"), help_text="In euros, with cents.")
    reason = forms.ChoiceField(choices=[("late", "Came too late"), ("broken", "Is broken")])
    note = forms.CharField(max_length=40, required=False, label="A word to them")
    copies = forms.IntegerField(min_value=1, max_value=5, initial=2)

    def clean_note(self) -> str:
        note: str = self.cleaned_data["note"]
        if "sorry" in note:
            raise forms.ValidationError("No apologies.")
        return note

    def clean(self) -> None:
        if self.cleaned_data.get("amount") == 13:
            raise forms.ValidationError("Not thirteen.")


class TicketForm(forms.ModelForm):
    class Meta:
        model = Ticket
        fields = [
            *("number", "subject", "body", "priority", "customer", "tags", "due", "is_public"),
            "price",
        ]


Handler = Callable[..., Any]


def refund(form: RefundForm) -> dict[str, Any]:
    return form.cleaned_data


async def arefund(form: RefundForm) -> dict[str, Any]:
    return form.cleaned_data


BOTH = pytest.mark.parametrize("handler", [refund, arefund])


def client_of(
    form_class: Any, handler: Handler, *, revision: str = MODERN, **options: Any
) -> MCPClient:
    server = MCPServer("test")
    options.setdefault("name", "it")
    assert server.form(form_class, handler, **options) is handler
    return MCPClient(server, revision=revision)


def properties(client: MCPClient) -> dict[str, Any]:
    (described,) = client.list_tools()
    assert_valid_schema(described["inputSchema"])
    found: dict[str, Any] = described["inputSchema"]["properties"]
    return found


def told(answer: Answer) -> dict[str, list[str]]:
    """What the result says of each field, for programs."""
    found: dict[str, list[str]] = answer.result["_meta"]["django-mcp/errors"]
    return found


def seen(form: forms.Form) -> dict[str, str]:
    return {name: repr(value) for name, value in form.cleaned_data.items()}


# The form as a tool


@pytest.mark.parametrize("revision", REVISIONS)
@BOTH
def test_a_handler_gets_the_valid_form(handler, revision):
    client = client_of(RefundForm, handler, revision=revision)
    answer = client.tool("it", amount="12.50", reason="late", note="Bye.", copies=3).assert_ok()
    assert answer.text == '{"amount":"12.50","reason":"late","note":"Bye.","copies":3}'


def test_it_decorates_the_handler():
    server = MCPServer("test")

    @server.form(RefundForm, title="Refund")
    def pay_back(form: RefundForm) -> str:
        return str(form.cleaned_data["amount"])

    assert pay_back.__name__ == "pay_back"
    (described,) = MCPClient(server).list_tools()
    assert (described["name"], described["title"]) == ("pay_back", "Refund")
    assert described["description"] == "Pay a customer back."
    assert MCPClient(server).tool("pay_back", amount=3, reason="late").text == "3"
    (found,) = server.forms
    assert (found.form_class, found.name, found.clears) == (RefundForm, "pay_back", False)
    assert found.fields == ["amount", "reason", "note", "copies"]


def test_clients_are_told_what_the_form_says_of_its_fields():
    def it(form: RefundForm) -> str:
        """Refund."""
        return ""

    client = client_of(RefundForm, it)
    (described,) = client.list_tools()
    assert described["description"] == "Refund."
    assert described["inputSchema"]["required"] == ["amount", "reason"]
    assert properties(client) == {
        "amount": {"type": "string", "description": "In euros, with cents. At least 0.01."},
        "reason": {
            "type": "string",
            "enum": ["late", "broken"],
            "description": "late: Came too late, broken: Is broken.",
        },
        "note": {"type": "string", "maxLength": 40, "description": "A word to them."},
        "copies": {"type": "integer", "minimum": 1, "maximum": 5, "default": 2},
    }


@BOTH
def test_what_is_wrong_is_told_field_by_field(handler):
    client = client_of(RefundForm, handler)
    answer = client.tool("it", amount="0", reason="late", note="so sorry", copies=9).assert_failed()
    assert answer.text == (
        "amount: Ensure this value is greater than or equal to 0.01.\n"
        "note: No apologies.\n"
        "copies: Ensure this value is less than or equal to 5."
    )
    assert told(answer) == {
        "amount": ["Ensure this value is greater than or equal to 0.01."],
        "note": ["No apologies."],
        "copies": ["Ensure this value is less than or equal to 5."],
    }
    answer = client.tool("it", amount=13, reason="late").assert_failed()
    assert answer.text == "Not thirteen."
    assert told(answer) == {"__all__": ["Not thirteen."]}


@pytest.mark.parametrize("revision", [*LEGACY, MODERN])
def test_errors_of_fields_are_told_in_every_revision(revision):
    client = client_of(RefundForm, refund, revision=revision)
    answer = client.tool("it", amount="0", reason="late").assert_failed()
    assert [*told(answer)] == ["amount"]


@BOTH
def test_the_handler_does_not_run_for_a_form_that_is_not_valid(handler):
    ran = []

    def it(form: RefundForm) -> str:
        ran.append(form)
        return ""

    client = client_of(RefundForm, it)
    client.tool("it", amount="0", reason="late").assert_failed()
    client.tool("it", reason="late").assert_failed("amount: this argument is required")
    client.tool("it", amount=1, reason="other").assert_failed("reason: ")
    client.tool("it", amount=1, reason="late", more=1).assert_failed("more: unknown argument")
    assert ran == []
    client.tool("it", amount=1, reason="late").assert_ok()
    assert [form.is_valid() for form in ran] == [True]


def test_what_is_not_sent_is_as_the_form_begins():
    client = client_of(RefundForm, refund)
    whole = {"amount": "1", "reason": "late", "note": "", "copies": 2}
    client.tool("it", amount=1, reason="late").assert_structured(whole)
    client.tool("it", amount=1, reason="late", note=None, copies="").assert_structured(whole)


class Kinds(forms.Form):
    day = forms.DateField()
    at = forms.DateTimeField()
    hour = forms.TimeField()
    lasts = forms.DurationField()
    key = forms.UUIDField()
    agree = forms.BooleanField()
    some = forms.TypedMultipleChoiceField(choices=[(1, "One"), (2, "Two")], coerce=int)
    one = forms.TypedChoiceField(choices=[(1, "One"), (2, "Two")], coerce=int)
    unknown = forms.NullBooleanField()
    data = forms.JSONField()
    ratio = forms.FloatField()


class Given(forms.Form):
    data = forms.JSONField()


@pytest.mark.parametrize("data", ["\x00", {"a": [{"b": "\x00"}]}, {"\x00": 1}, [["a", "b\x00"]]])
def test_json_that_a_database_does_not_take_is_told(data):
    client_of(Given, seen).tool("it", data=data).assert_failed("data: Value error, a text without")


def test_values_have_types_and_are_not_read_as_browsers_send_them():
    client = client_of(Kinds, seen)
    sent = {
        "day": "2026-02-01",
        "at": "2026-02-01T12:00:00Z",
        "hour": "12:30:00",
        "lasts": "PT90S",
        "key": "7b7a6f1c-9d54-4d3e-8f7d-4cf1b2f3c9a1",
        "agree": True,
        "some": [1, 2],
        "one": 2,
        "unknown": False,
        "data": {"a": [1]},
        "ratio": 0.5,
    }
    found = client.tool("it", **sent).assert_ok().result["structuredContent"]
    assert found["day"] == repr(date(2026, 2, 1))
    assert found["at"].startswith("datetime.datetime(2026, 2, 1, 12, 0")
    assert found["lasts"] == "datetime.timedelta(seconds=90)"
    assert (found["some"], found["one"], found["agree"]) == ("[1, 2]", "2", "True")
    assert (found["data"], found["unknown"]) == ("{'a': [1]}", "False")
    client.tool("it", **{**sent, "agree": False}).assert_failed("agree: This field is required.")


# What else the handler takes


def who(ctx: Context) -> str:
    return ctx.user.get_username()


def rich(
    form: RefundForm,
    ctx: Context,
    of: Annotated[Ticket, Load(Ticket.objects)],
    name: Annotated[str, Provide(who)],
    urgent: bool = False,
) -> str:
    """Refund."""
    assert ctx.user.get_username() == name
    return f"{form.cleaned_data['amount']} for {of.number} by {name}, {urgent}"


async def arich(
    form: RefundForm,
    ctx: Context,
    of: Annotated[Ticket, Load(Ticket.objects)],
    name: Annotated[str, Provide(who)],
    urgent: bool = False,
) -> str:
    """Refund."""
    assert ctx.user.get_username() == name
    return f"{form.cleaned_data['amount']} for {of.number} by {name}, {urgent}"


@pytest.mark.parametrize("handler", [rich, arich])
def test_a_handler_takes_what_functions_of_tools_take(handler):
    one = ticket(7)
    client = client_of(RefundForm, handler).as_user(user_with(username="ada"))
    assert [*properties(client)][:2] == ["of_id", "urgent"]
    answer = client.tool("it", of_id=one.pk, amount=3, reason="late", urgent=True)
    assert answer.assert_ok().text == "3 for T-7 by ada, True"
    client.tool("it", of_id=0, amount=3, reason="late").assert_failed("No Ticket matches")


class OwnForm(forms.Form):
    word = forms.CharField()
    secret = forms.CharField(required=False)

    def __init__(self, *args: Any, user: Any, limit: int = 3, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user, self.limit = user, limit
        if not user.is_staff:
            del self.fields["secret"]

    def clean_word(self) -> str:
        word: str = self.cleaned_data["word"]
        if len(word) > self.limit:
            raise forms.ValidationError(f"{self.user} writes {self.limit} letters.")
        return word


def of_context(ctx: Context) -> dict[str, Any]:
    return {"user": ctx.user}


def of_request(request: HttpRequest) -> dict[str, Any]:
    return {"user": request.user}


def of_others(ctx: Context, size: int) -> dict[str, Any]:
    return {"user": ctx.user, "limit": size}


def say(form: OwnForm) -> str:
    return form.cleaned_data["word"]


async def asay(form: OwnForm) -> str:
    return form.cleaned_data["word"]


def say_within(form: OwnForm, size: int) -> str:
    return form.cleaned_data["word"]


@pytest.mark.parametrize(
    ("handler", "kwargs"),
    [(say, of_context), (asay, of_request), (say_within, of_others)],
)
def test_a_form_is_made_with_what_it_takes(handler, kwargs):
    given = {"size": 3} if handler is say_within else {}
    client = client_of(OwnForm, handler, form_kwargs=kwargs)
    ada = client.as_user(user_with(username="ada"))
    assert ada.tool("it", word="yes", **given).text == "yes"
    ada.tool("it", word="yes!", **given).assert_failed("word: ada writes 3 letters.")
    # What the form has taken away is refused, as if it were not there.
    ada.tool("it", word="yes", secret="x", **given).assert_failed("secret: You may not set this.")
    root = client.as_user(user_with(username="root", is_staff=True))
    root.tool("it", word="yes", secret="x", **given).assert_ok()


def test_kwargs_may_be_the_same_for_all():
    user = User(username="all", is_staff=True)
    client = client_of(OwnForm, say, form_kwargs={"user": user, "limit": 1})
    client.tool("it", word="no").assert_failed("all writes 1 letters")


# Forms of models


def test_the_save_of_a_model_form_is_a_handler():
    client = client_of(TicketForm, TicketForm.save, name="create_ticket", permission=ADD)
    client = client.as_user(user_with("add_ticket"))
    of = customer()
    answer = client.tool(
        "create_ticket", number="T-1", subject="Help", customer=of.pk, due="2026-02-01"
    ).assert_ok()
    one = Ticket.objects.get()
    assert answer.result["structuredContent"] == {"id": one.pk, "text": "T-1 Help"}
    assert (one.customer, one.due, one.priority) == (of, date(2026, 2, 1), Ticket.Priority.LOW)
    assert one.is_public is True
    answer = client.tool("create_ticket", number="T-1", subject="Help", customer=of.pk)
    answer.assert_failed("number: Ticket with this Number already exists.")
    assert Ticket.objects.count() == 1


def test_it_says_who_may_save():
    with pytest.raises(RegistrationError, match="so it needs permission="):
        client_of(TicketForm, TicketForm.save)
    client = client_of(TicketForm, TicketForm.save, permission=ADD).as_user(user_with())
    assert client.list_tools() == []
    with pytest.raises(RegistrationError, match="needs name="):
        MCPServer("test").form(TicketForm, TicketForm.save, permission=ADD)


@pytest.mark.django_db(transaction=True)
def test_rows_of_several_tables_are_saved_together_or_not_at_all(monkeypatch):
    def fail(form: Any) -> None:
        raise forms.ValidationError("The tags are full.")

    monkeypatch.setattr(TicketForm, "_save_m2m", fail)
    client = client_of(TicketForm, TicketForm.save, permission=ADD)
    client = client.as_user(user_with("add_ticket"))
    client.tool("it", number="T-1", subject="Help", customer=customer().pk).assert_failed("full")
    assert Ticket.objects.count() == 0


def edit(form: TicketForm, of: Annotated[Ticket, Load(Ticket.objects)]) -> str:
    assert form.instance is of
    form.save()
    return ", ".join(form.changed_data)


async def aedit(form: TicketForm, of: Annotated[Ticket, Load(Ticket.objects)]) -> str:
    await form.instance.asave()
    return ", ".join(form.changed_data)


@pytest.mark.parametrize("handler", [edit, aedit])
def test_fields_of_an_instance_keep_their_values(handler):
    at = datetime(2026, 1, 1, 12, 0, 0, 123456, tzinfo=UTC)
    one = ticket(1, body="Long", due=date(2026, 1, 1), created=at, price=Decimal("1.125"))
    client = client_of(TicketForm, handler, instance=lambda of: of)
    (described,) = client.list_tools()
    assert described["inputSchema"]["required"] == ["of_id"]
    assert client.tool("it", of_id=one.pk, subject="New").assert_ok().text == "subject"
    one.refresh_from_db()
    assert (one.subject, one.body, one.due, one.created) == ("New", "Long", date(2026, 1, 1), at)
    assert one.price == Decimal("1.125")
    # What is nothing is nothing that was said.
    client.tool("it", of_id=one.pk, body="", due=None, tags=[]).assert_ok()
    one.refresh_from_db()
    assert (one.body, one.due) == ("Long", date(2026, 1, 1))
    client.tool("it", of_id=one.pk, clear=["body", "due"]).assert_ok()
    one.refresh_from_db()
    assert (one.body, one.due) == ("", None)
    client.tool("it", of_id=one.pk, clear=["subject"]).assert_failed("clear")
    client.tool("it", of_id=one.pk, body="x", clear=["body"]).assert_failed("not both")


def test_choices_are_the_rows_that_the_form_allows():
    class OneForm(forms.Form):
        of = forms.ModelChoiceField(Customer.objects.exclude(name="Hidden"))
        several = forms.ModelMultipleChoiceField(Customer.objects.all(), required=False)

    def it(form: OneForm) -> list[str]:
        return [form.cleaned_data["of"].name, *map(str, form.cleaned_data["several"])]

    it.__annotations__["form"] = OneForm
    ada, hidden = customer("Ada"), customer("Hidden")
    client = client_of(OneForm, it)
    client.tool("it", of=ada.pk, several=[ada.pk, hidden.pk]).assert_structured(
        ["Ada", "Ada", "Hidden"]
    )
    client.tool("it", of=hidden.pk).assert_failed("of: Select a valid choice.")


# Files


class PhotoForm(forms.Form):
    photo = forms.ImageField(help_text="Of the damage.")
    report = forms.FileField(required=False, max_length=20)


def look(form: PhotoForm) -> str:
    photo, report = form.cleaned_data["photo"], form.cleaned_data["report"]
    assert form.files["photo"] is photo
    return f"{photo.name} {photo.image.size} {report and report.read().decode()}"


def sent_file(name: str, data: bytes) -> dict[str, str]:
    return {"name": name, "data": base64.b64encode(data).decode()}


def png() -> bytes:
    data = BytesIO()
    Image.new("RGB", (3, 2)).save(data, "PNG")
    return data.getvalue()


def test_files_and_pictures_are_sent_as_base64():
    client = client_of(PhotoForm, look)
    assert properties(client)["photo"] == {
        "description": "Of the damage.",
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 255},
            "data": {"type": "string", "contentEncoding": "base64"},
            "mimeType": {"type": "string"},
        },
        "required": ["name", "data"],
    }
    photo = sent_file("a.png", png())
    client.tool("it", photo=photo).assert_contains("a.png (3, 2) None")
    report = sent_file("r.txt", b"All broken")
    client.tool("it", photo=photo, report=report).assert_contains("All broken")


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"photo": sent_file("a.png", b"GIF no")}, "photo: Upload a valid image."),
        ({"photo": sent_file("a.exe", png())}, "photo: File extension “exe” is not allowed"),
        (
            {"photo": sent_file("a.png", png()), "report": sent_file("r" * 30, b"x")},
            "report: Ensure this filename has at most 20 characters",
        ),
        ({"photo": sent_file("a.png", png() + b"0" * 1000)}, "photo: "),
        ({"photo": "a.png"}, "photo: "),
    ],
)
def test_files_that_the_form_does_not_take_are_refused(files, said):
    client_of(PhotoForm, look, max_file_bytes=1000).tool("it", **files).assert_failed(said)


# What clients are told


def schema_of(field: forms.Field, *, keeps: bool = False) -> dict[str, Any]:
    kind: Any = type("OneForm", (forms.Form,), {"one": field})
    client = client_of(kind, lambda form: "", instance=(lambda: None) if keeps else None)
    found: dict[str, Any] = properties(client)["one"]
    return found


FIELDS: dict[str, tuple[forms.Field, dict[str, Any]]] = {
    "an address": (forms.EmailField(max_length=9), {"format": "email", "maxLength": 9}),
    "a URL": (forms.URLField(assume_scheme="https"), {"format": "uri"}),
    "a slug": (forms.SlugField(), {"pattern": "^[-a-zA-Z0-9_]+$"}),
    "a pattern": (forms.RegexField(r"^\d{5}$"), {"pattern": r"^\d{5}$"}),
    "one in all": (forms.RegexField(r"\A[A-Z]\d\Z"), {"pattern": r"^[A-Z]\d$"}),
    "of Python alone": (forms.RegexField(r"^(?P<year>\d+)$"), {}),
    "of letters": (forms.RegexField(r"^\w+$"), {}),
    "inverse": (
        forms.CharField(validators=[RegexValidator(r"^x$", inverse_match=True)]),
        {},
    ),
    "whatever the case": (forms.CharField(validators=[RegexValidator("x", flags=2)]), {}),
    "least letters": (forms.CharField(validators=[MinLengthValidator(3)]), {"minLength": 3}),
    "a limit that moves": (
        forms.IntegerField(validators=[MaxValueValidator(lambda: 7)]),
        {"maximum": 7},
    ),
    "days": (
        forms.DateField(validators=[MinValueValidator(date(2026, 1, 1))]),
        {"format": "date", "description": "At least 2026-01-01."},
    ),
    "a label": (forms.CharField(label="What to say"), {"description": "What to say."}),
    "the label of a name": (forms.CharField(label="One"), {}),
    "both": (
        forms.CharField(label="What to say", help_text="Be kind!"),
        {"description": "What to say. Be kind!"},
    ),
    "a default": (forms.BooleanField(initial=True, required=False), {"default": True}),
    "a default of today": (forms.DateField(initial=date.today), {"format": "date"}),
    "a decimal": (forms.DecimalField(initial=Decimal("1.50")), {"default": "1.50"}),
}


@pytest.mark.parametrize(("field", "expected"), FIELDS.values(), ids=FIELDS)
def test_rules_are_told_where_schemas_have_a_word_for_them(field, expected):
    schema = schema_of(field)
    schema.pop("type")
    schema.pop("minLength", None) if "minLength" not in expected else None
    assert {key: value for key, value in schema.items() if key in expected} == expected
    assert schema.keys() - {"maxLength"} == expected.keys() - {"maxLength"}


@isolate_apps("tests.model_tools.desk")
def test_rules_of_the_model_are_told_as_well():
    class Room(models.Model):  # noqa: DJ008 - nobody sees one
        beds = models.IntegerField(validators=[MinValueValidator(1)])

        class Meta:
            app_label = "desk"

    class RoomForm(forms.ModelForm):
        class Meta:
            model = Room
            fields = ["beds"]

    (parameter,) = form_parameters(RoomForm, "it", keeps=False, max_file_bytes=1)
    schema = TypeAdapter(parameter.annotation).json_schema()
    assert schema == {"type": "integer", "minimum": 1}


def test_hidden_and_disabled_fields_are_not_for_clients():
    class Form(forms.Form):
        word = forms.CharField()
        token = forms.CharField(widget=forms.HiddenInput, initial="hidden")
        fixed = forms.CharField(disabled=True, initial="fixed")

    client = client_of(Form, lambda form: "/".join(form.cleaned_data.values()))
    assert [*properties(client)] == ["word"]
    assert client.tool("it", word="a").text == "a/hidden/fixed"
    client.tool("it", word="a", token="b").assert_failed("token: unknown argument")
    client.tool("it", word="a", fixed="b").assert_failed("fixed: unknown argument")


def test_a_form_with_a_prefix_is_filled_in_by_the_names_of_its_fields():
    client = client_of(RefundForm, refund, form_kwargs={"prefix": "money"})
    answer = client.tool("it", amount="0", reason="late").assert_failed("amount: ")
    assert [*told(answer)] == ["amount"]
    client.tool("it", amount="1", reason="late", copies=4).assert_contains('"copies":4')


def test_widgets_of_several_inputs_take_one_value():
    class Form(forms.Form):
        day = forms.DateField(widget=forms.SelectDateWidget)
        at = forms.DateTimeField(widget=forms.SplitDateTimeWidget)
        until = forms.SplitDateTimeField()

    said = "{day} {until:%Y-%m-%d %M} {at:%M}"
    client = client_of(Form, lambda form: said.format(**form.cleaned_data))
    moments = {"at": "2026-02-01T12:30:00Z", "until": "2026-02-03T12:45:00Z"}
    answer = client.tool("it", day="2026-02-01", **moments).assert_ok()
    assert answer.text == "2026-02-01 2026-02-03 45 30"


# What is refused


class Password(forms.Form):
    word = forms.CharField(widget=forms.PasswordInput)


class Both(forms.MultiValueField):
    pass


class Range(forms.Form):
    at = Both(fields=())


class Clear(forms.Form):
    clear = forms.CharField(required=False, initial="x")


class Oddly(forms.Form):
    base_fields: Any


Oddly.base_fields = {"two words": forms.CharField()}


def of_wrong_kind(form: TicketForm) -> str:
    return ""


def nothing() -> str:
    return ""


def taken(form: RefundForm, amount: int) -> str:
    return ""


@pytest.mark.parametrize(
    ("form_class", "handler", "said"),
    [
        (RefundForm(), refund, "is no form"),
        (Ticket, refund, "is no form"),
        (Password, lambda form: "", "is a password, which must not pass through a model"),
        (Range, lambda form: "", "is a Both, which is no single value of JSON"),
        (Clear, lambda form: "", "a field is called 'clear'"),
        (Oddly, lambda form: "", "has a name that no argument can have"),
        (RefundForm, of_wrong_kind, "the first parameter takes the form: `def of_wrong_kind"),
        (RefundForm, nothing, "the first parameter takes the form"),
        (RefundForm, taken, "'amount' is a parameter, and a field of RefundForm"),
        (RefundForm, RefundForm, "is not a function"),
    ],
)
def test_what_cannot_be_offered_is_refused_with_the_cure(form_class, handler, said):
    server = MCPServer("test")
    with pytest.raises(RegistrationError, match=said):
        server.form(form_class, handler)
    assert list(server.tools) == server.forms == []


def test_a_form_without_a_handler_is_noticed_at_once_if_it_is_none():
    with pytest.raises(RegistrationError, match="is no form"):
        MCPServer("test").form(refund)


def test_a_form_that_nothing_handles_is_found_by_a_check():
    server = MCPServer("test")
    decorate = server.form(RefundForm)
    (problem,) = server.check()
    assert problem.startswith("form(RefundForm) is no tool yet: decorate the function")
    decorate(refund)
    assert server.check() == []


def test_a_handler_may_take_any_form():
    def it(form: forms.BaseForm) -> str:
        return type(form).__name__

    assert client_of(RefundForm, it).tool("it", amount=1, reason="late").text == "RefundForm"


def test_uploaded_files_need_a_word():
    def it(file: UploadedFile) -> str:
        return ""

    with pytest.raises(RegistrationError, match="Annotated\\[UploadedFile, Upload"):
        MCPServer("test").tool(it)
