"""Calling what a site serves under HTTP, in process: its requests, and schemas of its arguments."""

from __future__ import annotations

import copy
import inspect
import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final
from urllib.parse import urlencode

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, QueryDict
from django.http.request import HttpHeaders
from pydantic import Field, WithJsonSchema

from .errors import ToolError
from .files import close_files
from .questions.kinds import UNSET

JSON: Final = "application/json"

MAX_ROWS: Final = 200
"""The longest list that an API without pages may answer."""

_NOT_COPIED: Final = ("GET", "_post", "_files", "accepted_types", "_stream")
"""What a request keeps of its own query and body."""
_NOT_IN_JSON_SCHEMA: Final = frozenset(("readOnly", "writeOnly", "nullable"))
_OF_NUMBERS: Final = frozenset(
    ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
)


def api_request(
    request: Any, method: str, *, query: Mapping[str, Any] | None = None, body: Any = None
) -> Any:
    """Return the request of a call as one to an API, by the same caller from the same place.

    ``body`` is sent as JSON, unless it is ``None``.
    """
    data = b"" if body is None else json.dumps(body).encode()
    text = urlencode({name: _as_text(value) for name, value in (query or {}).items()}, doseq=True)
    asked: Any = copy.copy(request)
    for name in _NOT_COPIED:
        asked.__dict__.pop(name, None)
    asked.method = method.upper()
    asked.META = {
        **request.META,
        "REQUEST_METHOD": asked.method,
        "QUERY_STRING": text,
        "CONTENT_TYPE": JSON,
        "CONTENT_LENGTH": str(len(data)),
        "HTTP_ACCEPT": "application/json, */*;q=0.1",
    }
    asked.META.pop("HTTP_TRANSFER_ENCODING", None)
    asked.environ = asked.META
    # Those of a request at the mount do not come from there.
    asked.__dict__["headers"] = HttpHeaders(asked.META)
    asked.__dict__["GET"] = QueryDict(text, encoding="utf-8")
    asked.content_type, asked.content_params = JSON, {}
    asked._body, asked._read_started = data, True
    return asked


def given(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that a client has sent; what it has left out is not null."""
    return {name: value for name, value in values.items() if value is not UNSET}


def raise_refused(status: int, detail: str) -> None:
    """Raise what a view raises that answers so, where it says that something is not there or not
    allowed.
    """
    if status == 404:
        raise Http404(detail)
    if status in (401, 403):
        raise PermissionDenied(detail)


def check_length(rows: Sequence[Any], cure: str) -> None:
    """Raise :class:`ToolError` with a cure for a list that is too long for a model to read."""
    if len(rows) > MAX_ROWS:
        raise ToolError(f"This list has {len(rows)} entries, and no pages. {cure}")


def plain_answer(response: Any) -> Any:
    """Return what an ``HttpResponse`` says: the values of JSON, or a text; and close it.

    Raises :class:`ToolError` for what is neither.
    """
    kind = response.headers.get("Content-Type", "").partition(";")[0]
    try:
        content = b"".join(response.streaming_content) if response.streaming else response.content
    finally:
        close_files(response)
    if not content:
        return {}
    if kind == JSON or kind.endswith("+json"):
        return json.loads(content)
    if kind.startswith("text/"):
        return content.decode(response.charset, "replace")
    raise ToolError(f"The answer is of the type {kind}, which is for a browser.")


def parameter(name: str, schema: Mapping[str, Any], *, required: bool) -> inspect.Parameter:
    """Return a parameter that clients are shown by a schema, and the API validates."""
    description = schema.get("description")
    shown = {key: value for key, value in schema.items() if key not in ("description", "default")}
    annotation: Any = Annotated[Any, WithJsonSchema(json.loads(json.dumps(shown, default=str)))]
    if description:
        annotation = Annotated[annotation, Field(description=description)]
    default = inspect.Parameter.empty if required else Field(default_factory=lambda: UNSET)
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def take_signature(function: Any, parameters: list[inspect.Parameter], result: Any) -> None:
    """Have a function take the request and ``parameters``, as far as tools are concerned."""
    own = inspect.Parameter("request", inspect.Parameter.KEYWORD_ONLY, annotation=HttpRequest)
    function.__signature__ = inspect.Signature([own, *parameters])
    function.__annotations__ = {each.name: each.annotation for each in (own, *parameters)}
    function.__annotations__["return"] = result


def as_json_schema(schema: Any) -> Any:
    """Return a schema of OpenAPI as one of JSON Schema."""
    if isinstance(schema, list):
        return [as_json_schema(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    # A decimal is sent as text, and is described as a number as well.
    others = _OF_NUMBERS if schema.get("type") == "string" else frozenset()
    found: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword == "properties":
            # Its members are names of the site's, whatever these are.
            found[keyword] = {name: as_json_schema(each) for name, each in value.items()}
        elif keyword not in _NOT_IN_JSON_SCHEMA | others:
            found[keyword] = as_json_schema(value)
    if isinstance(found.get("enum"), list) and found.get("type") == "string":
        found["enum"] = [each for each in found["enum"] if each not in ("", None)]
    return found


def _as_text(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value
