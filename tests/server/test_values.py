"""How many values a text holds, and how deep they are, told without parsing it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_mcp.protocol import messages
from django_mcp.protocol.values import exceeds, holds_more, is_deeper, most_values

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=30,
)


def number_of(value: Any) -> int:
    return 1 + sum(map(number_of, _children(value)))


def depth_of(value: Any) -> int:
    inner = max(map(depth_of, _children(value)), default=0)
    return 1 + inner if isinstance(value, (list, dict)) else 0


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


@given(json_values, st.booleans())
def test_no_text_holds_more_values_than_is_said(value, ascii_only):
    text = json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    number, depth = number_of(value), depth_of(value)
    assert most_values(text) >= number
    assert not exceeds(text, most_values(text))
    assert not is_deeper(text, depth)
    assert depth == 0 or is_deeper(text, depth - 1)
    assert holds_more(value, number - 2) or number == 1
    assert not holds_more(value, number - 1)


@given(json_values)
def test_what_stands_in_texts_does_not_count(value):
    plain = json.dumps(value).encode()
    wrapped = json.dumps({'a"[{,\\': json.dumps(value) + '\\"[[[['}).encode()
    assert not exceeds(wrapped, 3)
    assert not is_deeper(wrapped, 1)
    # An empty array or object counts for one more.
    assert exceeds(plain, 2 * number_of(value)) is False
    assert number_of(value) == 1 or exceeds(plain, number_of(value) - 2)


@pytest.mark.parametrize(
    "text", [b'"' * 1000, b'[,"' * 1000, b"\\" * 999, b'\\"' * 999, b",,,", b""]
)
def test_what_is_not_json_is_counted_all_the_same(text):
    assert exceeds(text, 0) or text == b""
    is_deeper(text, 10)


def parsed_with(value: str) -> Any:
    head = '{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":'
    return messages.parse(f"{head}{value}}}}}".encode())


@pytest.mark.parametrize(("begin", "end"), [("[", "]"), ('{"a":', "}")])
def test_a_body_may_be_nested_so_deeply_and_no_deeper(begin, end):
    def parsed(depth: int) -> Any:
        inner = begin * (depth - 2) + "1" + end * (depth - 2)
        return parsed_with(inner)

    assert isinstance(parsed(messages.MAX_DEPTH), messages.Request)
    assert "nested deeper" in parsed(messages.MAX_DEPTH + 1).error.message


def test_an_integer_may_have_so_many_digits_and_no_more():
    longest = "9" * messages.MAX_DIGITS
    assert parsed_with(longest).params == {"a": int(longest)}
    assert "more than 1000 digits" in parsed_with(longest + "9").error.message
