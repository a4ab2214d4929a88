"""Whether the credentials of a caller are good for what he asks for.

What somebody may not use by his permissions is hidden. What his client may not use for want of
scopes is shown, and refused with a challenge, so that it can ask him for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from ..auth import Principal
from ..conf import Settings
from ..protocol.errors import InsufficientScope
from ..protocol.scopes import with_included
from .exchange import Caller
from .primitives import Primitive
from .registry import MCPServer


def check_scopes(server: MCPServer, caller: Caller, *targets: Primitive | None) -> None:
    """Check that a caller's credentials suffice for a request to ``server``.

    ``targets`` are what it asks for, as far as the caller may see it. Raises
    :class:`InsufficientScope` with all that the request needs. 2026-07-28, basic/authorization,
    "Scope Challenge Handling".
    """
    primitives = [each for each in targets if each is not None]
    needed = needed_scopes(server, primitives)
    principal, settings = caller.principal, caller.settings
    granted = granted_scopes(principal, settings)
    if granted is not None and not granted.issuperset(needed):
        why = f"This needs the scope {' '.join(needed)}"
        better = f"that has {'it' if len(needed) == 1 else 'them'}"
        raise _insufficient(caller, needed, why, better)
    changing = [each.key for each in primitives if not each.reads_only]
    if changing and _is_for_reading(principal, needed, settings):
        wider = () if principal.read_only else _wider_than_reading(settings)
        why = f"The credentials are for reading only, and {changing[0]} may change something"
        needed = tuple(dict.fromkeys((*needed, *wider)))
        raise _insufficient(caller, needed, why, "that is for more than reading")


def check_answer(server: MCPServer, caller: Caller, method: str, name: str) -> None:
    """Check the same of who answers a question, which a request of his has asked before.

    ``method`` and ``name`` are that request's; the name may have been cut to 255 characters.
    """
    targets: list[Primitive | None] = []
    if method == "tools/call":
        targets = [server.find_tool(name)]
    elif method == "prompts/get":
        targets = [server.find_prompt(name)]
    elif method == "resources/read":
        found = [resource for resource, _ in server.find_resources(name)]
        # What is not found by a part of its URI may be any.
        targets = [*(found or server.resources)]
    check_scopes(server, caller, *targets)


def needed_scopes(server: MCPServer, primitives: Iterable[Primitive] = ()) -> tuple[str, ...]:
    """Return the scopes that a request needs: those of the server, and of what it asks for."""
    return tuple(dict.fromkeys([*server.scopes, *(s for each in primitives for s in each.scopes)]))


def all_scopes(server: MCPServer, settings: Settings) -> list[str]:
    """Return the scopes that any request may need, the server's first, and what includes them."""
    found = list(needed_scopes(server, (*server.tools, *server.resources, *server.prompts)))
    for scope, included in settings.scope_hierarchy.items():
        if not with_included(included, settings.scope_hierarchy).isdisjoint(found):
            found.append(scope)
    return list(dict.fromkeys(found))


def granted_scopes(principal: Principal, settings: Settings) -> frozenset[str] | None:
    """Return what a caller's credentials are good for; ``None`` where no scopes limit them."""
    return None if principal.scopes is None else _with_included(principal.scopes, settings)


@lru_cache(maxsize=256)
def _with_included(scopes: frozenset[str], settings: Settings) -> frozenset[str]:
    return with_included(scopes, settings.scope_hierarchy)


def _is_for_reading(principal: Principal, needed: Sequence[str], settings: Settings) -> bool:
    """Return whether nothing that a caller has is good for more than reading."""
    granted, reading = granted_scopes(principal, settings), settings.read_only_scopes
    if principal.read_only or granted is None or not reading:
        return principal.read_only
    return granted.isdisjoint(
        {*settings.scopes, *settings.scope_hierarchy, *needed}.difference(reading)
    )


def _wider_than_reading(settings: Settings) -> list[str]:
    reading = frozenset(settings.read_only_scopes)
    wider = settings.scope_hierarchy
    return [
        each
        for each, included in wider.items()
        if each not in reading and not reading.isdisjoint(included)
    ]


def _insufficient(
    caller: Caller, needed: Sequence[str], why: str, better: str
) -> InsufficientScope:
    """Return the refusal of a caller; ``better`` says which token would do."""
    resource, advice = caller.resource, caller.principal.advice
    challenge = {"realm": caller.server_name}
    if not caller.principal.is_anonymous:
        challenge["error"] = "insufficient_scope"
    if needed:
        challenge["scope"] = " ".join(needed if resource is None else resource.as_asked(needed))
    if resource is not None:
        challenge["resource_metadata"] = resource.metadata_url
    if caller.principal.is_anonymous:
        cure = "Send credentials that have it" if resource is None else resource.advice
        return InsufficientScope(f"{why}. {cure}", challenge, status=401)
    if advice:
        return InsufficientScope(f"{why}: {advice} {better}.", challenge, status=403)
    how = "let your client log in again and ask for it" if needed else "use others"
    return InsufficientScope(f"{why}: {how}.", challenge, status=403)
