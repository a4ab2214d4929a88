"""What a server offers: tools, resources, resource templates, prompts and completions, frozen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .context import Context
from .rates import Rate
from .results import Output
from .signature import Signature
from .uri_template import URITemplate

Permission = str | Callable[[Any], bool]
"""A Django permission, or a function of the user; it hides and refuses alike."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Primitive:
    """What everything on offer has in common."""

    key: str
    """The name or URI by which clients ask for it, unique among its kind; lists are in its
    order."""
    description: dict[str, Any]
    """The object of the schema that lists show, with all fields of the newest revision."""
    permission: Permission | None = None

    def allows(self, user: Any) -> bool:
        """Return whether ``user`` may see and use it. May touch the database."""
        if self.permission is None:
            return True
        if isinstance(self.permission, str):
            return bool(user.has_perm(self.permission))
        return bool(self.permission(user))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tool(Primitive):
    """A function that models call."""

    signature: Signature
    output: Output | None = None
    headers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Mirrored parameters: header name portion to property path."""
    timeout: float | None = None
    rate: Rate | None = None
    """How often each caller may call it."""
    atomic: bool = True
    invalidates: tuple[URITemplate, ...] = ()
    """The resources that a call changes; their variables are arguments of the tool."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Resource(Primitive):
    """A resource, or a family of them that a URI template describes."""

    signature: Signature
    template: URITemplate
    mime_type: str | None
    """What the contents are; ``None`` if only the value tells."""
    ttl_ms: int = 0
    listing: Signature | None = None
    """A function that lists resources of the family."""
    atomic: bool = True
    model: Any = None
    """The Django model whose instances it shows."""

    @property
    def is_template(self) -> bool:
        """Whether the URI has variables."""
        return bool(self.template.variables)


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
    context_parameter: str | None
    context_type: type[Context]
    takes_arguments: bool
