"""The facts of ``django_mcp.protocol.versions``, as a check that needs no schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from jsonschema.validators import validator_for

from django_mcp.protocol.versions import BY_NAME, FIRST_SEEN, REVISIONS

LISTS = {
    "prompts/list": ("prompts", "Prompt"),
    "resources/list": ("resources", "Resource"),
    "resources/templates/list": ("resourceTemplates", "ResourceTemplate"),
    "tools/list": ("tools", "Tool"),
}
BLOCKS = {
    "audio": "AudioContent",
    "image": "ImageContent",
    "resource": "EmbeddedResource",
    "resource_link": "ResourceLink",
    "text": "TextContent",
}


def known(kind: str, revision: str) -> set[str]:
    """Return the fields of ``kind`` that ``revision`` has, as the table says."""
    age = REVISIONS.index(BY_NAME[revision])
    return {name for name, first in FIRST_SEEN[kind].items() if REVISIONS.index(first) <= age}


def unknown_fields(result: dict[str, Any], method: Any, revision: str) -> Iterator[str]:
    """Yield the fields in ``result`` that the table does not have for ``revision``."""
    for kind, value in _typed(result, method):
        extra = set(value) - known(kind, revision)
        if extra:
            yield f"{kind} with {sorted(extra)}, which {revision} does not have"


def invalid_schemas(result: dict[str, Any]) -> Iterator[str]:
    """Yield what is wrong with the JSON Schemas of tools, each by the dialect that it names."""
    for tool in result.get("tools", ()):
        for member in ("inputSchema", "outputSchema"):
            schema = tool.get(member, {"type": "object"})
            dialect = validator_for(schema, default=Draft202012Validator)
            try:
                dialect.check_schema(schema)
            except SchemaError as error:
                yield f"{member} of {tool.get('name')!r} is no JSON Schema: {error.message}"


def _typed(result: dict[str, Any], method: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    if method in LISTS:
        member, kind = LISTS[method]
        for item in result.get(member, ()):
            yield from _with_nested(kind, item)
    info = result.get("serverInfo")
    meta = result.get("_meta", {}).get("io.modelcontextprotocol/serverInfo")
    for value in (info, meta):
        if isinstance(value, dict):
            yield from _with_nested("Implementation", value)
    blocks = [message.get("content") for message in result.get("messages", ())]
    for block in (*result.get("content", ()), *blocks):
        yield from _block(block)
    for contents in result.get("contents", ()):
        yield _contents_kind(contents), contents


def _block(block: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    kind = BLOCKS[block["type"]]
    yield from _with_nested(kind, block)
    if kind == "EmbeddedResource":
        yield _contents_kind(block["resource"]), block["resource"]


def _contents_kind(contents: dict[str, Any]) -> str:
    return "TextResourceContents" if "text" in contents else "BlobResourceContents"


def _with_nested(kind: str, value: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    yield kind, value
    annotations = value.get("annotations")
    if annotations is not None:
        yield ("ToolAnnotations" if kind == "Tool" else "Annotations"), annotations
    for icon in value.get("icons", ()):
        yield "Icon", icon
    if kind == "Prompt":
        for argument in value.get("arguments", ()):
            yield "PromptArgument", argument
