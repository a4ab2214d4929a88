"""A question to the client's model, and the parameters of ``sampling/createMessage``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Final, Literal

from mcp_types import (
    CreateMessageRequestParams,
    CreateMessageResult,
    CreateMessageResultWithTools,
    ModelPreferences,
    PromptMessage,
    SamplingMessage,
    Tool,
    ToolChoice,
    ToolResultContent,
    ToolUseContent,
)

from ... import content
from ...protocol.bounded import MAX_ITEMS, Validator
from ...protocol.versions import Revision, fit, fit_content
from .input_requests import InputRequest
from .kinds import ClientProfile, Question, as_json_text, validated

_TYPES: Final = ("text", "image", "audio", "tool_use", "tool_result")

_RESULT: Final = Validator(CreateMessageResult, max_items=MAX_ITEMS)
_RESULT_WITH_TOOLS: Final = Validator(CreateMessageResultWithTools, max_items=MAX_ITEMS)


@dataclass(frozen=True, slots=True)
class Sample(Question):
    """Ask the client's model. Deprecated since revision 2026-07-28."""

    kind: ClassVar[str] = "sample"
    messages: str | Sequence[str | PromptMessage | SamplingMessage]
    _: KW_ONLY
    max_tokens: int
    system_prompt: str | None = None
    temperature: float | None = None
    stop_sequences: Sequence[str] = ()
    model_preferences: ModelPreferences | None = None
    tools: Sequence[Tool] = ()
    tool_choice: Literal["auto", "required", "none"] | None = None
    include_context: Literal["none", "thisServer", "allServers"] | None = None
    metadata: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.tool_choice is not None and not self.tools:
            raise ValueError("tool_choice= needs tools= to choose from.")

    def prepare(self, client: ClientProfile) -> InputRequest:
        """Return the request that asks ``client``."""
        needs_tools = bool(self.tools)
        required: dict[str, Any] = {"sampling": {"tools": {}} if needs_tools else {}}
        params = params_of(self, client.revision, client.capabilities)
        return InputRequest(
            method="sampling/createMessage",
            params=params,
            identity=params,
            name="sampling/createMessage",
            describe=lambda: as_json_text(params["messages"]),
            required=required,
            is_supported=client.can(required)
            and (client.revision.sampling_tools or not needs_tools),
            read=lambda result: self._read(result, with_tools=needs_tools),
        )

    def _read(
        self, result: Any, *, with_tools: bool
    ) -> CreateMessageResult | CreateMessageResultWithTools:
        if with_tools:
            return validated(_RESULT_WITH_TOOLS, result)
        content = result.get("content") if isinstance(result, dict) else None
        if isinstance(content, list) and len(content) == 1:
            result = {**result, "content": content[0]}
        return validated(_RESULT, result)


def params_of(
    sample: Sample, revision: Revision, capabilities: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the parameters with what ``revision`` knows."""
    messages = messages_of(sample.messages)
    check(messages)
    params = CreateMessageRequestParams(
        messages=messages,
        max_tokens=sample.max_tokens,
        system_prompt=sample.system_prompt,
        temperature=sample.temperature,
        stop_sequences=list(sample.stop_sequences) or None,
        model_preferences=sample.model_preferences,
        tools=list(sample.tools) or None,
        tool_choice=None if sample.tool_choice is None else ToolChoice(mode=sample.tool_choice),
        include_context=_context(sample, revision, capabilities),
        metadata=sample.metadata,
    )
    dumped = params.model_dump(mode="json", by_alias=True, exclude_none=True)
    dumped = fit("CreateMessageRequestParams", dumped, revision)
    dumped["messages"] = [
        fit("SamplingMessage", each, revision)
        for message in dumped["messages"]
        for each in _fitted(message, revision)
    ]
    return dumped


def messages_of(
    given: str | Sequence[str | PromptMessage | SamplingMessage],
) -> list[SamplingMessage]:
    """Return messages; text is the user's."""
    return [_message(each) for each in ([given] if isinstance(given, str) else given)]


def check(messages: Sequence[SamplingMessage]) -> None:
    """Refuse a conversation that breaks the rules of tool use.

    2025-11-25, client/sampling, "Tool Result Messages" and "Tool Use and Result Balance".
    """
    waiting: set[str] = set()
    for message in messages:
        blocks = message.content_as_list
        results = {each.tool_use_id for each in blocks if isinstance(each, ToolResultContent)}
        if results and not all(isinstance(each, ToolResultContent) for each in blocks):
            raise ValueError(
                "A message with a tool's result may hold nothing but results of tools; put the "
                "rest into a message of its own."
            )
        if results != waiting:
            raise ValueError(
                "Every tool use must be answered by a result in the very next message, and only "
                f"those: {', '.join(sorted(results ^ waiting))} is not."
            )
        waiting = {each.id for each in blocks if isinstance(each, ToolUseContent)}
    if waiting:
        raise ValueError(f"The tool uses {', '.join(sorted(waiting))} have no results.")


def _message(given: str | PromptMessage | SamplingMessage) -> SamplingMessage:
    if isinstance(given, SamplingMessage):
        return given
    message = content.user(given) if isinstance(given, str) else given
    if message.content.type not in _TYPES:
        raise ValueError(f"A model cannot be asked with {message.content.type}; send it as text.")
    return SamplingMessage(role=message.role, content=message.content)


def _context(sample: Sample, revision: Revision, capabilities: Mapping[str, Any]) -> Any:
    # 2025-11-25, client/sampling, "Capabilities": not unless the client has declared it.
    declared = capabilities.get("sampling") or {}
    if revision.sampling_tools and sample.include_context != "none" and "context" not in declared:
        return None
    return sample.include_context


def _fitted(message: dict[str, Any], revision: Revision) -> Iterator[dict[str, Any]]:
    # Without messages of several blocks, each block is a message.
    blocks = message["content"]
    if not isinstance(blocks, list):
        yield {**message, "content": fit_content(blocks, revision)}
    elif revision.sampling_tools:
        yield {**message, "content": [fit_content(each, revision) for each in blocks]}
    else:
        for each in blocks:
            yield {**message, "content": fit_content(each, revision)}
