"""Bytes to messages and back: the envelopes of JSON-RPC.

Reading is strict, because whatever is let through here is trusted further in: UTF-8 only, no
duplicated member (a gateway may have looked at the other one), no number that JSON does not have,
bounded nesting. Every failure says as much about the request's id as could be read.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn, TypeGuard

from pydantic_core import from_json, to_json

from .errors import ErrorCode, MCPError
from .values import MANY_VALUES, count_members, count_names, is_deeper, most_values

RequestId = int | str

MAX_DEPTH = 128
"""Deepest nesting of arrays and objects in a body."""
MAX_ID_LENGTH = 512
"""Longest request id, in characters of its JSON text, without the quotes."""
MAX_BATCH = 100
"""Most messages in one batch of revision 2025-03-26."""
MAX_DIGITS = 1_000
"""Most digits of an integer; the time to read or write one grows with the square of them."""
SMALL_BYTES = 64 * 1024
"""Bytes up to which a body takes no time worth mentioning to parse."""


@dataclass(slots=True, init=False)
class Request:
    """A call that must be answered with its own ``id``: same value, same JSON type."""

    id: RequestId
    method: str
    params: dict[str, Any]
    meta: dict[str, Any] = field(compare=False)
    """``params._meta``, or an empty mapping where there is none."""
    target: str = field(compare=False)
    """The name or URI of what it asks for; empty where it says none."""
    many: bool = field(compare=False)
    """Whether its body holds so many values that not all that is wrong with them is told."""
    is_large: bool = field(compare=False)
    """Whether handling it may take time worth mentioning."""

    def __init__(
        self,
        id: RequestId,
        method: str,
        params: dict[str, Any] | None = None,
        values: int = 0,
        size: int = 0,
    ) -> None:
        """Note what it says; its body has ``values`` JSON values at most, and ``size`` bytes."""
        self.id = id
        self.method = method
        self.params = params = {} if params is None else params
        meta, target = params.get("_meta"), params.get("name") or params.get("uri")
        self.meta = meta if isinstance(meta, dict) else {}
        self.target = target if isinstance(target, str) else ""
        self.many = values > MANY_VALUES
        self.is_large = self.many or size > SMALL_BYTES


@dataclass(frozen=True, slots=True)
class Notification:
    """A message that is never answered."""

    method: str
    params: dict[str, Any] = field(default_factory=dict)

    @property
    def meta(self) -> dict[str, Any]:
        """``params._meta``, or an empty mapping where there is none."""
        meta = self.params.get("_meta")
        return meta if isinstance(meta, dict) else {}


@dataclass(frozen=True, slots=True)
class Response:
    """The client's answer to a request of ours."""

    id: RequestId
    result: dict[str, Any] | None
    error: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Invalid:
    """What arrived instead of a message, with the id it had if it was meant as a request."""

    error: MCPError
    id: RequestId | None = None


Message = Request | Notification | Response


@dataclass(frozen=True, slots=True)
class Batch:
    """An array of messages (2025-03-26, basic/transports, "Sending Messages to the Server")."""

    items: tuple[Message | Invalid, ...]


def parse(body: bytes, values: int | None = None) -> Message | Batch | Invalid:
    """Read one HTTP body. Never raises: what is not a message comes back as ``Invalid``.

    ``values`` is a bound on the number of JSON values in it, for callers that know one.
    """
    values = most_values(body) if values is None else values
    try:
        value = _load(body, values)
    except (ValueError, RecursionError) as error:
        return Invalid(MCPError(ErrorCode.PARSE_ERROR, f"The body is not valid JSON: {error}"))
    if isinstance(value, list):
        return _batch(value, values, len(body))
    return _message(value, values, len(body))


encode: Final[Callable[[Any], bytes]] = to_json
"""Writes a message as a single line of JSON."""


def result_response(request_id: RequestId, result: dict[str, Any]) -> dict[str, Any]:
    """Return the envelope of a successful answer."""
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def encode_result(request_id: RequestId, result: bytes) -> bytes:
    """Write the envelope of a successful answer around a result that is JSON already."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (to_json(request_id), result)


def error_response(request_id: RequestId | None, error: MCPError) -> dict[str, Any]:
    """Return the envelope of an error; ``None`` where no id could be read."""
    return {"jsonrpc": "2.0", "id": request_id, "error": error.as_object()}


def notification(message: Notification) -> dict[str, Any]:
    """Return the envelope of a notification."""
    envelope = {"jsonrpc": "2.0", "method": message.method}
    return {**envelope, "params": message.params} if message.params else envelope


def _load(body: bytes, values: int) -> Any:
    if values > MAX_DEPTH and is_deeper(body, MAX_DEPTH):
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
    if len(body) <= SMALL_BYTES:
        # Several times as fast as the strict decoder, which calls a function for each object. What
        # that has something to say against is left to it. That no member came twice is told by
        # their number.
        try:
            value = from_json(body, allow_inf_nan=False, cache_strings="keys")
            members = count_members(value)
            if members == body.count(b":") or members == count_names(body):
                return value
        except ValueError:
            pass
    return _load_strictly(body)


def _load_strictly(body: bytes) -> Any:
    text = body.decode("utf-8")
    value = (_decoder if len(body) <= MAX_DIGITS else _wary_decoder).decode(text)
    if "\\u" in text and _SURROGATE.search(text):
        # An escaped lone surrogate is legal JSON and yet no text: it could not be sent back.
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    return value


def _unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        counts = Counter(name for name, _ in pairs)
        raise ValueError(f"duplicated member {counts.most_common(1)[0][0][:80]!r}")
    return members


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError("number out of range")
    return number


def _short_integer(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise ValueError(f"an integer has more than {MAX_DIGITS} digits")
    return int(text)


_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")

_decoder = json.JSONDecoder(
    object_pairs_hook=_unique_members, parse_constant=_refuse_constant, parse_float=_finite
)

#: For bodies that have room for long integers. With a function for each number, too, other threads
#: may run in between.
_wary_decoder = json.JSONDecoder(
    object_pairs_hook=_unique_members,
    parse_constant=_refuse_constant,
    parse_float=_finite,
    parse_int=_short_integer,
)


def _batch(items: list[Any], values: int, size: int) -> Batch | Invalid:
    if not items:
        return _invalid("A batch must hold at least one message")
    if len(items) > MAX_BATCH:
        return _invalid(f"A batch may hold at most {MAX_BATCH} messages")
    return Batch(tuple(_message(item, values, size) for item in items))


def _message(value: Any, values: int, size: int) -> Message | Invalid:
    if not isinstance(value, dict):
        return _invalid("The body must be a JSON-RPC message, which is a JSON object")
    if "method" not in value and ("result" in value or "error" in value):
        return _response(value)
    request_id = value.get("id")
    if "id" in value and not is_request_id(request_id):
        return _invalid("id must be a string or an integer")
    if value.get("jsonrpc") != "2.0":
        return _invalid('jsonrpc must be "2.0"', request_id)
    if not isinstance(value.get("method"), str):
        return _invalid("method must be a string", request_id)
    params = value.get("params")
    if params is not None and not isinstance(params, dict):
        return _invalid("params must be an object", request_id)
    if "id" in value:
        return Request(value["id"], value["method"], params, values, size)
    return Notification(value["method"], params or {})


def _response(value: dict[str, Any]) -> Response | Invalid:
    # A response never lends its id to an error: the id is one of ours, and an error that carried
    # it would read as the answer to a request that the client never made.
    result, error = value.get("result"), value.get("error")
    if value.get("jsonrpc") != "2.0" or not is_request_id(value.get("id")):
        return _invalid('A response needs jsonrpc "2.0" and the id of the request it answers')
    if ("result" in value) == ("error" in value):
        return _invalid("A response has exactly one of result and error")
    if not isinstance(result if "result" in value else error, dict):
        return _invalid("The result or error of a response must be an object")
    return Response(value["id"], result, error)


def is_request_id(value: Any) -> TypeGuard[RequestId]:
    """Return whether ``value`` may identify a request: a string or an integer, of bounded size."""
    if isinstance(value, str):
        # Six characters of text stand for one at most.
        return 6 * len(value) <= MAX_ID_LENGTH or len(encode(value).decode()) <= MAX_ID_LENGTH + 2
    return (
        isinstance(value, int)
        and not isinstance(value, bool)
        and value.bit_length() <= 3 * MAX_ID_LENGTH
    )


def same_id(one: RequestId, other: RequestId) -> bool:
    """Return whether two ids are one: ``1`` and ``"1"`` are not."""
    return type(one) is type(other) and one == other


def _invalid(message: str, request_id: RequestId | None = None) -> Invalid:
    return Invalid(MCPError(ErrorCode.INVALID_REQUEST, message), request_id)
