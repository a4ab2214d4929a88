"""What differs between revisions of the protocol, as a table of facts.

No other module compares revision names. Code asks a :class:`Revision` for the fact it needs, and
:func:`fit` drops what a revision does not know from an object on its way out. The tests hold both
against the schemas of the specification.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from .errors import ErrorCode


class Era(Enum):
    """The two ways of speaking MCP (2026-07-28, basic/versioning, "Terminology")."""

    LEGACY = "legacy"
    """``initialize``, sessions, GET streams."""
    MODERN = "modern"
    """Every request carries its own metadata; nothing is remembered between requests."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Revision:
    """One published revision and the facts in which it differs from its neighbours."""

    name: str
    era: Era
    batches: bool = False
    """Whether a body may be an array of messages (2025-03-26 only)."""
    structured_objects_only: bool = True
    """Whether ``structuredContent`` must be an object and ``outputSchema.type`` ``"object"``."""
    resource_links: bool = True
    """Whether a result may contain ``resource_link`` blocks (2025-06-18 and later)."""
    completion_context: bool = True
    """Whether ``completion/complete`` carries ``context`` (2025-06-18 and later)."""
    resumable_posts: bool = False
    """Whether a POST's stream may end before its response, to be taken up again by the client
    (2025-11-25, basic/transports, "Sending Messages to the Server"); it is primed for that."""
    resource_not_found: ErrorCode = ErrorCode.RESOURCE_NOT_FOUND
    """The code for an unknown resource (server/resources, "Error Handling")."""
    elicitation: bool = True
    """Whether users can be asked (2025-06-18 and later)."""
    elicitation_modes: bool = True
    """Whether they can be sent to a URL, beside being shown a form (2025-11-25 and later)."""
    elicitation_ids: bool = False
    """Whether a URL that they are sent to has an ``elicitationId`` (2025-11-25 only)."""
    select_enums: bool = True
    """Whether choices may have titles in ``oneOf``, and be several (2025-11-25 and later)."""
    sampling_tools: bool = True
    """Whether ``sampling.tools`` and ``sampling.context`` exist, and messages of several blocks
    (2025-11-25 and later)."""

    modern: bool = field(init=False)
    """Whether the revision belongs to the modern era."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "modern", self.era is Era.MODERN)


R2025_03_26: Final = Revision(
    name="2025-03-26",
    era=Era.LEGACY,
    batches=True,
    resource_links=False,
    completion_context=False,
    elicitation=False,
    elicitation_modes=False,
    select_enums=False,
    sampling_tools=False,
)
R2025_06_18: Final = Revision(
    name="2025-06-18",
    era=Era.LEGACY,
    elicitation_modes=False,
    select_enums=False,
    sampling_tools=False,
)
R2025_11_25: Final = Revision(
    name="2025-11-25", era=Era.LEGACY, resumable_posts=True, elicitation_ids=True
)
R2026_07_28: Final = Revision(
    name="2026-07-28",
    era=Era.MODERN,
    structured_objects_only=False,
    resource_not_found=ErrorCode.INVALID_PARAMS,
)

REVISIONS: Final = (R2025_03_26, R2025_06_18, R2025_11_25, R2026_07_28)
"""Every revision served, oldest first."""
BY_NAME: Final = {revision.name: revision for revision in REVISIONS}
LEGACY: Final = tuple(revision for revision in REVISIONS if not revision.modern)
MODERN: Final = tuple(revision for revision in REVISIONS if revision.modern)
NEWEST: Final = REVISIONS[-1]
NEWEST_LEGACY: Final = LEGACY[-1]
OLDEST: Final = REVISIONS[0]

_A, _B, _C, _D = REVISIONS

FIRST_SEEN: Final[dict[str, dict[str, Revision]]] = {
    "Annotations": {"audience": _A, "priority": _A, "lastModified": _B},
    "AudioContent": {"type": _A, "data": _A, "mimeType": _A, "annotations": _A, "_meta": _B},
    "BlobResourceContents": {"uri": _A, "mimeType": _A, "blob": _A, "_meta": _B},
    "BooleanSchema": {"type": _B, "title": _B, "description": _B, "default": _B},
    "CallToolResult": {
        "content": _A,
        "isError": _A,
        "_meta": _A,
        "structuredContent": _B,
    },
    "CreateMessageRequestParams": {
        "messages": _A,
        "modelPreferences": _A,
        "systemPrompt": _A,
        "includeContext": _A,
        "temperature": _A,
        "maxTokens": _A,
        "stopSequences": _A,
        "metadata": _A,
        "tools": _C,
        "toolChoice": _C,
    },
    "ElicitRequestFormParams": {"message": _B, "requestedSchema": _B, "mode": _C},
    "ElicitRequestURLParams": {"mode": _C, "message": _C, "url": _C},
    "EmbeddedResource": {"type": _A, "resource": _A, "annotations": _A, "_meta": _B},
    "Icon": {"src": _C, "mimeType": _C, "sizes": _C, "theme": _C},
    "ImageContent": {"type": _A, "data": _A, "mimeType": _A, "annotations": _A, "_meta": _B},
    "Implementation": {
        "name": _A,
        "version": _A,
        "title": _B,
        "description": _C,
        "icons": _C,
        "websiteUrl": _C,
    },
    "LegacyTitledEnumSchema": {
        "type": _B,
        "title": _B,
        "description": _B,
        "enum": _B,
        "enumNames": _B,
        "default": _C,
    },
    "ModelHint": {"name": _A},
    "ModelPreferences": {
        "hints": _A,
        "costPriority": _A,
        "speedPriority": _A,
        "intelligencePriority": _A,
    },
    "NumberSchema": {
        "type": _B,
        "title": _B,
        "description": _B,
        "minimum": _B,
        "maximum": _B,
        "default": _C,
    },
    "Prompt": {
        "name": _A,
        "description": _A,
        "arguments": _A,
        "title": _B,
        "_meta": _B,
        "icons": _C,
    },
    "PromptArgument": {"name": _A, "description": _A, "required": _A, "title": _B},
    "PromptMessage": {"role": _A, "content": _A},
    "Resource": {
        "uri": _A,
        "name": _A,
        "description": _A,
        "mimeType": _A,
        "size": _A,
        "annotations": _A,
        "title": _B,
        "_meta": _B,
        "icons": _C,
    },
    "ResourceLink": {
        "type": _B,
        "uri": _B,
        "name": _B,
        "description": _B,
        "mimeType": _B,
        "size": _B,
        "annotations": _B,
        "title": _B,
        "_meta": _B,
        "icons": _C,
    },
    "ResourceTemplate": {
        "uriTemplate": _A,
        "name": _A,
        "description": _A,
        "mimeType": _A,
        "annotations": _A,
        "title": _B,
        "_meta": _B,
        "icons": _C,
    },
    "SamplingMessage": {"role": _A, "content": _A, "_meta": _C},
    "StringSchema": {
        "type": _B,
        "title": _B,
        "description": _B,
        "minLength": _B,
        "maxLength": _B,
        "format": _B,
        "default": _C,
    },
    "TextContent": {"type": _A, "text": _A, "annotations": _A, "_meta": _B},
    "TextResourceContents": {"uri": _A, "mimeType": _A, "text": _A, "_meta": _B},
    "Tool": {
        "name": _A,
        "description": _A,
        "inputSchema": _A,
        "annotations": _A,
        "title": _B,
        "outputSchema": _B,
        "_meta": _B,
        "icons": _C,
    },
    "ToolAnnotations": {
        "title": _A,
        "readOnlyHint": _A,
        "destructiveHint": _A,
        "idempotentHint": _A,
        "openWorldHint": _A,
    },
    "ToolChoice": {"mode": _C},
    "ToolResultContent": {
        "type": _C,
        "toolUseId": _C,
        "content": _C,
        "structuredContent": _C,
        "isError": _C,
        "_meta": _C,
    },
    "ToolUseContent": {"type": _C, "id": _C, "name": _C, "input": _C, "_meta": _C},
    "UntitledSingleSelectEnumSchema": {
        "type": _B,
        "title": _B,
        "description": _B,
        "enum": _B,
        "default": _C,
    },
}
"""The first revision that knows a field, by type and field. What is not here is never sent."""

_NESTED: Final = {
    ("AudioContent", "annotations"): "Annotations",
    ("CreateMessageRequestParams", "modelPreferences"): "ModelPreferences",
    ("CreateMessageRequestParams", "toolChoice"): "ToolChoice",
    ("CreateMessageRequestParams", "tools"): "Tool",
    ("EmbeddedResource", "annotations"): "Annotations",
    ("ImageContent", "annotations"): "Annotations",
    ("Implementation", "icons"): "Icon",
    ("ModelPreferences", "hints"): "ModelHint",
    ("Prompt", "arguments"): "PromptArgument",
    ("Prompt", "icons"): "Icon",
    ("Resource", "annotations"): "Annotations",
    ("Resource", "icons"): "Icon",
    ("ResourceLink", "annotations"): "Annotations",
    ("ResourceLink", "icons"): "Icon",
    ("ResourceTemplate", "annotations"): "Annotations",
    ("ResourceTemplate", "icons"): "Icon",
    ("TextContent", "annotations"): "Annotations",
    ("Tool", "annotations"): "ToolAnnotations",
    ("Tool", "icons"): "Icon",
}

_CONTENT: Final = {
    "text": "TextContent",
    "image": "ImageContent",
    "audio": "AudioContent",
    "resource": "EmbeddedResource",
    "resource_link": "ResourceLink",
    "tool_use": "ToolUseContent",
    "tool_result": "ToolResultContent",
}


def _known(revision: Revision) -> dict[str, dict[str, str | None]]:
    age = REVISIONS.index(revision)
    return {
        kind: {
            name: _NESTED.get((kind, name))
            for name, first in fields.items()
            if REVISIONS.index(first) <= age
        }
        for kind, fields in FIRST_SEEN.items()
    }


_KNOWN: Final = {revision.name: _known(revision) for revision in REVISIONS}
"""By revision and type, the fields that it knows, and of which type those are that have one."""


def knows(revision: Revision, kind: str, name: str) -> bool:
    """Return whether objects of the schema's type ``kind`` have the field in ``revision``."""
    return name in _KNOWN[revision.name][kind]


def fit(kind: str, value: dict[str, Any], revision: Revision) -> dict[str, Any]:
    """Return ``value``, an object of the schema's type ``kind``, with what ``revision`` knows."""
    known = _KNOWN[revision.name][kind]
    return {
        name: member if (of := known[name]) is None else _fit_nested(of, member, revision)
        for name, member in value.items()
        if name in known
    }


def _fit_nested(kind: str, member: Any, revision: Revision) -> Any:
    if isinstance(member, list):
        return [fit(kind, item, revision) for item in member]
    return fit(kind, member, revision)


def fit_contents(value: dict[str, Any], revision: Revision) -> dict[str, Any]:
    """Return resource contents, text or blob, with what ``revision`` knows."""
    kind = "TextResourceContents" if "text" in value else "BlobResourceContents"
    return fit(kind, value, revision)


def fit_content(value: dict[str, Any], revision: Revision) -> dict[str, Any]:
    """Return a content block with what ``revision`` knows.

    A revision without ``resource_link`` gets the link as text, so that the model still sees it.
    """
    kind = _CONTENT[value["type"]]
    if kind == "ResourceLink" and not revision.resource_links:
        return {"type": "text", "text": f"{value.get('title') or value['name']}: {value['uri']}"}
    block = fit(kind, value, revision)
    if kind == "EmbeddedResource":
        block["resource"] = fit_contents(block["resource"], revision)
    if kind == "ToolResultContent":
        block["content"] = [fit_content(each, revision) for each in block["content"]]
        if revision.structured_objects_only and not isinstance(
            block.get("structuredContent", {}), dict
        ):
            block["structuredContent"] = {"result": block["structuredContent"]}
    return block
