"""The part of the context that asks the client."""

from __future__ import annotations

from collections.abc import Sequence
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    Required,
    TypedDict,
    TypeVar,
    Unpack,
    overload,
)

from mcp_types import (
    CreateMessageResult,
    CreateMessageResultWithTools,
    ModelPreferences,
    PromptMessage,
    Root,
    SamplingMessage,
    Tool,
)

from .kinds import Elicit, ElicitURL, Roots, Sample
from .requests import revision_of_urls
from .rounds import responses_of

if TYPE_CHECKING:
    from django.forms import BaseForm

    from ..exchange import Exchange

T = TypeVar("T")
Messages = str | Sequence[str | PromptMessage | SamplingMessage]


class Options(TypedDict, total=False):
    """What every question takes: see :class:`~django_mcp.server.questions.kinds.Question`."""

    key: str
    timeout: float
    fallback: Any


class URLOptions(Options, total=False):
    """What a question that sends the user to a page takes."""

    elicitation_id: str


class SampleOptions(Options, total=False):
    """What a question to the client's model takes."""

    system_prompt: str
    temperature: float
    stop_sequences: Sequence[str]
    model_preferences: ModelPreferences
    include_context: Literal["none", "thisServer", "allServers"]
    metadata: dict[str, Any]


class ToolOptions(SampleOptions, total=False):
    """The same, where the model may use tools."""

    tools: Required[Sequence[Tool]]
    tool_choice: Literal["auto", "required", "none"]


class Interview:
    """Asks the client, whichever the era.

    In the legacy era a question waits for its answer. In the modern one the call ends with the
    question, and the function runs again from its beginning once the client has come back with the
    answer: so ask before you act.
    """

    __slots__ = ()
    _exchange: Exchange

    @property
    def input_responses(self) -> dict[str, Any]:
        """What the client answers in this request, by key, as it stands; legacy: empty."""
        return responses_of(self._exchange)

    @overload
    def elicit(self, message: str, schema: None = None, **options: Unpack[Options]) -> None: ...
    @overload
    def elicit(
        self, message: str, schema: type[BaseForm], **options: Unpack[Options]
    ) -> dict[str, Any]: ...
    @overload
    def elicit(self, message: str, schema: type[T], **options: Unpack[Options]) -> T: ...
    @overload
    def elicit(self, message: str, schema: Any, **options: Unpack[Options]) -> Any: ...

    def elicit(self, message: str, schema: Any = None, **options: Unpack[Options]) -> Any:
        """Ask the user to fill in a form, and return what they have filled in.

        ``schema`` is a pydantic model of flat fields (an instance comes back), a type such as
        ``bool``, ``Literal["a", "b"]`` or an ``Enum`` (a value comes back), or a form class of
        Django's (``cleaned_data`` comes back). Without it the user confirms. Who declines or
        dismisses the question raises :class:`QuestionDeclined` or :class:`QuestionCancelled`.
        """
        return self._exchange.questions.ask(Elicit(message, schema, **options))

    @overload
    async def aelicit(
        self, message: str, schema: None = None, **options: Unpack[Options]
    ) -> None: ...
    @overload
    async def aelicit(
        self, message: str, schema: type[BaseForm], **options: Unpack[Options]
    ) -> dict[str, Any]: ...
    @overload
    async def aelicit(self, message: str, schema: type[T], **options: Unpack[Options]) -> T: ...
    @overload
    async def aelicit(self, message: str, schema: Any, **options: Unpack[Options]) -> Any: ...

    async def aelicit(self, message: str, schema: Any = None, **options: Unpack[Options]) -> Any:
        """Do as :meth:`elicit`, in asynchronous code."""
        return await self._exchange.questions.aask(Elicit(message, schema, **options))

    def elicit_url(self, message: str, url: str, **options: Unpack[URLOptions]) -> str:
        """Ask the user to visit a page, and return the elicitation's id.

        That they accept says that they were sent there. Whether they have done there what they
        should is for the page to know: it must check that its visitor is the user who was asked.
        """
        answer: str = self._exchange.questions.ask(ElicitURL(message, url, **options))
        return answer

    async def aelicit_url(self, message: str, url: str, **options: Unpack[URLOptions]) -> str:
        """Do as :meth:`elicit_url`, in asynchronous code."""
        answer: str = await self._exchange.questions.aask(ElicitURL(message, url, **options))
        return answer

    def elicitation_completed(self, elicitation_id: str) -> None:
        """Tell the client that the user has done what :meth:`elicit_url` sent them to do.

        Revision 2025-11-25 has a notification of it; elsewhere nothing happens.
        """
        exchange = self._exchange
        known = revision_of_urls(exchange.sender.capabilities, exchange.revision)
        if known is not None and known.elicitation_ids:
            self._exchange.peer.tell(
                "notifications/elicitation/complete", {"elicitationId": elicitation_id}
            )

    @overload
    def sample(
        self, messages: Messages, *, max_tokens: int, **options: Unpack[SampleOptions]
    ) -> CreateMessageResult: ...
    @overload
    def sample(
        self, messages: Messages, *, max_tokens: int, **options: Unpack[ToolOptions]
    ) -> CreateMessageResultWithTools: ...

    def sample(self, messages: Messages, *, max_tokens: int, **options: Any) -> Any:
        """Ask the client's model, and return what it says.

        ``messages`` are text for the user's voice, ``content.user()`` and ``content.assistant()``,
        or ``SamplingMessage``. With ``tools`` the answer may hold uses of them.
        """
        return self._exchange.questions.ask(Sample(messages, max_tokens=max_tokens, **options))

    @overload
    async def asample(
        self, messages: Messages, *, max_tokens: int, **options: Unpack[SampleOptions]
    ) -> CreateMessageResult: ...
    @overload
    async def asample(
        self, messages: Messages, *, max_tokens: int, **options: Unpack[ToolOptions]
    ) -> CreateMessageResultWithTools: ...

    async def asample(self, messages: Messages, *, max_tokens: int, **options: Any) -> Any:
        """Do as :meth:`sample`, in asynchronous code."""
        sample = Sample(messages, max_tokens=max_tokens, **options)
        return await self._exchange.questions.aask(sample)

    def roots(self, **options: Unpack[Options]) -> list[Root]:
        """Ask for the directories in which the client works."""
        answer: list[Root] = self._exchange.questions.ask(Roots(**options))
        return answer

    async def aroots(self, **options: Unpack[Options]) -> list[Root]:
        """Do as :meth:`roots`, in asynchronous code."""
        answer: list[Root] = await self._exchange.questions.aask(Roots(**options))
        return answer
