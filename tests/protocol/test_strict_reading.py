"""Most bodies are read by a fast parser, which lets more through than is JSON: whatever comes in,
the outcome is that of the strict decoder alone, to the type of each number and each error's words.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from django_mcp.protocol import messages

REQUEST = b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"value":%b}}'
RESPONSE = b'{"jsonrpc":"2.0","id":1,"result":{"value":%b}}'


def outcome(body: bytes) -> Any:
    """What comes of ``body``, written so that ``1``, ``1.0`` and ``true`` are three things."""
    found = messages.parse(body)
    if isinstance(found, messages.Invalid):
        return "invalid", found.error.code, found.error.message, repr(found.id)
    return repr(found)


@pytest.fixture
def strict_outcome(monkeypatch):
    """``outcome`` where the fast parser has taken nothing."""
    refused: list[bytes] = []

    def refuse(body: bytes, **options: Any) -> None:
        refused.append(body)
        raise ValueError("not this time")

    def strict(body: bytes) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(messages, "from_json", refuse)
            found = outcome(body)
        # Or the body was refused before any parser saw it, for its depth.
        assert refused[-1:] == [body] or "nested deeper" in found[2]
        return found

    return strict


def assert_same(body: bytes, strict_outcome: Any) -> None:
    assert outcome(body) == strict_outcome(body)


CORPUS = {
    "empty": b"",
    "white space": b" \t\r\n",
    "other white space": b"[\x0b1,\x0c2,\xc2\xa03]",
    "a mark of byte order": b"\xef\xbb\xbf{}",
    "UTF-16": '{"a": 1}'.encode("utf-16"),
    "NUL": b"\x00",
    "two values": b"{} {}",
    "a member twice": b'{"a": 1, "a": 1}',
    "a member twice, once escaped": b'{"a": 1, "\\u0061": 2}',
    "a member twice, deep inside": b'[1, {"x": [{"b": {}, "b": {}}]}]',
    "a member twice beside colons in texts": b'{"a": ":", "a": "::"}',
    "a member twice beside an escaped quote": b'{"a": "\\":", "a": "\\\\"}',
    "a member twice that ends in a backslash": b'{"x\\\\": 1, "x\\\\": 2}',
    "members without a name twice": b'{"": 1, "": 2}',
    "colons in texts and names": b'{"a:b": "c:d", "\\":": ["::"]}',
    "one name in two objects": b'[{"a": 1}, {"a": 2}]',
    "two names that look alike": '{"\u00e9": 1, "e\u0301": 2}'.encode(),
    "NaN": b"NaN",
    "NaN inside": b'{"a": [NaN]}',
    "infinity": b"[Infinity, -Infinity]",
    "a float out of range": b"1e400",
    "a negative float out of range": b"[-1.5E+999]",
    "the largest float, rounded up": b"1.7976931348623159e308",
    "the largest float": b"1.7976931348623157e308",
    "a float next to nothing": b"[5e-324, 2e-324, 1e-400]",
    "a float of many digits": b"0.1000000000000000055511151231257827021181583404541015625",
    "a float between two": b"9007199254740993.0",
    "zeros": b"[0, -0, 0.0, -0.0, 0e0, -0e-5]",
    "integers around 32 bits": b"[2147483647, 2147483648, -2147483648, -2147483649]",
    "integers around 64 bits": b"[9223372036854775807, 9223372036854775808, -9223372036854775809]",
    "integers of 64 bits without sign": b"[18446744073709551615, 18446744073709551616]",
    "an integer of 100 digits": b"1" * 100,
    "the longest integer": b"1" * messages.MAX_DIGITS,
    "an integer too long": b"[" + b"1" * (messages.MAX_DIGITS + 1) + b"]",
    "a negative integer too long": b"-" + b"1" * messages.MAX_DIGITS,
    "an integer that Python refuses": b"1" * 5000,
    "a long fraction": b"0." + b"1" * 5000,
    "many zeros": b"1" + b"0" * 2000 + b"e-1990",
    "a leading zero": b"[01]",
    "a leading plus": b"[+1]",
    "a point without digits": b"[1., .5]",
    "an exponent without digits": b"[1e]",
    "hexadecimal": b"[0x10]",
    "digits of another script": "[\u0661]".encode(),
    "a lone high surrogate": b'"\\ud800"',
    "a lone low surrogate": b'["\\uDC00"]',
    "surrogates the wrong way around": b'"\\udc00\\ud800"',
    "a lone surrogate in a name": b'{"\\ud83d": 1}',
    "a pair of surrogates": b'"\\ud83d\\ude00"',
    "a surrogate that is none": b'"\\\\ud800"',
    "a surrogate in UTF-8": b'"\xed\xa0\x80"',
    "invalid UTF-8": b'"\xff"',
    "invalid UTF-8 in a name": b'{"\xc3": 1}',
    "UTF-8 that is too long": b'"\xc0\xaf"',
    "UTF-8 cut off": b'"\xf0\x9f\x98',
    "a character outside the plane": '"\U0001f600"'.encode(),
    "a line separator": '"\u2028"'.encode(),
    "a control character": b'"\x01"',
    "a line feed in a text": b'"a\nb"',
    "DEL": b'"\x7f"',
    "escapes": b'"\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u0000"',
    "an escape that is none": b'"\\x41"',
    "an escape cut off": b'"\\u12"',
    "an escape of one sign": b'"\\u+041"',
    "an escape with an underscore": b'"\\u0_41"',
    "a text without end": b'"abc',
    "single quotes": b"{'a': 1}",
    "a name without quotes": b"{a: 1}",
    "a comma behind the last item": b"[1, 2,]",
    "a comma behind the last member": b'{"a": 1,}',
    "a comma before the first": b"[,1]",
    "two commas": b"[1,,2]",
    "no comma": b"[1 2]",
    "no colon": b'{"a" 1}',
    "a comment": b"[1] // one",
    "an array that stays open": b"[1, [2]",
    "an array closed as an object": b"[1}",
    "a word cut off": b"[tru]",
    "a word of Python": b"None",
    "as deep as allowed": b"[" * messages.MAX_DEPTH + b"]" * messages.MAX_DEPTH,
    "one deeper": b"[" * (messages.MAX_DEPTH + 1) + b"]" * (messages.MAX_DEPTH + 1),
    "objects one deeper": b'{"a":' * (messages.MAX_DEPTH + 1) + b"1" + b"}" * 129,
    "far too deep": b"[" * 20_000 + b"]" * 20_000,
    "far too deep, without end": b"[" * 60_000,
    "brackets in a text": b'"' + b"[" * 1000 + b'"',
}


@pytest.mark.parametrize("place", [b"%b", REQUEST, RESPONSE], ids=["body", "request", "response"])
@pytest.mark.parametrize("name", CORPUS)
def test_what_is_known_to_be_hard_is_read_as_strictly(strict_outcome, name, place):
    assert_same(place % CORPUS[name], strict_outcome)


@pytest.mark.parametrize(
    "name",
    [
        "a member twice beside colons in texts",
        "a float out of range",
        "NaN inside",
        "an integer too long",
        "a lone high surrogate",
        "a surrogate in UTF-8",
        "a comma behind the last member",
    ],
)
def test_the_strict_decoder_refuses_it(strict_outcome, name):
    """So that the two do not merely agree to let it through."""
    kind, code, message, request_id = strict_outcome(REQUEST % CORPUS[name])
    assert (kind, code, request_id) == ("invalid", -32700, "None")
    assert message.startswith("The body is not valid JSON: ")


def test_the_fast_parser_takes_what_is_plain(monkeypatch):
    """So that what is compared are two parsers."""
    plain = REQUEST % b'{"a": [1, -2.5, true, null, "\\u00e9:"], "b": {"a": {}}}'
    fast = outcome(plain)
    monkeypatch.setattr(messages, "_load_strictly", None)
    assert outcome(plain) == fast


# Texts of JSON, and of what is nearly JSON, put together of pieces rather than from values: it is
# the way they are written in which parsers differ.

spaces = st.sampled_from(["", "", "", " ", "\n\t\r ", "\x0b", "\u00a0", "\ufeff"])
numbers = st.one_of(
    st.integers().map(str),
    st.integers(-(2**70), 2**70).map(str),
    st.floats().map(json.dumps),
    st.from_regex(r"-?[0-9]{1,25}(\.[0-9]{0,25})?([eE][+-]?[0-9]{0,4})?", fullmatch=True),
    st.integers(900, 1100).map(lambda digits: "7" * digits),
)
texts = st.lists(
    st.one_of(
        st.characters(),
        st.characters().map(lambda character: json.dumps(character)[1:-1]),
        st.sampled_from([":", ",", "[", "}", '\\"', "\\\\", "\\/", "\\u", "\\ud83d", "\\uDE00"]),
    ),
    max_size=8,
).map(lambda parts: f'"{"".join(parts)}"')
words = st.sampled_from(["true", "false", "null", "NaN", "Infinity", "-Infinity", "None", ""])
names = (
    st.sampled_from(['"a"', '"\\u0061"', '"b"', '"a:"', '"\\\\"', '""', '"\\ud800"', "a"]) | texts
)
commas = st.sampled_from([",", ",", ",", ",", ",,", ";", ""])


@st.composite
def arrays(draw: Any, inner: st.SearchStrategy[str]) -> str:
    items = draw(st.lists(inner, max_size=4))
    return f"[{draw(spaces)}{draw(commas).join(items)}{draw(spaces)}]"


@st.composite
def objects(draw: Any, inner: st.SearchStrategy[str]) -> str:
    members = draw(st.lists(st.tuples(names, spaces, inner).map(_member), max_size=4))
    return f"{{{draw(spaces)}{draw(commas).join(members)}{draw(spaces)}}}"


def _member(parts: tuple[str, str, str]) -> str:
    name, space, value = parts
    return f"{name}{space}:{space}{value}"


near_json = st.recursive(
    numbers | texts | words,
    lambda inner: arrays(inner) | objects(inner),
    max_leaves=12,
).map(lambda text: text.encode("utf-8", "surrogatepass"))


@st.composite
def damaged(draw: Any) -> bytes:
    """JSON in which a byte was put in, left out or exchanged."""
    body = draw(near_json)
    place = draw(st.integers(0, len(body)))
    kept = draw(st.sampled_from([0, 1]))
    return body[:place] + draw(st.binary(max_size=2)) + body[place + kept :]


thorough = settings(
    max_examples=600,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@thorough
@given(near_json | damaged() | st.binary(max_size=30))
@example(b'{"a": 1, "a": 1}')
@example(b"[1e400]")
@example(b'"\\ud800"')
def test_whatever_comes_is_read_as_strictly(strict_outcome, body):
    assert_same(body, strict_outcome)
    assert_same(REQUEST % body, strict_outcome)


@thorough
@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(0, 40), st.booleans())
def test_each_number_is_the_same_to_the_last_bit(strict_outcome, number, digits, scientific):
    text = f"{number:.{digits}{'e' if scientific else 'f'}}"
    assert_same(REQUEST % text.encode(), strict_outcome)
