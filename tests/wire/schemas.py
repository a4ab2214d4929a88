"""
What the specification's own JSON schemas say of each revision's messages, and a closed form of it.

The folder ``revisions`` has the schemas without their prose: members, types, what is required. The
published schemas are open: an object may have members that they do not name, so they accept a field
that a later revision brought. The closed form refuses those, and is derived from nothing but them.

For a new revision: ``python -m tests.wire.schemas schema/REVISION/schema.json SOURCE``, with the
published file and what is to be said of where it comes from.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.protocols import Validator
from jsonschema.validators import validator_for

DIRECTORY = Path(__file__).with_name("revisions")

RESULTS = {
    "completion/complete": "CompleteResult",
    "initialize": "InitializeResult",
    "logging/setLevel": "EmptyResult",
    "ping": "EmptyResult",
    "prompts/get": "GetPromptResult",
    "prompts/list": "ListPromptsResult",
    "resources/list": "ListResourcesResult",
    "resources/read": "ReadResourceResult",
    "resources/subscribe": "EmptyResult",
    "resources/templates/list": "ListResourceTemplatesResult",
    "resources/unsubscribe": "EmptyResult",
    "server/discover": "DiscoverResult",
    "subscriptions/listen": "SubscriptionsListenResult",
    "tools/call": "CallToolResult",
    "tools/list": "ListToolsResult",
}
"""Method to the definition of its result."""

# What the specification leaves to somebody else: metadata, JSON Schemas, values of the site's own.
_FREE = {"_meta", "inputSchema", "outputSchema", "structuredContent", "requestedSchema"}


@cache
def load(revision: str) -> dict[str, Any]:
    """Return the schema of a revision."""
    schema: dict[str, Any] = json.loads((DIRECTORY / f"{revision}.json").read_text("utf-8"))
    return schema


def definitions(revision: str) -> dict[str, Any]:
    """Return the schema's definitions by name."""
    found: dict[str, Any] = load(revision)[_keyword(revision)]
    return found


def definition_of_method(revision: str, method: str) -> str | None:
    """Return the definition of the request or notification ``method``."""
    for name, definition in definitions(revision).items():
        constant = definition.get("properties", {}).get("method", {}).get("const")
        if constant == method:
            return name
    return None


def result_definition(method: str, result: Mapping[str, Any]) -> str | None:
    """Return the definition that a result must fit."""
    if result.get("resultType") == "input_required":
        return "InputRequiredResult"
    return RESULTS.get(method)


@cache
def validator(revision: str, definition: str, *, closed: bool) -> Validator:
    """Return a validator of one definition."""
    schema = _closed(load(revision)) if closed else load(revision)
    keyword = _keyword(revision)
    rooted = {**schema, "$ref": f"#/{keyword}/{definition}"}
    if validator_for(schema) is not Draft202012Validator:
        # Draft 7 ignores what stands beside a reference, the definitions excepted.
        rooted = {key: rooted[key] for key in ("$schema", "$ref", keyword)}
    return validator_for(schema)(rooted)


def faults(value: Any, revision: str, definition: str) -> Iterator[str]:
    """Yield what is wrong with ``value``, first by the published schema, then by the closed one."""
    if definition not in definitions(revision):
        yield f"{revision} has no {definition}"
        return
    broken = [
        _explain(error)
        for error in validator(revision, definition, closed=False).iter_errors(value)
    ]
    if broken:
        yield from (f"not a {definition} of {revision}: {each}" for each in broken)
        return
    for error in validator(revision, definition, closed=True).iter_errors(value):
        yield f"more than {revision} knows of {definition}: {_explain(error)}"


def _keyword(revision: str) -> str:
    return "$defs" if "$defs" in load(revision) else "definitions"


def _closed(value: Any, name: str = "") -> Any:
    if isinstance(value, list):
        return [_closed(item) for item in value]
    if not isinstance(value, dict):
        return value
    closed = {
        key: _closed_properties(member) if key == "properties" else _closed(member, key)
        for key, member in value.items()
        if key != "allOf"
    }
    if "allOf" in value:
        # Its parts describe one object together; closed, each would refuse the others' members.
        closed["allOf"] = value["allOf"]
    base = name in ("Result", "PaginatedResult")
    described = isinstance(value.get("properties"), dict) and value["properties"]
    if described and (base or "additionalProperties" not in value) and not _is_free(name):
        closed["additionalProperties"] = False
    return closed


def _closed_properties(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        name: member if _is_free(name) else _closed(member, name)
        for name, member in properties.items()
    }


def _is_free(name: str) -> bool:
    return name in _FREE or name.endswith("MetaObject")


def _explain(error: Any) -> str:
    where = error.json_path
    inner = min(error.context or [], key=lambda each: -len(each.absolute_path), default=None)
    return f"{where}: {error.message[:300]}" + (f" ({inner.message[:200]})" if inner else "")


def stripped(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema without what is written for people."""
    named = ("properties", "definitions", "$defs")
    return {
        key: {name: _stripped(each) for name, each in value.items()}
        if key in named
        else _stripped(value)
        for key, value in schema.items()
        if key not in ("description", "title", "examples")
    }


def _stripped(value: Any) -> Any:
    if isinstance(value, list):
        return [_stripped(each) for each in value]
    return stripped(value) if isinstance(value, dict) else value


def written(schema: Mapping[str, Any], source: str) -> str:
    """Return the text of a file in the folder ``revisions``: a line for each definition."""
    keyword = "$defs" if "$defs" in schema else "definitions"
    lines = ",\n".join(
        f"{json.dumps(name)}: {json.dumps(each, sort_keys=True)}"
        for name, each in sorted(stripped(schema)[keyword].items())
    )
    head = json.dumps({"$comment": source, "$schema": schema["$schema"]}, indent=0)
    return f"{head[:-2]},\n{json.dumps(keyword)}: {{\n{lines}\n}}\n}}\n"


if __name__ == "__main__":
    print(written(json.loads(Path(sys.argv[1]).read_text("utf-8")), sys.argv[2]), end="")
