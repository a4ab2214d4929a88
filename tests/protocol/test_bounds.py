"""What reading a message may cost is known before it is read."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp_types import CallToolResult, ElicitResult, ListToolsResult
from pydantic import ValidationError

from django_mcp.protocol.bounds import count_values, has_more_values, validate

MANY = 20_000
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=30,
)


def values(value: Any) -> int:
    """Count objects, arrays, and what they hold beside the first."""
    if not isinstance(value, list | dict):
        return 0
    items = value.values() if isinstance(value, dict) else value
    return 1 + max(0, len(value) - 1) + sum(map(values, items))


@settings(max_examples=200, deadline=None)
@given(value=JSON, ascii_only=st.booleans())
def test_values_are_counted_as_they_are_parsed(value, ascii_only):
    body = json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    number = values(value)
    assert count_values(body) == number
    assert not has_more_values(body, number)
    assert not number or has_more_values(body, number - 1)


@pytest.mark.parametrize(
    "text", ["," * MANY, "[" * MANY, '"' * MANY, "\\" * MANY, '\\",' * MANY, 'a,"b"\n' * MANY]
)
def test_a_long_text_is_one_value(text):
    body = json.dumps({"name": "load", "arguments": {"csv": text}}).encode()
    assert not has_more_values(body, 10)
    assert count_values(body) == 3


@pytest.mark.parametrize(
    "body",
    [b'"' + b'\\"' * MANY, b'"\\' * MANY, b'"' * MANY, b"\\" * MANY, b"1" * MANY, b"[]" * MANY],
)
def test_no_bytes_take_longer_than_they_are_long(body):
    """None makes the count begin again and again."""

    def cost(times: int) -> float:
        begun = time.process_time()
        count_values(body * times)
        return time.process_time() - begun

    assert cost(32) < 200 * max(min(cost(4) for _ in range(3)), 0.001)


@pytest.mark.parametrize(
    ("model", "value"),
    [
        (ListToolsResult, {"tools": [{}] * MANY}),
        (CallToolResult, {"content": [{"type": "text"}] * MANY}),
        (ElicitResult, {"action": "accept", "content": {str(i): [{}] for i in range(MANY)}}),
        (ListToolsResult, {"tools": [{"name": "a", "inputSchema": {}, "icons": [{}] * MANY}]}),
    ],
)
def test_what_is_not_valid_is_looked_at_up_to_the_first_error(model, value):
    with pytest.raises(ValidationError) as caught:
        validate(model, value)
    assert caught.value.error_count() < 20  # one for each kind that an item could have been


def test_what_is_valid_becomes_a_model():
    result = validate(CallToolResult, {"content": [{"type": "text", "text": "a"}], "more": 1})
    assert type(result) is CallToolResult
    assert result == CallToolResult.model_validate(result.model_dump(by_alias=True))
