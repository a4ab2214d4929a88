"""The options of tools, resources and prompts, checked: what is wrong is said when it is given."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any, Final

from ..protocol.scopes import check_scope
from ..protocol.uri_template import InvalidURITemplate, URITemplate
from ..rates import Rate
from .errors import RegistrationError
from .functions import is_async
from .primitives import Permission
from .signature import Signature

# 2025-11-25, server/tools, "Tool Names", allows more of tools; the interfaces of models do not, and
# one name that they refuse ends the session for all tools.
_NAMES: Final = {
    "tool": (
        re.compile(r"[A-Za-z0-9_\-]{1,64}"),
        "1 to 64 letters, digits, underscores and hyphens, as models take them",
    ),
    "prompt": (
        re.compile(r"[A-Za-z0-9_.\-]{1,128}"),
        "1 to 128 letters, digits, underscores, hyphens and dots",
    ),
}

# As they are written in URLs and headers.
_TOOLSET: Final = re.compile(r"[A-Za-z0-9_\-]{1,64}")

# Without the label of its app, a name would be a permission that nobody but superusers has.
_PERMISSION: Final = re.compile(r"[^.\s]+(\.[^.\s]+)+")


def checked_name(kind: str, name: str) -> str:
    """Return the name of a ``kind`` of primitive, if clients take it."""
    pattern, allowed = _NAMES[kind]
    if not pattern.fullmatch(name):
        raise RegistrationError(f"{kind} name {name!r}: use {allowed}.")
    return name


def checked_permission(permission: Any, signature: Signature) -> Permission | None:
    """Return what ``permission=`` says, if it can be asked of a user."""
    if permission is None or (isinstance(permission, str) and _PERMISSION.fullmatch(permission)):
        return permission
    if callable(permission) and not is_async(permission):
        checked: Permission = permission
        return checked
    # An asynchronous function would let everybody in: a coroutine is true.
    raise RegistrationError(
        f"{signature.label}: permission= takes a Django permission, written "
        '"app_label.codename" as in "shop.view_order", or a synchronous function of the user; '
        f"not {permission!r}."
    )


def check_several(given: Any, option: str, label: str) -> None:
    """Refuse a single text where there may be several: it would be taken for its letters."""
    if isinstance(given, str):
        raise RegistrationError(f'{label}: {option}= takes several, as in ["{given}"].')


def checked_scopes(scopes: Sequence[str], label: str) -> tuple[str, ...]:
    """Return what ``scopes=`` says of what is called ``label``, each once."""
    check_several(scopes, "scopes", label)
    try:
        return tuple(dict.fromkeys(map(check_scope, scopes)))
    except ValueError as error:
        raise RegistrationError(f"{label}: scopes=: {error}.") from None


def check_timeout(timeout: float | None, signature: Signature) -> None:
    """Refuse a ``timeout=`` that nothing can keep."""
    if timeout is not None and timeout <= 0:
        raise RegistrationError(f"{signature.label}: timeout= must be more than 0 seconds.")


def check_once(once: bool, signature: Signature) -> None:
    """Refuse ``once=`` where nothing is asked."""
    if once and not signature.sends_messages:
        raise RegistrationError(
            f"{signature.label}: once= is for what the client answers, and this function cannot "
            "ask it anything. Let it take a Context, or a parameter with Ask."
        )


def checked_toolsets(toolset: str, tags: Collection[str], signature: Signature) -> frozenset[str]:
    """Return the names by which clients may choose a tool: its toolset and its tags."""
    check_several(tags, "tags", signature.label)
    names = [*([toolset] if toolset else ()), *tags]
    for name in names:
        if not _TOOLSET.fullmatch(name):
            raise RegistrationError(
                f"{signature.label}: {name!r} cannot be written in URLs and headers. Use 1 to 64 "
                "letters, digits, underscores and hyphens for toolsets and tags."
            )
    return frozenset(names)


def checked_rate(given: str | None, signature: Signature) -> Rate | None:
    """Return what ``rate_limit=`` says; nothing if it is empty."""
    if not given:
        return None
    try:
        return Rate.parse(given)
    except (TypeError, ValueError) as error:
        raise RegistrationError(f"{signature.label}: rate_limit=: {error}.") from error


def checked_template(uri: str) -> URITemplate:
    """Return a URI as a template, with variables or without."""
    try:
        return URITemplate(uri)
    except InvalidURITemplate as error:
        raise RegistrationError(str(error)) from None


def checked_invalidated(uris: Sequence[str], signature: Signature) -> tuple[URITemplate, ...]:
    """Return what ``invalidates=`` says, as templates of what the function takes."""
    if isinstance(uris, str):
        raise RegistrationError(
            f'{signature.label}: invalidates= takes several URIs, as in ("{uris}",).'
        )
    templates = tuple(map(checked_template, uris))
    for template in templates:
        unknown = [name for name in template.variables if name not in signature.names]
        if unknown:
            raise RegistrationError(
                f"{signature.label}: invalidates= names {template.template!r}, and {unknown[0]!r} "
                f"is none of its parameters ({', '.join(signature.names) or 'none'})."
            )
    return templates


def check_asks_nothing(signature: Signature) -> None:
    """Refuse what only tools can take."""
    if signature.without_asking is not None:
        raise RegistrationError(f"{signature.label}: or_argument= is for parameters of tools.")
