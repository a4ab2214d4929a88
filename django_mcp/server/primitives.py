"""What a server offers: tools, resources, resource templates, prompts and completions, frozen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.utils.functional import Promise

from ..auth import Guard
from ..protocol.topics import Topic, TopicKind
from ..protocol.uri_template import URITemplate
from ..rates import Rate
from .context import ProvidedParameter
from .signature import Signature
from .structured_output import Output

LazyText = str | Promise
"""A text, or a lazy translation, which is in the language of whoever asks."""
Permission = str | Callable[[Any], bool]
"""A Django permission, or a function of the user; it hides and refuses alike."""


def is_permitted(user: Any, permission: Permission) -> bool:
    """Return whether ``user`` has a permission. May touch the database."""
    if isinstance(permission, str):
        return bool(user.has_perm(permission))
    return bool(permission(user))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Primitive:
    """What everything on offer has in common."""

    key: str
    """The name or URI by which clients ask for it, unique among its kind; lists are in its
    order."""
    description: dict[str, Any]
    """The object of the schema that lists show, with all fields of the newest revision."""
    translated: Mapping[str, Promise] = field(default_factory=dict)
    """Those of its texts that are in the language of whoever asks."""
    permission: Permission | None = None
    scopes: tuple[str, ...] = ()
    """What the client's credentials need for it, beside the scopes of its server."""
    reads_only: bool = True
    """Whether using it changes nothing; for tools, whether the site says so."""

    def describe(self) -> dict[str, Any]:
        """Return :attr:`description` in the present language. It is not to be changed."""
        if not self.translated:
            return self.description
        return {**self.description, **{name: str(text) for name, text in self.translated.items()}}

    @property
    def is_same_for_all(self) -> bool:
        """Whether every caller sees it, and sees the same."""
        return self.permission is None and not self.translated

    @property
    def guard(self) -> Guard | None:
        """What says whether a user may go on using it; ``None`` where everybody may."""
        return None if self.permission is None else self.allows

    def allows(self, user: Any) -> bool:
        """Return whether ``user`` may see and use it. May touch the database."""
        return self.permission is None or is_permitted(user, self.permission)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tool(Primitive):
    """A function that models call."""

    signature: Signature
    follows_signature: bool = True
    """Whether the schema of its arguments is derived, and not one of the site's own."""
    schema_without_asking: dict[str, Any] | None = None
    """That schema for clients whose user cannot be asked, where it is another one."""
    output: Output | None = None
    text: Output | None = None
    """What it returns, if that is text, for servers that send text as structured output, too."""
    headers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Mirrored parameters: header name portion to property path."""
    toolsets: frozenset[str] = frozenset()
    """The toolset to which it belongs, and its tags: by either a client may choose it."""
    timeout: float | None = None
    """Seconds that the function may take."""
    rate: Rate | None = None
    """How often each caller may call it."""
    atomic: bool = True
    once: bool = False
    """Whether what was answered is acted upon once only."""
    strict: bool | None = None
    """Whether unknown arguments are refused; ``None`` where that is a matter of the settings."""
    invalidates: tuple[URITemplate, ...] = ()
    """The resources that a call changes; their variables are arguments of the tool."""
    ui: Mapping[str, Any] | None = None
    """``_meta.ui`` for clients that show apps; others do not hear of it."""

    @property
    def is_for_apps_alone(self) -> bool:
        """Whether models are not to see it. Whoever may use it can call it all the same."""
        return self.ui is not None and self.ui.get("visibility") == ["app"]

    @property
    def is_same_for_all(self) -> bool:
        """Whether every caller sees it, and sees the same."""
        return not (self.permission or self.translated or self.schema_without_asking or self.ui)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Resource(Primitive):
    """A resource, or a family of them that a URI template describes."""

    signature: Signature
    template: URITemplate
    mime_type: str | None
    """What the contents are; ``None`` if that depends on the value."""
    ttl_ms: int
    listing: Signature | None = None
    """A function that lists resources of the family."""
    atomic: bool = True
    model: Any = None
    """The Django model whose instances it shows."""
    is_app: bool = False
    """Whether it is the page of an app, of which only clients that show apps hear."""

    @property
    def is_same_for_all(self) -> bool:
        """Whether every caller sees it, and sees the same."""
        return not (self.permission or self.translated or self.is_app)

    @property
    def is_template(self) -> bool:
        """Whether the URI has variables."""
        return bool(self.template.variables)

    def topic(self, uri: str, values: Mapping[str, str]) -> Topic:
        """Return what changes at ``uri``, where the variables have these values."""
        return Topic(TopicKind.RESOURCE, uri, self.template.expand(values))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Prompt(Primitive):
    """A template of messages that people choose."""

    signature: Signature
    atomic: bool = True


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Completion:
    """A function that suggests values for an argument of a prompt or a resource template."""

    function: Callable[..., Any]
    is_async: bool
    provided: ProvidedParameter | None
    takes_arguments: bool


class TemplateIndex:
    """The resources whose URIs have variables, by what stands before the first of them.

    So that a look-up does not go through all, however many there are.
    """

    def __init__(self) -> None:
        self._by_beginning: dict[bytes, list[Resource]] = {}
        self._lengths: list[int] = []

    def add(self, resource: Resource) -> None:
        """Add a template."""
        beginning = resource.template.beginning
        self._by_beginning.setdefault(beginning, []).append(resource)
        self._lengths = sorted({len(each) for each in self._by_beginning})

    def beginning(self, uri: bytes) -> list[Resource]:
        """Return those that begin as ``uri`` does, the most particular first."""
        found: list[Resource] = []
        for length in self._lengths:
            found += self._by_beginning.get(uri[:length], ())
        return sorted(found, key=lambda each: (*each.template.rank, each.key))
