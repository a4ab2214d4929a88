"""What hypothesis sends: JSON of any shape, things that are nearly messages, values for types."""

from __future__ import annotations

import enum
import types
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from tests.support.messages import META_CAPABILITIES, META_VERSION, REVISIONS

bounded = settings(
    max_examples=60,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
"""Few examples, always the same ones. What fixtures made is the same for all of a test."""

text = st.text(st.characters(codec="utf-8"), max_size=30)
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=2**52, max_value=2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | text
)
json_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=8,
)

METHODS = st.sampled_from(
    [
        "initialize",
        "notifications/initialized",
        "ping",
        "tools/list",
        "tools/call",
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "prompts/list",
        "prompts/get",
        "completion/complete",
        "logging/setLevel",
        "server/discover",
        "subscriptions/listen",
    ]
)
_metadata = st.fixed_dictionaries(
    {},
    optional={
        META_VERSION: st.sampled_from(REVISIONS) | json_values,
        META_CAPABILITIES: st.just({}) | json_values,
        "progressToken": json_values,
    },
)
_parameters = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["add", "greet", "everything"]) | json_values,
        "uri": st.sampled_from(["page://front", "note://1"]) | json_values,
        "arguments": st.dictionaries(st.sampled_from("abc") | text, json_values, max_size=3)
        | json_values,
        "cursor": json_values,
        "level": json_values,
        "ref": json_values,
        "argument": json_values,
        "protocolVersion": st.sampled_from(REVISIONS) | json_values,
        "capabilities": json_values,
        "clientInfo": json_values,
        "_meta": _metadata | json_values,
    },
)
messages = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | json_values,
        "id": st.integers() | text | json_values,
        "method": METHODS | json_values,
        "params": _parameters | json_values,
        "result": json_values,
        "error": json_values,
        "more": json_values,
    },
)
anything = json_values | messages | st.lists(messages, max_size=4)

header_values = st.text(st.characters(min_codepoint=0x20, max_codepoint=0xFF), max_size=40)
"""What a server lets through: no line breaks, no NUL."""


class Nested(BaseModel):
    """A model among arguments."""

    number: int
    word: str = "x"
    more: list[bool] = []


class Choice(enum.Enum):
    """An enumeration among arguments."""

    ONE = "one"
    TWO = "two"


_leaves = st.sampled_from(
    [
        int,
        float,
        bool,
        str,
        Choice,
        Nested,
        Literal["a", "b"],
        Literal[1, 2],
        Annotated[int, Field(ge=0, le=9)],
        Annotated[float, Field(gt=-1)],
        Annotated[str, Field(max_length=3)],
        Annotated[list[int], Field(min_length=1, max_length=2)],
    ]
)
kinds: st.SearchStrategy[Any] = st.recursive(
    _leaves,
    lambda inner: st.one_of(
        inner.map(lambda kind: types.GenericAlias(list, (kind,))),
        inner.map(lambda kind: types.GenericAlias(dict, (str, kind))),
        inner.map(lambda kind: kind | None),
        st.tuples(inner, inner).map(lambda pair: pair[0] | pair[1]),
    ),
    max_leaves=3,
)
"""Annotations of parameters."""

_PLAIN = {
    int: st.integers() | st.integers(-9, 9).map(float),
    float: st.floats(allow_nan=False, allow_infinity=False) | st.integers(),
    bool: st.booleans(),
    str: text,
    type(None): st.none(),
    Choice: st.sampled_from(["one", "two"]),
    Nested: st.fixed_dictionaries(
        {"number": st.integers()}, optional={"word": text, "more": st.lists(st.booleans())}
    ),
}


def values_of(annotation: Any) -> st.SearchStrategy[Any]:
    """Return JSON values that are likely to fit ``annotation``."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return values_of(arguments[0])
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin is list:
        return st.lists(values_of(arguments[0]), max_size=3)
    if origin is dict:
        return st.dictionaries(text, values_of(arguments[1]), max_size=3)
    if origin in (Union, types.UnionType):
        return st.one_of([values_of(each) for each in arguments])
    return _PLAIN[annotation]
