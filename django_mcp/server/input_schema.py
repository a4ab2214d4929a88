"""The schema of a tool's arguments, and which of them clients mirror into HTTP headers.

2026-07-28, server/tools, "x-mcp-header". A client must drop a tool whose annotations break the
rules, so they are enforced at registration.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any, Final

from .errors import RegistrationError
from .json_schema import inlined, without_nulls
from .signature import Signature
from .structured_output import is_object

Headers = dict[str, tuple[str, ...]]
"""Header name portion to property path."""

KEYWORD: Final = "x-mcp-header"

# RFC 9110, section 5.6.2, without the underscore: common servers drop headers that contain one.
_TOKEN: Final = re.compile(r"[A-Za-z0-9!#$%&'*+\-.^`|~]+")
_PRIMITIVES: Final = {"string", "integer", "boolean"}


def input_schema_of(
    given: dict[str, Any] | None, signature: Signature
) -> tuple[dict[str, Any], Headers]:
    """Return the schema of what a function takes, and the headers that mirror parts of it.

    ``given`` is the site's own schema, if it has one.
    """
    if given is None:
        return _derived(signature)
    if not is_object(given):
        # 2025-11-25, server/tools, "Tool": arguments are an object.
        raise RegistrationError(f'{signature.label}: input_schema= must have "type": "object".')
    schema = copy.deepcopy(given)
    return schema, extract_headers(schema, signature.label, given=True)


def schema_without_asking_of(
    given: dict[str, Any] | None, signature: Signature
) -> tuple[dict[str, Any] | None, Headers]:
    """Return the same for clients whose user cannot be asked, where it is another one."""
    if given is not None or signature.without_asking is None:
        return None, {}
    return _derived(signature.without_asking)


def extract_headers(schema: dict[str, Any], label: str, *, given: bool = False) -> Headers:
    """Return header name to property path, and flatten the annotated properties in place.

    pydantic writes ``Optional`` as ``anyOf`` and enumerations as ``$ref``; a mirrored property
    may be neither. A schema that the site has ``given`` is not changed, but held to the same.
    """
    paths: Headers = {}
    for name, path, owner in list(_annotated(schema)):
        if not isinstance(name, str) or not _TOKEN.fullmatch(name):
            raise _refuse(label, f"{name!r} is not a header name (letters, digits and hyphens)")
        if name.lower() in {known.lower() for known in paths}:
            raise _refuse(label, f"the header {name!r} is used twice")
        if not given:
            owner[path[-1]] = _flatten(owner[path[-1]], schema, label)
        _check_type(owner[path[-1]], label)
        paths[name] = path
    if len(paths) != _occurrences(schema):
        raise _refuse(label, "only parameters that every call can carry may be mirrored")
    return paths


def _derived(signature: Signature) -> tuple[dict[str, Any], Headers]:
    # What is mirrored is counted before definitions are copied to wherever they are used.
    headers = extract_headers(signature.schema, signature.label)
    return without_nulls(inlined(signature.schema)), headers


def _annotated(
    schema: dict[str, Any], above: tuple[str, ...] = ()
) -> Iterator[tuple[Any, tuple[str, ...], dict[str, Any]]]:
    properties = schema.get("properties", {})
    for key, value in properties.items():
        if isinstance(value, dict):
            if KEYWORD in value:
                yield value[KEYWORD], (*above, key), properties
            yield from _annotated(value, (*above, key))


def _flatten(value: dict[str, Any], schema: dict[str, Any], label: str) -> dict[str, Any]:
    flat = dict(value)
    if "anyOf" in flat:
        options = [option for option in flat.pop("anyOf") if option != {"type": "null"}]
        if len(options) != 1:
            raise _refuse(label, "a mirrored parameter must have one type")
        flat = {**options[0], **flat}
        if flat.get("default", ...) is None:
            del flat["default"]
    if "$ref" in flat:
        target = schema["$defs"][flat.pop("$ref").rsplit("/", 1)[-1]]
        flat = {**target, **flat}
    return flat


def _check_type(value: dict[str, Any], label: str) -> None:
    kind = value.get("type")
    if not isinstance(kind, str) or kind not in _PRIMITIVES:
        raise _refuse(
            label,
            "a mirrored parameter must be a string, an integer or a boolean, and its schema must "
            'say so by "type"',
        )


def _occurrences(schema: Any) -> int:
    if isinstance(schema, dict):
        return (KEYWORD in schema) + sum(_occurrences(value) for value in schema.values())
    if isinstance(schema, list):
        return sum(_occurrences(value) for value in schema)
    return 0


def _refuse(label: str, reason: str) -> RegistrationError:
    return RegistrationError(f"{label}: {KEYWORD}: {reason}.")
