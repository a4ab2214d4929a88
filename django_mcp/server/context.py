"""What user code receives: the caller, the client and the request, and the ways to reach them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    Required,
    TypedDict,
    TypeVar,
    Union,
    Unpack,
    get_args,
    get_origin,
    overload,
)

from django.http import HttpRequest
from mcp_types import (
    CreateMessageResult,
    CreateMessageResultWithTools,
    ModelPreferences,
    PromptMessage,
    Root,
    SamplingMessage,
    Tool,
)

from ..protocol.lifecycle import LOG_LEVELS, SessionInfo
from .errors import CallStopped, QuestionMisplaced
from .exchange import Exchange
from .questions.asking import NOT_HERE, Questions
from .questions.input_requests import revision_of_urls
from .questions.kinds import Elicit, ElicitURL, Roots
from .questions.mrtr import responses_of
from .questions.sampling import Sample

if TYPE_CHECKING:
    from django.forms import BaseForm

T = TypeVar("T")
Messages = str | Sequence[str | PromptMessage | SamplingMessage]


class Options(TypedDict, total=False):
    """What every question takes, with the meaning that a ``Question`` gives it."""

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


class Context:
    """The call at hand. Annotate a parameter with it, under any name, and it is passed in.

    What asks the client does so in either era. In the legacy era a question waits for its answer.
    In the modern one the call ends with the question, and the function runs again from its
    beginning once the client has come back with the answer: so ask before you act.
    """

    __slots__ = ("_exchange", "_questions")

    def __init__(self, exchange: Exchange, questions: Questions | None = None) -> None:
        self._exchange = exchange
        self._questions = questions

    def __repr__(self) -> str:
        exchange = self._exchange
        return f"<Context {exchange.request.method} {exchange.revision.name} {self.user}>"

    @property
    def user(self) -> Any:
        """The Django user on whose behalf the client acts; ``AnonymousUser`` where none."""
        return self._exchange.principal.user

    @property
    def client_id(self) -> str:
        """The authenticated client that acts for the user; empty where ``AUTH`` names none."""
        return self._exchange.principal.client_id

    @property
    def scopes(self) -> frozenset[str]:
        """The scopes that the credentials carry; empty also where no scopes limit them."""
        return self._exchange.principal.scopes or frozenset()

    @property
    def request(self) -> HttpRequest:
        """The HTTP request, with ``user`` set to the caller."""
        return self._exchange.http.django()

    @property
    def session(self) -> SessionInfo | None:
        """The MCP session, or ``None`` in the modern era, which has none."""
        session = self._exchange.session
        # What the client said may be remembered for other calls: here and below they get a copy.
        return session and replace(session, sender=deepcopy(session.sender))

    @property
    def client_info(self) -> dict[str, Any]:
        """What the client calls itself: ``name``, ``version``... Unverified; empty if unsaid."""
        return deepcopy(self._exchange.sender.info or {})

    @property
    def client_capabilities(self) -> dict[str, Any]:
        """The capabilities that the client declared."""
        return deepcopy(self._exchange.sender.capabilities)

    @property
    def protocol_version(self) -> str:
        """The protocol revision of this request, for example ``"2025-11-25"``."""
        return self._exchange.revision.name

    @property
    def meta(self) -> dict[str, Any]:
        """The request's ``_meta``, as the client sent it."""
        return self._exchange.request.meta

    @property
    def cancelled(self) -> bool:
        """Whether to stop: the client has cancelled the call, or nobody can get its result any
        more. Look at it in long loops; an asynchronous function is cancelled by itself.
        """
        return self._exchange.stopped

    def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Notify the client of how far the call is, if it has sent a progress token.

        ``progress`` must grow; what does not is dropped. Call it as often as you like: not every
        value is sent, but the last one always is.
        """
        self._check_not_stopped()
        self._exchange.progress.report(progress, total, message)

    async def aprogress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Do as :meth:`progress`, in asynchronous code."""
        self.progress(progress, total, message)

    def log(self, level: str, data: Any, *, logger: str | None = None) -> None:
        """Send a log message to the client, if it wants messages of that ``level``.

        ``level`` is one of RFC 5424: ``debug``, ``info``, ``notice``, ``warning``, ``error``,
        ``critical``, ``alert``, ``emergency``. ``data`` is text or anything that JSON can hold.
        """
        if level not in LOG_LEVELS:
            raise ValueError(f"{level!r} is no log level; use one of {', '.join(LOG_LEVELS)}")
        self._check_not_stopped()
        if not self._is_logged(level):
            return
        params = {"level": level, "data": data}
        params |= {} if logger is None else {"logger": logger}
        self._exchange.peer.notify("notifications/message", params)

    async def alog(self, level: str, data: Any, *, logger: str | None = None) -> None:
        """Do as :meth:`log`, in asynchronous code."""
        self.log(level, data, logger=logger)

    def release_stream(self) -> bool:
        """Let the client come back for the result, instead of holding its connection open.

        Return whether that is possible: revision 2025-11-25, over a stream. Elsewhere nothing
        happens, and the connection stays.
        """
        return self._exchange.peer.release()

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
        return self._open_questions().ask(Elicit(message, schema, **options))

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
        return await self._open_questions().aask(Elicit(message, schema, **options))

    def elicit_url(self, message: str, url: str, **options: Unpack[URLOptions]) -> str:
        """Ask the user to visit a page, and return the elicitation's id.

        That they accept says that they were sent there. Whether they have done there what they
        should is for the page to know: it must check that its visitor is the user who was asked.
        """
        answer: str = self._open_questions().ask(ElicitURL(message, url, **options))
        return answer

    async def aelicit_url(self, message: str, url: str, **options: Unpack[URLOptions]) -> str:
        """Do as :meth:`elicit_url`, in asynchronous code."""
        answer: str = await self._open_questions().aask(ElicitURL(message, url, **options))
        return answer

    def elicitation_completed(self, elicitation_id: str) -> None:
        """Notify the client that the user has done what :meth:`elicit_url` sent them to do.

        Revision 2025-11-25 has a notification of it; elsewhere nothing happens.
        """
        exchange = self._exchange
        known = revision_of_urls(exchange.sender.capabilities, exchange.revision)
        if known is not None and known.elicitation_ids:
            exchange.peer.notify(
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
        return self._open_questions().ask(Sample(messages, max_tokens=max_tokens, **options))

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
        return await self._open_questions().aask(sample)

    def roots(self, **options: Unpack[Options]) -> list[Root]:
        """Ask for the directories in which the client works."""
        answer: list[Root] = self._open_questions().ask(Roots(**options))
        return answer

    async def aroots(self, **options: Unpack[Options]) -> list[Root]:
        """Do as :meth:`roots`, in asynchronous code."""
        answer: list[Root] = await self._open_questions().aask(Roots(**options))
        return answer

    def _open_questions(self) -> Questions:
        if self._questions is None:
            raise QuestionMisplaced(NOT_HERE)
        return self._questions

    def _check_not_stopped(self) -> None:
        if self._exchange.stopped:
            raise CallStopped

    def _is_logged(self, level: str) -> bool:
        # Legacy: the session's level; 2026-07-28, server/utilities/logging: without a level in the
        # request itself nothing may be sent.
        session, sender = self._exchange.session, self._exchange.sender
        least = sender.log_level if session is None else session.log_level
        return least is not None and LOG_LEVELS.index(level) >= LOG_LEVELS.index(least)


@dataclass(frozen=True, slots=True)
class ContextParameter:
    """A parameter that takes a :class:`Context`, or a subclass of it."""

    name: str
    type: type[Context]

    def value(self, exchange: Exchange, questions: Questions | None = None) -> Context:
        """Return the context of a call, with ``questions`` to ask by if it may ask its client."""
        return self.type(exchange, questions)


@dataclass(frozen=True, slots=True)
class RequestParameter:
    """A parameter that takes the HTTP request, as a view does."""

    name: str

    def value(self, exchange: Exchange, questions: Questions | None = None) -> HttpRequest:
        """Return the request that a call has come in."""
        return exchange.http.django()


ProvidedParameter = ContextParameter | RequestParameter
"""A parameter that is no argument: the server gives its value."""


def provided_parameter(hints: Mapping[str, Any], names: Iterable[str]) -> ProvidedParameter | None:
    """Return the first of the parameters ``names`` that takes a context or the request, if any."""
    for name in names:
        kind = _class_among(hints.get(name), Context)
        if kind is not None:
            return ContextParameter(name, kind)
        if _class_among(hints.get(name), HttpRequest) is not None:
            return RequestParameter(name)
    return None


def context_parameter(hints: Mapping[str, Any], names: Iterable[str]) -> ContextParameter | None:
    """Return the first of the parameters ``names`` that takes a context, if any."""
    found = (provided_parameter(hints, (name,)) for name in names)
    return next((each for each in found if isinstance(each, ContextParameter)), None)


def _class_among(annotation: Any, wanted: type[T]) -> type[T] | None:
    """Return the class ``wanted``, or one derived from it, where an annotation has such."""
    if get_origin(annotation) in (Union, UnionType, Annotated):
        found = (_class_among(argument, wanted) for argument in get_args(annotation))
        return next(filter(None, found), None)
    if isinstance(annotation, type) and issubclass(annotation, wanted):
        return annotation
    return None
