"""What reading a message may cost is known before it is read."""

from __future__ import annotations

import json
import time

import pytest
from mcp_types import CallToolResult, ElicitResult, ListToolsResult
from pydantic import ValidationError

from django_mcp.protocol.bounded import validate
from django_mcp.protocol.values import count_members, count_values, exceeds

MANY = 20_000


@pytest.mark.parametrize(
    ("value", "members"),
    [
        ({"a": [{"b": 1, "c": "d"}], "e": 1.5}, 4),
        ({"a": [float("inf")]}, -1),
        ({"a": 10**400}, -1),
    ],
)
def test_members_are_counted_unless_a_number_is_no_usual_one(value, members):
    assert count_members(value) == members


@pytest.mark.parametrize(
    "text", ["," * MANY, "[" * MANY, '"' * MANY, "\\" * MANY, '\\",' * MANY, 'a,"b"\n' * MANY]
)
def test_a_long_text_is_one_value(text):
    body = json.dumps({"name": "load", "arguments": {"csv": text}}).encode()
    assert not exceeds(body, 10)
    assert count_values(body) == 4


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


@pytest.mark.parametrize("blocks", [1, MANY])
def test_what_is_valid_becomes_a_model(blocks):
    value = {"content": [{"type": "text", "text": "a"}] * blocks, "more": 1}
    result = validate(CallToolResult, value)
    assert type(result) is CallToolResult
    assert len(result.content) == blocks
    assert result == CallToolResult.model_validate(result.model_dump(by_alias=True))
