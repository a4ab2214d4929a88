"""What validates much: the same values as pydantic's own validators make, at a bounded cost."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Json,
    JsonValue,
    RootModel,
    Tag,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    create_model,
    field_validator,
    model_validator,
)
from pydantic.dataclasses import dataclass as pydantic_dataclass
from pydantic_core import to_json
from typing_extensions import TypedDict

from django_mcp.protocol import bounded
from django_mcp.protocol.bounded import NOT_LOOKED_AT, TOO_COSTLY, Validator


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Base(BaseModel):
    a: int
    b: str = "b"


class Wide(Base):
    c: float | None = None


class Exact(BaseModel):
    model_config = ConfigDict(extra="forbid")

    a: int
    d: Annotated[str, Field(validation_alias=AliasChoices("d", "dd"))] = ""


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)

    a: int
    when: dt.date | None = None
    ids: set[uuid.UUID] = set()
    pair: tuple[int, str] | None = None
    named: dict[int, Base] | None = None
    tree: Strict | dt.date | None = None


class Dated(BaseModel):
    """Validates the same definitions as JSON and, after a function, as values of Python."""

    a: dt.date | int | str = 0
    b: Dated | dt.date | str | None = None
    c: Annotated[Dated | dt.date | str | None, BeforeValidator(lambda value: value)] = None
    d: Annotated[list[Dated | dt.date | str], Field(validate_default=True)] = []


@pydantic_dataclass(config=ConfigDict(strict=True))
class Exactly:
    a: dt.datetime | None = None
    b: frozenset[int] | tuple[dt.date, ...] | None = None


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, int]

    a: int = 0


class Tree(BaseModel):
    v: int
    left: Tree | None = None
    right: Tree | None = None


class Checked(BaseModel):
    a: int

    @field_validator("a")
    @classmethod
    def small(cls, value: int) -> int:
        if value > 5:
            raise ValueError("too large")
        return value

    @model_validator(mode="before")
    @classmethod
    def spelled(cls, value: Any) -> Any:
        return {"a": value} if isinstance(value, int) else value


class And(BaseModel):
    op: Literal["and"]
    args: list[Expression]


class Or(BaseModel):
    op: Literal["or"]
    args: list[Expression]


class Leaf(BaseModel):
    op: Literal["leaf"] = "leaf"
    n: int


Expression = And | Or | Leaf
And.model_rebuild()
Or.model_rebuild()
Tagged = Annotated[
    Annotated[And, Tag("and")] | Annotated[Leaf, Tag("leaf")],
    Discriminator(lambda value: value.get("op") if isinstance(value, dict) else None),
]


class Numbers(RootModel[list[int]]):
    pass


@dataclass
class Point:
    x: int
    y: int = 0


class Typed(TypedDict, total=False):
    a: int
    inner: list[Point]


class Pair(NamedTuple):
    first: int
    second: str = ""


def or_nothing(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    try:
        return handler(value)
    except ValidationError:
        return None


TYPES: list[Any] = [
    int,
    str,
    float,
    bool,
    None,
    Any,
    dt.date,
    dt.datetime,
    dt.timedelta,
    decimal.Decimal,
    uuid.UUID,
    bytes,
    Colour,
    Literal["a", 1],
    Annotated[int, Field(strict=True)],
    Annotated[dt.date | str, BeforeValidator(lambda value: value)],
    Annotated[set[dt.date | str], Field(strict=True)],
    Annotated[str, Field(max_length=2)],
    Annotated[str, BeforeValidator(str)],
    Base,
    Wide,
    Exact,
    Strict,
    Dated,
    Exactly,
    Open,
    Tree,
    Checked,
    Expression,
    Tagged,
    Numbers,
    Point,
    Typed,
    Pair,
    JsonValue,
    Json[list[int]],
    Json[list[dt.date | Base | str]],
    Annotated[Base | None, WrapValidator(or_nothing)],
]


def _grown(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        inner.map(lambda kind: list[kind]),
        inner.map(lambda kind: tuple[kind, ...]),
        inner.map(lambda kind: dict[str, kind]),
        inner.map(lambda kind: dict[int, kind]),
        st.lists(inner, min_size=2, max_size=3).map(_union),
        st.tuples(inner, inner).map(lambda kinds: tuple[kinds[0], kinds[1]]),
    )


def _union(kinds: list[Any]) -> Any:
    return Union[tuple(kinds)]  # noqa: UP007 - as many as there are


kinds = st.recursive(st.sampled_from(TYPES), _grown, max_leaves=4) | st.sampled_from(
    [
        *(set[int], frozenset[str], set[uuid.UUID], set[tuple[int, int]], set[dt.date | str]),
        *(list[Base | Wide | Exact], dict[dt.date | str, Base], dict[uuid.UUID | int, list[Tree]]),
        *(list[int] | set[str], tuple[int, ...] | set[str] | list[dt.date]),
    ]
)
names = st.sampled_from(
    [*("a", "b", "c", "d", "dd", "v", "left", "right", "op", "args", "n", "x"), "5", "2020-01-01"]
)
plain = st.one_of(
    st.integers(-3, 9),
    st.sampled_from(["", "a", "5", "red", "and", "or", "leaf", "[1]", "x" * 9]),
    st.sampled_from(["2020-01-01", "2020-01-01T00:00:00", "P1D", '["2020-01-01", {"a": 1}]']),
    st.sampled_from(["6b8ef5a0-0000-4000-8000-000000000000", 1.5, True, None, 10**30]),
)
values = st.recursive(
    plain,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=5),
    max_leaves=20,
)


MEMBERS: dict[Any, dict[str, Any]] = {
    kind: get_type_hints(kind, include_extras=True)
    for kind in (Base, Wide, Exact, Strict, Dated, Exactly, Tree, Checked, And, Or, Leaf, Point)
} | {Typed: get_type_hints(Typed), Open: {"a": int, "b": int}}
TEXTS: dict[Any, Any] = {
    dt.date: ["2020-01-01", "2020-01-01T00:00:00", 0],
    dt.datetime: ["2020-01-01T00:00:00", "2020-01-01", 0],
    dt.timedelta: ["P1D", 5, "5"],
    decimal.Decimal: ["5", 1.5, 10**30],
    uuid.UUID: ["6b8ef5a0-0000-4000-8000-000000000000"],
    int: [1, 5, "5", 2.0, True, 10**30],
    float: [1.5, 1, "5"],
    bool: [True, "true", 0],
    Colour: ["red", "blue"],
    Numbers: [[1, "5"], []],
    Json[list[int]]: ["[1]"],
    Json[list[dt.date | Base | str]]: ['["2020-01-01", {"a": 1}, {"a": 1, "b": "2020-01-01"}]'],
    None: [None],
    type(None): [None],
}


def fitting(kind: Any, depth: int = 3) -> st.SearchStrategy[Any]:
    """Return values of which many are valid for ``kind``: others are soon told apart."""
    if kind in TEXTS:
        return st.sampled_from(TEXTS[kind])
    kind, parts = get_origin(kind) or kind, get_args(kind)
    inner = [fitting(part, depth - 1) if depth else st.none() for part in parts]
    if kind is Annotated:
        return inner[0]
    if kind in (Union, UnionType):
        return st.one_of(inner)
    if kind is dict:
        keys = st.sampled_from(["1", "5", "2020-01-01", "a"])
        return st.dictionaries(keys, inner[1], max_size=3)
    if kind in (list, set, frozenset) or parts[1:] == (Ellipsis,):
        return st.lists(inner[0], max_size=3)
    if kind is tuple:
        return st.tuples(*inner).map(list)
    if kind in MEMBERS and depth:
        members = {name: fitting(part, depth - 1) for name, part in MEMBERS[kind].items()}
        return st.fixed_dictionaries({}, optional=members)
    if kind is Literal:
        return st.sampled_from(parts)
    return plain


def fitting_or_not(kind: Any) -> st.SearchStrategy[Any]:
    return st.tuples(st.just(kind), st.one_of(fitting(kind), fitting(kind), values))


def validators(kind: Any) -> tuple[Any, Validator[Any]]:
    model = create_model("Whole", v=(kind, ...), w=(int, 1))
    return model.__pydantic_validator__, Validator(model)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(kinds.flatmap(fitting_or_not))
def test_the_same_values_are_valid_and_become_the_same(kind_and_value):
    kind, value = kind_and_value
    plain_validator, validator = validators(kind)
    whole = {"v": value}
    for copy in (validator.begin(many=True), bounded._Trial(validator, many=False)):
        _compare(plain_validator.validate_python, copy.validate_python, whole)
        _compare(plain_validator.validate_json, copy.validate_json, to_json(whole))


def _compare(plain: Callable[..., Any], bounded: Callable[..., Any], given: Any) -> None:
    try:
        expected = plain(given)
    except ValidationError:
        with pytest.raises(ValidationError):
            bounded(given)
    else:
        found = bounded(given)
        assert found == expected
        assert repr(found) == repr(expected)


def test_what_is_made_of_itself_may_have_a_default():
    model = create_model("Whole", v=(Tree | None, None), w=(Expression, Leaf(n=1)))
    for value in ({}, {"v": {"v": 1}}, {"w": nested(2)}):
        _compare(
            model.__pydantic_validator__.validate_python,
            Validator(model).begin(many=True).validate_python,
            value,
        )


def begin(kind: Any, *, many: bool) -> Any:
    return validators(kind)[1].begin(many=many)


def problems(kind: Any, value: Any, *, many: bool = True) -> list[Any]:
    with pytest.raises(ValidationError) as caught:
        begin(kind, many=many).validate_python({"v": value})
    return caught.value.errors()


def nested(depth: int) -> Any:
    """Return an expression that fits none of the alternatives, at its very end."""
    expression: Any = {"op": "leaf", "n": "many"}
    for _ in range(depth):
        expression = {"op": "or", "args": [expression]}
    return expression


def tree(levels: int) -> Any:
    return {"left": tree(levels - 1), "right": tree(levels - 1)} if levels else {}


def test_an_array_or_object_ends_with_its_first_error():
    wrong = ["x"] * 5000
    for kind, value in (
        (list[int], wrong),
        (tuple[int, ...], wrong),
        (set[int], wrong),
        (dict[str, int], {str(number): "x" for number in range(5000)}),
        (list[Base], [{}] * 5000),
    ):
        assert len(problems(kind, value)) == 1


def test_of_each_argument_something_is_told():
    model = create_model("Whole", v=(Tree, ...), w=(Tree, ...), x=(list[int], ...), y=(int, ...))
    given = {"v": tree(3), "w": tree(3), "x": ["x"] * 9, "y": "y"}
    with pytest.raises(ValidationError) as caught:
        Validator(model).begin(many=True).validate_python(given)
    told = [each for each in caught.value.errors() if each["type"] != NOT_LOOKED_AT]
    assert {each["loc"][0] for each in told} == {"v", "w", "x", "y"}


def test_a_tree_of_errors_has_few():
    (error,) = problems(Tree, tree(10))
    assert (error["loc"], error["type"]) == (("v", "v"), "missing")
    deep = problems(Tree, {"v": 1, "left": {"v": 1, "left": tree(1)}})
    assert deep[0]["loc"] == ("v", "left", "left", "v")


def test_an_object_with_far_too_many_members_is_not_looked_at():
    (error,) = problems(Exact, {f"x{number}": 1 for number in range(5000)})
    assert error["msg"].startswith("Object should not have 5000 members")
    few = problems(Exact, {f"x{number}": 1 for number in range(9)})
    assert {each["type"] for each in few} == {"missing", "extra_forbidden"}


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("depth", [40, 120])
def test_a_union_of_itself_is_tried_in_so_many_ways_and_no_more(many, depth):
    validating = begin(Expression, many=many)
    with pytest.raises(ValidationError) as caught:
        validating.validate_python({"v": nested(depth)})
    (error,) = caught.value.errors()
    assert error["type"] == TOO_COSTLY
    assert "nest it less deeply" in error["msg"]
    assert -10 < validating.left < 0


def test_of_a_small_expression_all_is_told():
    plain, validator = validators(Expression)
    value = {"v": {"op": "and", "args": [nested(2), {"op": "leaf"}, nested(1)]}}
    errors = []
    begun = validator.begin(many=False)
    for validate in (plain.validate_python, begun.validate_python, validator.validate_few):
        with pytest.raises(ValidationError) as caught:
            validate(value)
        errors.append(caught.value.errors(include_url=False))
    assert errors[0] == errors[1] == errors[2]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (dt.date | Base | uuid.UUID, "x"),
        (Annotated[str, Field(max_length=2)] | list[Base], ["x", {"a": "x"}, 1.5]),
        (tuple[Base | dt.date, int], [{}, "x"]),
        (Strict, {"a": "1", "when": "x", "ids": ["x"], "tree": {}}),
        (dict[uuid.UUID, Dated], {"x": {"a": "x", "b": 1.5}}),
        (Json[list[dt.date | Base]], '["x"]'),
    ],
    ids=repr,
)
def test_of_what_is_read_from_json_the_same_is_told(kind, value):
    plain, validator = validators(kind)
    errors = []
    for validating in (plain, bounded._Trial(validator, many=False)):
        with pytest.raises(ValidationError) as caught:
            validating.validate_json(to_json({"v": value}))
        errors.append(caught.value.errors(include_url=False))
    assert errors[0] == errors[1]


class Nest(BaseModel):
    a: tuple[Nest | str, ...]


@pytest.mark.parametrize(("length", "is_read"), [(9, True), (4_000_000, False)])
def test_what_is_written_and_read_again_counts(length, is_read):
    value: Any = {"a": ["x" * length]}
    for _ in range(20):
        value = {"a": [value]}
    text = to_json({"v": value})
    if is_read:
        plain, validator = validators(Nest)
        _compare(plain.validate_json, validator.begin(many=True).validate_json, text)
        return
    with pytest.raises(ValidationError) as caught:
        begin(Nest, many=True).validate_json(text)
    assert [each["type"] for each in caught.value.errors()] == [TOO_COSTLY]


def test_only_types_that_can_be_costly_are_watched_when_they_are_small():
    watched = {
        kind: isinstance(begin(kind, many=False), bounded._Trial)
        for kind in (int, Base, Tree, list[Base | Wide], Tagged, JsonValue, Expression, Json[int])
    }
    assert [kind for kind, is_watched in watched.items() if is_watched] == [
        Tagged,
        Expression,
        Json[int],
    ]


def test_few_values_are_validated_by_pydantic_alone_where_no_type_can_be_costly():
    costly, plain = validators(Expression)[1], Validator(Base)
    with pytest.raises(ValidationError) as caught:
        costly.validate_few({"v": nested(40)})
    assert [each["type"] for each in caught.value.errors()] == [TOO_COSTLY]
    assert plain.validate_few({"a": 1}) == Base(a=1)
    assert isinstance(plain.validate_few, partial)
    assert plain.validate_few.func == Base.__pydantic_validator__.validate_python


@pytest.mark.parametrize("kind", [int, Expression])
def test_members_have_their_names_on_the_wire(kind):
    named = create_model(
        "Named",
        __config__=ConfigDict(populate_by_name=True),
        request_id=(int, Field(alias="requestId")),
        v=(kind, {"op": "leaf", "n": 1}),
    )
    validator = Validator(named)
    for validate in (validator.validate_few, validator.validate_many):
        assert validate({"requestId": 1}).request_id == 1
        with pytest.raises(ValidationError, match="requestId"):
            validate({"request_id": 1})


PRIME = 2**61 - 1


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (set[int], [number * PRIME for number in range(5000)]),
        (set[uuid.UUID], [str(uuid.UUID(int=number * PRIME)) for number in range(5000)]),
        (dict[int, int], {str(number * PRIME): 1 for number in range(5000)}),
        (dict[str, set[int]], {"a": [number * PRIME for number in range(5000)]}),
        (set[tuple[int, int]], [[number * PRIME, 0] for number in range(5000)]),
    ],
    ids=repr,
)
def test_values_that_collide_are_refused(kind, value):
    assert problems(kind, value)[0]["type"] == "collisions"


@pytest.mark.parametrize("value", [list(range(5000)), [7] * 5000, [7, PRIME + 7] * 2500])
def test_values_that_do_not_collide_are_taken(value):
    assert begin(set[int], many=True).validate_python({"v": value}).v == set(value)


def test_json_in_a_text_counts():
    text = "[" + "1," * 400_000 + "1]"
    assert problems(Json[list[int]], text, many=False)[0]["type"] == TOO_COSTLY
    fits = begin(Json[list[int]], many=False).validate_python({"v": "[1" + ",1" * 20_000 + "]"})
    assert len(fits.v) == 20_001


def test_lists_of_the_protocol_have_a_length():
    class Icons(BaseModel):
        icons: list[Base]
        names: list[str]

    validator = Validator(Icons, max_items=2)
    two: list[Any] = [{"a": 1}, {"a": 2}]
    assert validator.validate({"icons": two, "names": ["x"] * 9}, many=True).names == ["x"] * 9
    with pytest.raises(ValidationError, match="at most 2 items"):
        validator.validate({"icons": [*two, *two], "names": []}, many=True)
