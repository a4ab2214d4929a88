"""Pages of ordered lists, and how long clients may keep them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from django.conf import settings
from django.utils import translation
from django.utils.crypto import salted_hmac

from ..current_partition import current_partition
from ..protocol.cursors import Cursor, invalid_cursor, unseal
from ..protocol.versions import Revision, fit
from .exchange import Exchange
from .primitives import Primitive
from .results import Caching, Result

P = TypeVar("P", bound=Primitive)

REGISTERED = "registered"
"""The source of cursors into what was registered, as opposed to what a function lists."""


def read_cursor(text: str | None, exchange: Exchange) -> Cursor:
    """Return the place that a request's ``cursor`` names; without one, the beginning."""
    return Cursor(REGISTERED) if text is None else unseal(text, _keys(exchange))


def page(
    primitives: Sequence[P], cursor: Cursor, exchange: Exchange
) -> tuple[tuple[P, ...], Cursor | None]:
    """Return what the caller may see of one page, and the cursor of the next.

    ``primitives`` are in the order of their keys. A page is cut before permissions are asked for,
    so that walking the list costs the same for everybody.
    """
    if cursor.source != REGISTERED:
        raise invalid_cursor()
    names = [primitive.key for primitive in primitives]
    start = 0 if cursor.last is None else bisect_right(names, cursor.last)
    end = start + exchange.settings.page_size
    cut = primitives[start:end]
    user = exchange.principal.user
    visible = tuple(primitive for primitive in cut if primitive.allows(user))
    return visible, Cursor(REGISTERED, cut[-1].key) if end < len(primitives) else None


def list_result(
    name: str,
    described: Sequence[dict[str, Any]],
    following: Cursor | None,
    caching: Caching,
    exchange: Exchange,
    key: Hashable = None,
) -> Result:
    """Return one page of a list; ``key`` says what is on it, where it is the same for others."""
    body: dict[str, Any] = {name: described}
    if following is not None:
        body["nextCursor"] = following.seal(_keys(exchange)[0])
    whole = None if key is None else (name, key, body.get("nextCursor"))
    return Result(body, caching, key=whole)


def keys(purpose: str) -> Sequence[bytes]:
    """Return secret keys that are for ``purpose`` alone, and the same in all processes.

    The first is to be used; what was made with any of them is accepted. They are derived from
    ``SECRET_KEY``, and from ``SECRET_KEY_FALLBACKS``.
    """
    secrets = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    return [
        salted_hmac("django_mcp.keys", purpose, each, algorithm="sha256").digest()
        for each in secrets
    ]


def _keys(exchange: Exchange) -> Sequence[bytes]:
    # One list's: at another it would show where among the names there its own is. And one
    # partition's, whose functions may list something else.
    purpose = f"{exchange.server_name}\0{exchange.request.method}"
    partition = current_partition()
    return keys(f"{partition}\0{purpose}" if partition else purpose)


@lru_cache(maxsize=64)
def describe(
    kind: str, primitives: tuple[Primitive, ...], revision: Revision, language: str
) -> list[Any]:
    """Return primitives as objects of the schema's type ``kind``. They are not to be changed.

    ``language`` is what :func:`language_of` says of them.
    """
    return [fit(kind, each.describe(), revision) for each in primitives]


def language_of(primitives: Sequence[Primitive]) -> str:
    """Return the present language, if the texts of any depend on it; else nothing."""
    if any(each.translated for each in primitives):
        return translation.get_language() or ""
    return ""


def list_caching(primitives: Sequence[Primitive], exchange: Exchange) -> Caching:
    """Return the caching of a list: the same on each of its pages."""
    shared = exchange.is_public and all(p.is_same_for_all for p in primitives)
    return Caching(exchange.settings.list_ttl_seconds * 1000, "public" if shared else "private")
