"""Values without a JSON form: the client gets a sentence that helps, the log the rest."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal

import pytest
from django.contrib.auth.models import Group, User
from django.utils.functional import SimpleLazyObject, lazystr
from django.utils.html import format_html
from django.utils.translation import gettext_lazy, ngettext_lazy, override
from mcp_types import CallToolResult
from pydantic import BaseModel, computed_field, field_serializer

from django_mcp import MCPServer
from tests.server.support import REVISIONS, call, client_of, returning, serve_tool


class Person(BaseModel):
    id: int
    username: str


@dataclass
class Point:
    x: int


class Blob(BaseModel):
    data: bytes


class Leaky(BaseModel):
    @computed_field
    def secret(self) -> int:
        raise ValueError("a secret")


class LeakySerializer(BaseModel):
    value: int = 1

    @field_serializer("value")
    def leak(self, value: int) -> int:
        raise ValueError("a secret")


def user() -> User:
    return User(id=1, username="bob")


def users() -> Any:
    return User.objects.all()


ANNOTATIONS = [..., Any, dict[str, Any], list[Any], list[Person], list[dict[str, Any]], Point, int]


def fails(annotation: Any, value: Any, text: str) -> str:
    answer = call(returning(annotation, value))
    return answer.assert_failed(text).text


@pytest.mark.parametrize("annotation", ANNOTATIONS, ids=str)
def test_a_model_instance_is_named_with_the_cure(annotation, caplog):
    message = fails(annotation, user, "a User instance has no JSON form. Return a pydantic model")
    assert "UserOut.model_validate(instance)" in message
    (record,) = (each for each in caplog.records if each.name == "django_mcp.server")
    assert record.name == "django_mcp.server"
    assert record.getMessage().startswith("tools/call 'it': The result could not be serialized")
    assert record.exc_info


@pytest.fixture
def bob(db):
    return User.objects.create(id=1, username="bob")


@pytest.mark.usefixtures("bob")
@pytest.mark.parametrize(
    "annotation", [..., Any, dict[str, Any], Person, Point, int, list[int], list[Point]], ids=str
)
def test_a_query_set_is_named_with_the_cure(annotation):
    message = fails(annotation, users, "a QuerySet of User has no JSON form")
    assert "[UserOut.model_validate(each) for each in queryset]" in message
    assert "list(queryset.values(...))" in message


@pytest.mark.usefixtures("bob")
def test_rows_that_a_list_does_not_describe_are_named():
    fails(list, users, "a User instance has no JSON form")
    fails(list[Any], users, "a User instance has no JSON form")


@pytest.mark.usefixtures("bob")
def test_rows_that_a_list_does_describe_are_sent():
    rows = [{"id": 1, "username": "bob"}]
    values = User.objects.values("id", "username")
    call(returning(list[Person], users)).assert_structured(rows)
    call(returning(list[Person], lambda: list(users()))).assert_structured(rows)
    call(returning(Iterable[Person], users)).assert_structured(rows)
    call(returning(dict[str, list[Person]], lambda: {"a": users()})).assert_structured({"a": rows})
    call(returning(list[Person], lambda: values)).assert_structured(rows)
    call(returning(list[dict[str, Any]], lambda: values)).assert_structured(rows)
    call(returning(list[int], lambda: users().values_list("id", flat=True))).assert_structured([1])
    call(returning(list[Person], User.objects.none)).assert_structured([])
    call(returning(Person, User.objects.get)).assert_structured(rows[0])
    lazy = SimpleLazyObject(User.objects.get)
    call(returning(Person, lambda: lazy)).assert_structured(rows[0])


@pytest.mark.usefixtures("bob")
@pytest.mark.parametrize(
    ("value", "what"),
    [
        (lambda: User.objects, "a UserManager of User"),
        (lambda: user().groups, "a ManyRelatedManager of Group"),
        (lambda: Group.objects.none(), "a QuerySet of Group"),
        (lambda: User.objects.values("id"), "a QuerySet of User"),
    ],
    ids=["manager", "related manager", "empty", "values"],
)
def test_managers_and_other_query_sets(value, what):
    for annotation in (..., dict[str, Any], int, Person):
        fails(annotation, value, f"{what} has no JSON form")


DEEP: dict[str, tuple[Any, Any]] = {
    "in a list": (..., lambda value: [value]),
    "deep inside": (..., lambda value: {"a": {"b": [value]}}),
    "dict": (dict[str, Any], lambda value: {"a": value}),
    "dict in a list in a dict": (dict[str, Any], lambda value: {"a": [{"b": value}]}),
    "list of anything": (list[Any], lambda value: [[value]]),
    "dict of lists": (dict[str, list[Any]], lambda value: {"a": [value]}),
    "list of dicts": (list[dict[str, Any]], lambda value: [{"a": value}]),
    "dict of numbers": (dict[str, int], lambda value: {"a": value}),
    "list of dataclasses": (list[Point], lambda value: [Point(1), value]),
    "tuple": (tuple[int, Any], lambda value: (1, value)),
}


@pytest.mark.parametrize(("annotation", "wrap"), DEEP.values(), ids=DEEP)
@pytest.mark.parametrize(("value", "what"), [(user, "User instance"), (users, "QuerySet of User")])
def test_it_is_found_however_deep(annotation, wrap, value, what):
    fails(annotation, lambda: wrap(value()), f"a {what} has no JSON form")


LAZY = gettext_lazy("Yes")


@pytest.mark.parametrize(
    ("annotation", "value", "text"),
    [
        (str, LAZY, "Ja"),
        (..., LAZY, "Ja"),
        (..., {"a": [LAZY]}, '{"a":["Ja"]}'),
        (dict[str, Any], {"a": [LAZY]}, '{"a":["Ja"]}'),
        (dict[str, Any], {"a": lazystr("b")}, '{"a":"b"}'),
        (str, lazystr("text"), "text"),
        (str, ngettext_lazy("%d hour", "%d hours", 2), "%d hours"),
    ],
    ids=repr,
)
def test_lazy_text_is_text_in_the_language_of_the_call(annotation, value, text):
    if "hour" in text:
        text = str(value % 2)
        value = value % 2
    with override("de"):
        assert call(returning(annotation, lambda: value)).assert_ok().text == text


def test_safe_strings_are_strings():
    made = format_html("<b>{}</b>", "<")
    assert call(returning(str, made)).text == "<b>&lt;</b>"
    call(returning(dict[str, str], {"a": made})).assert_structured({"a": "<b>&lt;</b>"})


NUMBERS: dict[Any, Any] = {
    float: lambda number: number,
    float | None: lambda number: number,
    list[float]: lambda number: [1.0, number],
    dict[str, float]: lambda number: {"a": number},
}


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf], ids=repr)
@pytest.mark.parametrize("annotation", NUMBERS, ids=str)
def test_a_number_that_json_has_no_word_for_is_refused_where_a_number_is_promised(
    annotation, number
):
    value = NUMBERS[annotation](number)
    fails(annotation, value, "NaN and infinity are not JSON; return None instead")


@pytest.mark.django_db
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("annotation", [..., Any, dict[str, Any]], ids=str)
def test_elsewhere_it_is_null(annotation, revision):
    client = client_of(serve_tool(returning(annotation, {"a": [math.nan, math.inf]})), revision)
    answer = client.tool("it").assert_ok()
    assert json.loads(answer.text) == {"a": [None, None]}
    assert b"NaN" not in answer.http.content


def test_the_words_are_fine_inside_of_text():
    assert call(returning(str, "NaN, Infinity")).text == "NaN, Infinity"
    call(returning(list[str], ["NaN"])).assert_structured(["NaN"])


def test_a_ready_made_result_must_be_json_too():
    made = CallToolResult(content=[], structured_content={"a": math.nan})
    answer = call(returning(CallToolResult, made))
    assert b"NaN" not in answer.http.content


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (..., b"abc"),
        (..., bytearray(b"abc")),
        pytest.param(..., memoryview(b"abc"), id="memoryview"),
        (..., {"a": b"\xff"}),
        (dict[str, Any], {"a": b"\xff"}),
        (Blob, Blob(data=b"\xff")),
        (str | bytes, b"abc"),
    ],
    ids=repr,
)
def test_bytes_are_refused_with_the_cure(annotation, value):
    fails(annotation, value, "bytes have no JSON form; wrap them, for example django_mcp.content")


@pytest.mark.parametrize(
    ("annotation", "value", "where"),
    [
        (int, "five", "(the value: Input should be a valid integer"),
        (int, None, "(the value: Input should be a valid integer"),
        (Person, None, "(the value: Input should be a valid dictionary or object"),
        (Person, {"id": 1}, "(username: Field required)"),
        (Person, Person.model_construct(id="x", username=3), "(id: Input should be a valid"),
        (list[Person], [{"id": "x", "username": "a"}], "(0.id: Input should be a valid integer"),
        (Point, Point(x="far"), "(x: Input should be a valid integer"),
        (Literal["a", "b"], "c", "(the value: Input should be 'a' or 'b')"),
        (list[int], 5, "(the value: Input should be a valid list)"),
        (dict[str, int], [1], "(the value: Input should be a valid dictionary)"),
    ],
)
def test_a_value_that_contradicts_its_annotation(annotation, value, where, caplog):
    message = fails(annotation, value, "it does not match the return annotation")
    assert where in message
    assert "five" not in message
    (record,) = (each for each in caplog.records if each.name == "django_mcp.server")
    assert where in record.getMessage()
    assert record.exc_info


class Member(Person):
    since: int


class Login(BaseModel):
    last_login: datetime


@pytest.mark.usefixtures("bob")
@pytest.mark.parametrize(
    ("annotation", "value", "where"),
    [
        (Member, User.objects.get, "(since: Field required)"),
        (list[Member], users, "(0.since: Field required)"),
        (list[Member], lambda: list(users()), "(0.since: Field required)"),
        (dict[str, Member], lambda: {"a": user()}, "(a.since: Field required)"),
        (list[Login], users, "(0.last_login: Input should be a valid datetime)"),
    ],
    ids=["an instance", "a query set", "a list", "a dict", "a value of a row"],
)
def test_what_rows_lack_is_named(annotation, value, where):
    assert where in fails(annotation, value, "it does not match the return annotation")


@pytest.mark.usefixtures("bob")
def test_the_query_set_of_an_asynchronous_function_is_named_with_the_cure():
    async def it() -> list[Person]:
        return users()

    answer = call(it).assert_failed("a QuerySet of User asks the database when it")
    assert "Return [each async for each in queryset]" in answer.text


@pytest.mark.usefixtures("bob")
def test_what_the_database_says_of_a_query_set_stays_in_the_log(caplog):
    def it() -> list[Person]:
        return User.objects.extra(where=["a_secret = 1"])

    assert "secret" not in call(it).assert_failed("The tool failed.").text
    assert "a_secret" in caplog.text


def test_values_that_know_no_end():
    circle: dict[str, Any] = {}
    circle["self"] = circle
    deep: dict[str, Any] = {}
    for _ in range(5000):
        deep = {"deeper": deep}
    for annotation in (..., dict[str, Any]):
        fails(annotation, circle, "Circular reference")
        fails(annotation, deep, "The result could not be serialized")


@pytest.mark.parametrize(
    ("value", "kind"),
    [(object(), "object"), (lambda: print, "builtin_function_or_method"), (range(3), "range")],
    ids=["object", "function", "range"],
)
def test_other_things_are_named(value, kind):
    for annotation in (..., dict[str, Any]):
        wrapped = {"a": value() if callable(value) else value}
        fails(annotation, wrapped, f"{kind} has no JSON form. Return plain values or pydantic")


@pytest.mark.parametrize("value", [Leaky.model_construct(), LeakySerializer()], ids=type)
@pytest.mark.parametrize("typed", [True, False])
def test_an_exception_out_of_the_value_stays_in_the_log(value, typed, caplog):
    message = fails(type(value) if typed else ..., value, "The tool failed.")
    assert "secret" not in message
    assert "a secret" in caplog.text


@pytest.mark.parametrize("annotation", [str, ..., dict[str, Any], list[str]], ids=str)
def test_half_a_surrogate_pair_cannot_be_sent(annotation):
    value = "\ud83d" if annotation in (str, ...) else {"a": "\ud83d"}
    value = ["\ud83d"] if annotation == list[str] else value
    answer = call(returning(annotation, value)).assert_failed("(reference ")
    assert answer.message["id"] == 1


def test_a_value_is_read_where_the_function_ran():
    class Lazy:
        def __init__(self) -> None:
            self.id, self.username = Decimal(1), "bob"

    call(returning(Person, Lazy)).assert_structured({"id": 1, "username": "bob"})


def test_one_bad_tool_leaves_the_others_alone():
    server = MCPServer("test")
    server.tool(name="bad")(returning(Any, user))
    server.tool(name="good")(returning(int, 5))
    client = client_of(server)
    client.tool("bad").assert_failed()
    client.tool("good").assert_structured(5)
    assert len(client.list_tools()) == 2
