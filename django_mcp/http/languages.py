"""The language of a request at the mount, where no middleware runs that would choose it."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from django.conf import settings
from django.middleware.locale import LocaleMiddleware
from django.utils.module_loading import import_string
from django.utils.translation import get_language_from_request

from .request import IncomingRequest


def language_of(request: IncomingRequest) -> str | None:
    """Return the language in which to answer, if the site has a middleware that chooses one.

    It is chosen as that does: by the language cookie, or else by ``Accept-Language``.
    """
    if not _has_locale_middleware(tuple(settings.MIDDLEWARE)):
        return None
    return get_language_from_request(request.django())


@lru_cache(maxsize=8)
def _has_locale_middleware(names: tuple[str, ...]) -> bool:
    return any(_is_locale_middleware(import_string(name)) for name in names)


def _is_locale_middleware(middleware: Any) -> bool:
    return isinstance(middleware, type) and issubclass(middleware, LocaleMiddleware)
