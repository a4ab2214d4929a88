"""What Python types ask for, and what answers become."""

from __future__ import annotations

import enum
import uuid
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest
from django.db import models
from pydantic import AnyUrl, BaseModel, Field, SecretStr
from typing_extensions import TypedDict

from django_mcp.protocol.versions import BY_NAME
from django_mcp.server.questions.fields import InvalidAnswer, requested_schema
from django_mcp.server.questions.type_forms import TypeForm

from .support import MODERN


class Colour(enum.Enum):
    RED = "red"
    GREEN = "green"


class Status(models.TextChoices):
    OPEN = "open", "still open"
    SHIPPED = "shipped", "on its way"


class Level(models.IntegerChoices):
    LOW = 1, "low"
    HIGH = 2, "high"


def rendered(annotation: Any, revision: str = MODERN) -> dict[str, Any]:
    return requested_schema(TypeForm(annotation).fields, BY_NAME[revision])


def described(annotation: Any, revision: str = MODERN) -> dict[str, Any]:
    (only,) = rendered(annotation, revision)["properties"].values()
    return only


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (Decimal, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (date, {"type": "string", "format": "date"}),
        (datetime, {"type": "string", "format": "date-time"}),
        (AnyUrl, {"type": "string", "format": "uri", "minLength": 1}),
        (uuid.UUID, {"type": "string"}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Literal["a"], {"type": "string", "enum": ["a"]}),
        (Literal[1, 2], {"type": "string", "enum": ["1", "2"]}),
        (Colour, {"type": "string", "enum": ["red", "green"]}),
        (
            Status,
            {
                "type": "string",
                "oneOf": [
                    {"const": "open", "title": "still open"},
                    {"const": "shipped", "title": "on its way"},
                ],
            },
        ),
        (
            Level,
            {
                "type": "string",
                "oneOf": [{"const": "1", "title": "low"}, {"const": "2", "title": "high"}],
            },
        ),
        (list[Literal["a"]], {"type": "array", "items": {"type": "string", "enum": ["a"]}}),
        (set[Colour], {"type": "array", "items": {"type": "string", "enum": ["red", "green"]}}),
        (
            Annotated[list[Status], Field(min_length=1, max_length=2)],
            {
                "type": "array",
                "items": {
                    "anyOf": [
                        {"const": "open", "title": "still open"},
                        {"const": "shipped", "title": "on its way"},
                    ]
                },
                "minItems": 1,
                "maxItems": 2,
            },
        ),
        (
            Annotated[int, Field(gt=0, lt=10, title="N", description="How many")],
            {
                "type": "integer",
                "minimum": 1,
                "maximum": 9,
                "title": "N",
                "description": "How many",
            },
        ),
        (Annotated[Decimal, Field(ge=0, le=5)], {"type": "number", "minimum": 0, "maximum": 5}),
        (
            Annotated[str, Field(min_length=1, max_length=5, pattern="^a")],
            {"type": "string", "minLength": 1, "maxLength": 5},
        ),
    ],
    ids=str,
)
def test_a_single_value_is_asked_for_in_a_form_of_one_field(annotation: Any, schema: Any):
    assert rendered(annotation) == {
        "type": "object",
        "properties": {"value": schema},
        "required": ["value"],
    }


class Model(BaseModel):
    name: str = Field(alias="fullName", description="All of it")
    colour: Colour = Colour.RED
    colours: list[Colour] = [Colour.GREEN]
    since: date | None = None
    note: str | None
    agreed: bool = False
    score: float = 95.5


def test_a_model_is_asked_for_field_by_field():
    assert rendered(Model) == {
        "type": "object",
        "properties": {
            "fullName": {"type": "string", "description": "All of it"},
            "colour": {"type": "string", "enum": ["red", "green"], "default": "red"},
            "colours": {
                "type": "array",
                "items": {"type": "string", "enum": ["red", "green"]},
                "default": ["green"],
            },
            "since": {"type": "string", "format": "date"},
            "note": {"type": "string"},
            "agreed": {"type": "boolean", "default": False},
            "score": {"type": "number", "default": 95.5},
        },
        "required": ["fullName"],
    }


def test_2025_06_18_has_defaults_for_booleans_alone_and_no_multiple_choice():
    properties = rendered(Model, "2025-06-18")["properties"]
    assert properties["agreed"] == {"type": "boolean", "default": False}
    assert properties["score"] == {"type": "number"}
    assert properties["colour"] == {"type": "string", "enum": ["red", "green"]}
    assert properties["colours"] == {
        "type": "string",
        "description": "Any of: red, green. Separate several by commas.",
    }


def test_2025_06_18_has_titles_of_choices_in_enum_names():
    assert described(Status, "2025-06-18") == {
        "type": "string",
        "enum": ["open", "shipped"],
        "enumNames": ["still open", "on its way"],
    }
    assert "open (still open)" in described(list[Status], "2025-06-18")["description"]


def test_who_writes_enum_names_gets_them():
    class Old(BaseModel):
        option: Literal["opt1", "opt2"] = Field(json_schema_extra={"enumNames": ["One", "Two"]})

    for revision in ("2025-06-18", "2025-11-25", MODERN):
        assert described(Old, revision) == {
            "type": "string",
            "enum": ["opt1", "opt2"],
            "enumNames": ["One", "Two"],
        }


def test_who_writes_one_of_gets_it():
    titled = [{"const": "v1", "title": "One"}, {"const": "v2", "title": "Two"}]

    class Titled(BaseModel):
        option: Literal["v1", "v2"] = Field(json_schema_extra={"oneOf": titled})

    assert described(Titled) == {"type": "string", "oneOf": titled}
    assert described(Titled, "2025-06-18")["enumNames"] == ["One", "Two"]


@dataclass
class Point:
    x: int
    y: int = 0


class Named(TypedDict):
    name: str


@pytest.mark.parametrize(
    ("annotation", "content", "value"),
    [
        (str, {"value": "a"}, "a"),
        (int, {"value": 5}, 5),
        (int, {"value": 5.0}, 5),
        (float, {"value": 5}, 5.0),
        (Decimal, {"value": 0.1}, Decimal("0.1")),
        (date, {"value": "2026-07-28"}, date(2026, 7, 28)),
        (Literal[1, 2], {"value": "2"}, 2),
        (Colour, {"value": "green"}, Colour.GREEN),
        (Level, {"value": "2"}, Level.HIGH),
        (list[Level], {"value": ["2", "1"]}, [Level.HIGH, Level.LOW]),
        (list[Colour], {"value": "red, green"}, [Colour.RED, Colour.GREEN]),
        (set[Colour], {"value": ["red", "red"]}, {Colour.RED}),
        (str | None, {}, None),
        (str | None, {"value": None}, None),
        (str, {"value": "a", "more": 1}, "a"),
        (Point, {"x": 1}, Point(1)),
        (Named, {"name": "a"}, {"name": "a"}),
        (Model, {"fullName": "a", "note": "b"}, Model(fullName="a", note="b")),
        (Model, {"fullName": "a", "colour": None}, Model(fullName="a", note=None)),
        (
            Model,
            {"fullName": "a", "colours": "red", "since": "2026-07-28"},
            Model(fullName="a", colours=[Colour.RED], since=date(2026, 7, 28), note=None),
        ),
    ],
    ids=str,
)
def test_an_answer_becomes_the_value(annotation: Any, content: Any, value: Any):
    read = TypeForm(annotation).read(content)
    assert (read, type(read)) == (value, type(value))


@pytest.mark.parametrize(
    ("annotation", "content", "problem"),
    [
        (str, {}, "A value is required."),
        (int, {"value": "five"}, "Input should be a valid integer"),
        (str, {"value": 5}, "Input should be a valid string."),
        (Literal["a", "b"], {"value": "c"}, "Input should be 'a' or 'b'."),
        (Annotated[int, Field(multiple_of=5)], {"value": 7}, "multiple of 5"),
        (Annotated[str, Field(pattern="^a")], {"value": "b"}, "should match pattern '^a'"),
        (float, {"value": "nan"}, "finite number"),
        (Point, {"x": "?"}, "x: Input should be a valid integer"),
        (Point, {}, "x: Field required."),
        (Model, {"fullName": "a", "colours": ["red", "blue"]}, "colours.1: "),
    ],
    ids=str,
)
def test_an_answer_that_does_not_fit_says_why(annotation: Any, content: Any, problem: str):
    with pytest.raises(InvalidAnswer, match=problem.replace("^", r"\^").replace(".", r"\.")):
        TypeForm(annotation).read(content)


class Nested(BaseModel):
    inner: Named


class Many(BaseModel):
    names: list[str]


class Login(BaseModel):
    password: SecretStr


@pytest.mark.parametrize(
    ("annotation", "problem"),
    [
        (Nested, r"Nested\.inner: it is not a flat value\. Use str, int"),
        (Many, r"Many\.names: it is not a flat value"),
        (Login, r"Login\.password: it is a secret.*ctx\.elicit_url"),
        (SecretStr, "SecretStr: it is a secret"),
        (dict[str, int], "it is not a flat value"),
        (int | str, "it is not a flat value"),
        (list[int], "it is not a flat value"),
        (object, "it is not a flat value"),
        pytest.param(object(), "A question cannot ask for", id="an instance"),
    ],
    ids=str,
)
def test_what_no_form_can_ask_for_is_refused_with_the_cure(annotation: Any, problem: str):
    with pytest.raises(TypeError, match=problem):
        TypeForm(annotation)
