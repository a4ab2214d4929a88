"""``MCPServer``: the decorators by which a site says what it offers, and the look-up of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeVar, overload

from django.apps import apps
from django.utils.functional import Promise
from mcp_types import Annotations, Icon, Implementation

from ..conf import MAX_SERVER_NAME_LENGTH, check_issuer
from ..protocol.topics import Topic, TopicKind
from ..protocol.uri_matching import Text
from ..protocol.uri_template import MAX_LENGTH, URITemplate
from . import builders
from .checked_options import checked_scopes
from .errors import RegistrationError
from .exception_table import ExceptionHandler, build_exception_handler, check_kinds
from .model_signals import connect_signals
from .primitives import Completion, LazyText, Permission, Prompt, Resource, TemplateIndex, Tool
from .results import dump
from .site_offers import SiteOffers

F = TypeVar("F", bound=Callable[..., Any])
P = TypeVar("P", Tool, Resource, Prompt)


class Decorator(Protocol):
    """Takes a function, registers it and returns it unchanged."""

    def __call__(self, function: F, /) -> F:
        """Register ``function``."""


class MCPServer(SiteOffers):
    """A set of tools, resources and prompts behind one endpoint.

    ``auth`` is what ``DJANGO_MCP["AUTH"]`` is, for this server alone: a callable or its dotted
    path. ``authorization_servers`` are, likewise, the issuers of tokens for this server.
    ``scopes`` are what every request to it needs. ``name`` identifies the server in its sessions
    and tokens. ``exception_handlers`` are functions as :meth:`exception_handler` takes them, by
    class. ``structured_text`` sends text that tools return as structured output, too.
    """

    def __init__(
        self,
        name: str,
        *,
        version: str = "",
        title: LazyText | None = None,
        description: LazyText | None = None,
        instructions: LazyText | None = None,
        website_url: str | None = None,
        icons: Sequence[Icon] = (),
        auth: str | Callable[..., Any] | None = None,
        authorization_servers: Sequence[str] | None = None,
        scopes: Sequence[str] = (),
        exception_handlers: Mapping[type[Exception], Callable[..., Any]] | None = None,
        structured_text: bool = False,
    ) -> None:
        super().__init__()
        if len(name) > MAX_SERVER_NAME_LENGTH:
            raise RegistrationError(
                f"The server's name {name[:20]!r}... may have {MAX_SERVER_NAME_LENGTH} "
                "characters at most."
            )
        self._name = name
        self._version = version
        self._instructions = instructions
        self._structured_text = structured_text
        self.auth = auth
        self.authorization_servers = _checked_issuers(name, authorization_servers)
        """The issuers of tokens for it; ``None`` where that is a matter of the settings."""
        self._scopes = checked_scopes(scopes, f"The server {name!r}")
        self._about = {"title": title, "description": description, "website_url": website_url}
        self._icons = list(icons)
        self._tools: dict[str, Tool] = {}
        self.find_tool: Callable[[str], Tool | None] = self._tools.get
        """Returns the tool of a name."""
        self._resources: dict[str, Resource] = {}
        self._templates = TemplateIndex()
        self._prompts: dict[str, Prompt] = {}
        self.find_prompt: Callable[[str], Prompt | None] = self._prompts.get
        """Returns the prompt of a name."""
        self._completions: dict[tuple[str, str], Completion] = {}
        self._exception_handlers: dict[type[BaseException], ExceptionHandler] = {}
        for kind, handler in (exception_handlers or {}).items():
            self.exception_handler(kind)(handler)
        self.features: set[str] = set()
        """The capabilities for which something has been registered."""
        self.guarded = False
        """Whether anything here needs a permission, so that look-ups may touch the database."""
        self.is_scoped = bool(self._scopes)
        """Whether anything here needs a scope."""
        self.costly_tools: set[str] = set()
        """Tools of which even few arguments may take time worth mentioning to validate."""

    def __repr__(self) -> str:
        return f"<MCPServer {self.name!r}>"

    @property
    def name(self) -> str:
        """What the server is called, by clients and in its sessions."""
        return self._name

    @property
    def title(self) -> str:
        """What people call the server; its name, where it has no title."""
        return str(self._about["title"] or self.name)

    @property
    def version(self) -> str:
        """The version of what the site offers."""
        return self._version

    @property
    def instructions(self) -> str | None:
        """What a model should know before it uses the server, and its toolsets that all may see."""
        given = self._given_instructions
        parts = [] if given is None else [str(given)]
        described = [f"- {name}: {text}" for name, text in self.toolsets.items() if text]
        if described:
            parts.append("\n".join(["Toolsets:", *described]))
        return "\n\n".join(parts) if parts else None

    @property
    def has_translated_instructions(self) -> bool:
        """Whether they are in the language of whoever asks."""
        return isinstance(self._given_instructions, Promise)

    @property
    def _given_instructions(self) -> LazyText | None:
        """What the site says, without the toolsets."""
        return self._instructions

    @property
    def scopes(self) -> tuple[str, ...]:
        """The scopes that every request needs."""
        return self._scopes

    @property
    def structured_text(self) -> bool:
        """Whether text that a tool returns is sent as structured output, too."""
        return self._structured_text

    @property
    def tools(self) -> Sequence[Tool]:
        """All tools, in the order of their names: the same in every process."""
        return _in_order(self._tools)

    @property
    def resources(self) -> Sequence[Resource]:
        """All resources and templates, in the order of their URIs."""
        return _in_order(self._resources)

    @property
    def prompts(self) -> Sequence[Prompt]:
        """All prompts, in the order of their names."""
        return _in_order(self._prompts)

    @property
    def exception_handlers(self) -> Mapping[type[BaseException], ExceptionHandler]:
        """The handlers of the site's exceptions, by class."""
        return self._exception_handlers

    def implementation(self, site_version: str = "") -> dict[str, Any]:
        """Return ``serverInfo`` with all fields of the newest revision."""
        about: dict[str, Any] = {**self._about, "icons": self._icons or None}
        version = self.version or site_version
        return dump(Implementation(name=self.name, version=version, **about))

    def find_resources(self, uri: str) -> Iterable[tuple[Resource, dict[str, str]]]:
        """Yield what serves ``uri`` with the values of its variables, the most particular first."""
        exact = self._resources.get(uri)
        if exact is not None and not exact.is_template:
            yield exact, {}
        if len(uri) > MAX_LENGTH:
            return
        text = Text(uri)
        for resource in self._templates.beginning(text.data):
            values = resource.template.match_text(text)
            if values is not None:
                yield resource, values

    def find_completion(self, reference: str, argument: str) -> Completion | None:
        """Return the completion of ``argument`` of a prompt or a resource template."""
        return self._completions.get((reference, argument))

    @overload
    def tool(self, function: F, /) -> F: ...

    @overload
    def tool(
        self,
        /,
        *,
        name: str | None = None,
        title: LazyText | None = None,
        description: LazyText | None = None,
        read_only: bool | None = None,
        destructive: bool | None = None,
        idempotent: bool | None = None,
        open_world: bool | None = None,
        icons: Sequence[Icon] = (),
        meta: Mapping[str, Any] | None = None,
        permission: Permission | None = None,
        scopes: Sequence[str] = (),
        input_schema: dict[str, Any] | None = None,
        output_schema: dict[str, Any] | Literal[False] | None = None,
        timeout: float | None = None,
        rate_limit: str | None = None,
        atomic: bool = True,
        once: bool = False,
        strict: bool | None = None,
        invalidates: Sequence[str] = (),
        toolset: str = "",
        tags: Collection[str] = (),
        always_load: bool = False,
        app: str | None = None,
        visibility: Collection[str] = (),
    ) -> Decorator: ...

    def tool(self, function: Any = None, /, **options: Any) -> Any:
        """Offer a function to models. Use it bare, or with options.

        ``read_only``, ``destructive``, ``idempotent`` and ``open_world`` are hints for clients.
        ``permission`` hides the tool from those who may not use it, and refuses them alike.
        ``scopes`` are what the client's credentials need for it, beside those of the server; whose
        lack them see it, and are told to ask for them.
        ``output_schema=False`` keeps a result unstructured. ``timeout`` is how many seconds the
        function may take; a synchronous one cannot be stopped, but its client is answered, under
        WSGI only when it ends. ``rate_limit`` says how often each caller may call the tool, as in
        ``"10/m"``, beside what ``DJANGO_MCP["RATE_LIMIT"]`` says of all tools. ``atomic=False``
        keeps the tool out of the savepoint in which it runs where a transaction is open.
        ``once=True`` lets what a client was asked and has answered count for one call only.
        ``strict`` says whether arguments that the function does not take are refused, instead of
        ``DJANGO_MCP["STRICT_ARGUMENTS"]``.
        ``invalidates`` are the URIs of resources, with arguments of the tool as variables, whose
        subscribers are notified after a call that succeeded. ``toolset`` and ``tags`` are names by
        which clients may choose tools. ``always_load`` asks clients that have models search for
        tools to show them this one at once. ``app`` is the URI of the :meth:`app` in which clients
        show its results, and ``visibility`` says who is to call it: ``"model"``, ``"app"`` or both.
        The function itself is returned unchanged.
        """

        def register(function: F) -> F:
            self._add_tool(function, options)
            return function

        return register if function is None else register(function)

    def resource(
        self,
        uri: str,
        *,
        name: str | None = None,
        title: LazyText | None = None,
        description: LazyText | None = None,
        mime_type: str | None = None,
        size: int | None = None,
        annotations: Annotations | None = None,
        icons: Sequence[Icon] = (),
        meta: Mapping[str, Any] | None = None,
        permission: Permission | None = None,
        scopes: Sequence[str] = (),
        list: Callable[..., Any] | None = None,
        ttl: float = 0,
        atomic: bool = True,
        model: Any = None,
    ) -> Decorator:
        """Offer what a function returns under ``uri``, which may be a template (RFC 6570).

        Text from ``str``, a blob from ``bytes``, JSON from everything else. ``list`` is a function
        that lists resources of a template. ``ttl`` says for how many seconds clients may keep what
        they have read. ``size`` is in bytes. ``atomic`` is as for tools. ``model`` is the Django
        model that it shows: when an instance is saved or deleted, subscribers of the URI that its
        attributes make are notified.
        """

        def register(function: F) -> F:
            resource = builders.build_resource(
                function,
                uri=uri,
                name=name,
                title=title,
                description=description,
                mime_type=mime_type,
                size=size,
                annotations=annotations,
                icons=icons,
                meta=meta,
                permission=permission,
                scopes=scopes,
                listing=list,
                ttl=ttl,
                atomic=atomic,
                model=model,
            )
            self._add_resource(resource)
            if model is not None:
                connect_signals(
                    resource, self.notify_resource_updated, self.notify_resources_changed
                )
            return function

        return register

    @overload
    def prompt(self, function: F, /) -> F: ...

    @overload
    def prompt(
        self,
        /,
        *,
        name: str | None = None,
        title: LazyText | None = None,
        description: LazyText | None = None,
        icons: Sequence[Icon] = (),
        meta: Mapping[str, Any] | None = None,
        permission: Permission | None = None,
        scopes: Sequence[str] = (),
        atomic: bool = True,
    ) -> Decorator: ...

    def prompt(self, function: Any = None, /, **options: Any) -> Any:
        """Offer a function's messages to people as a prompt. Use it bare, or with options.

        Arguments arrive as text and are converted to the annotated types. Those of a ``Literal``
        or an ``Enum`` are completed without further ado. ``atomic`` is as for tools.
        """

        def register(function: F) -> F:
            prompt, completions = builders.build_prompt(function, **options)
            self._add("prompt", self._prompts, prompt)
            for argument, completion in completions.items():
                self._completions.setdefault((prompt.key, argument), completion)
                self.features.add("completions")
            return function

        return register if function is None else register(function)

    def completion(self, reference: str, argument: str) -> Decorator:
        """Suggest values for ``argument`` of a prompt (its name) or of a resource template.

        The function takes the text typed so far and returns suggestions, best first. It may take
        ``arguments``, a dict of the values chosen already, and a :class:`Context`.
        """

        def register(function: F) -> F:
            completion = builders.build_completion(function)
            self._completions[(reference, argument)] = completion
            self.features.add("completions")
            return function

        return register

    def exception_handler(self, *kinds: type[Exception]) -> Decorator:
        """Say what clients read of exceptions of these classes, out of whatever function.

        The function takes the exception and, if it wants one, a :class:`Context`, by which nothing
        can be asked, and returns text, content blocks or a :class:`ToolError`; with ``None`` it
        leaves the exception to what its base classes have. It is not asynchronous, and runs after
        the call was rolled back.
        """
        check_kinds(kinds)

        def register(function: F) -> F:
            handler = build_exception_handler(function)
            for kind in kinds:
                if kind in self._exception_handlers:
                    raise RegistrationError(
                        f"The server {self.name!r} already has a handler for {kind.__name__}."
                    )
                self._exception_handlers[kind] = handler
            return function

        return register

    def notify_tools_changed(self, *, using: str | None = None) -> None:
        """Notify all clients, of whatever process, that the list of tools has changed.

        Call it from anywhere: a view, a signal handler, a task, a shell. It is sent when the
        transactions that are open now have been committed; ``using`` names the database that
        matters, if not all of them do.
        """
        self._publish(Topic(TopicKind.TOOLS), using)

    def notify_prompts_changed(self, *, using: str | None = None) -> None:
        """Notify all clients that the list of prompts has changed, as with tools."""
        self._publish(Topic(TopicKind.PROMPTS), using)

    def notify_resources_changed(self, *, using: str | None = None) -> None:
        """Notify all clients that the list of resources has changed, as with tools."""
        self._publish(Topic(TopicKind.RESOURCES), using)

    def notify_resource_updated(self, uri: str, *, using: str | None = None) -> None:
        """Notify the subscribers of a resource that it has changed; next to nothing without any."""
        self._publish(self.topic_of(uri), using)

    def _publish(self, topic: Topic, using: str | None) -> None:
        if not apps.models_ready:
            raise RuntimeError(
                "Clients can be notified once Django is set up, not while it loads its models."
            )
        # Servers are made before there are models.
        from ..store.publisher import publish  # noqa: PLC0415

        publish(self.name, topic, using=using)

    def topic_of(self, uri: str) -> Topic:
        """Return a resource as something that changes: the same for all spellings of its URI."""
        for resource, values in self.find_resources(uri):
            return resource.topic(uri, values)
        return Topic(TopicKind.RESOURCE, uri)

    def check(self) -> list[str]:
        """Return what is wrong among what is registered, one sentence each."""
        completions = [
            f"completion of {argument!r} for {reference!r}: there is no such prompt or template"
            for reference, argument in self._completions
            if argument not in self._arguments_of(reference)
        ]
        return completions + [
            f"form({each.__name__}) is no tool yet: decorate the function that handles it, or give "
            "that as the second argument"
            for each in self.unhandled_forms
        ]

    def _arguments_of(self, reference: str) -> tuple[str, ...]:
        if reference in self._prompts:
            return self._prompts[reference].signature.names
        if reference in self._resources:
            return URITemplate(reference).variables
        return ()

    def _add_tool(self, function: Callable[..., Any], options: Mapping[str, Any]) -> None:
        tool = builders.build_tool(function, **options)
        self._add("tool", self._tools, tool)
        if tool.signature.is_costly:
            self.costly_tools.add(tool.key)
        self.has_app_tools |= tool.ui is not None
        for name in tool.toolsets:
            self.toolsets.setdefault(name, "")

    def _add_resource(self, resource: Resource) -> None:
        self._add("resource", self._resources, resource)
        if resource.is_template:
            self._templates.add(resource)

    def _add(self, kind: str, registered: dict[str, Any], primitive: Any) -> None:
        key = primitive.key
        if key in registered:
            raise RegistrationError(
                f"The server {self.name!r} already has a {kind} {key!r}. Give one of them another "
                "name, or register it with another server."
            )
        registered[key] = primitive
        self.features.add(f"{kind}s")
        self.guarded |= primitive.permission is not None
        self.is_scoped |= bool(primitive.scopes)


def _checked_issuers(name: str, issuers: Sequence[str] | None) -> tuple[str, ...] | None:
    if issuers is None:
        return None
    try:
        return tuple(map(check_issuer, [issuers] if isinstance(issuers, str) else issuers))
    except ValueError as error:
        raise RegistrationError(f"The server {name!r}: {error}.") from None


def _in_order(registered: Mapping[str, P]) -> list[P]:
    return [registered[key] for key in sorted(registered)]
