"""What Django's own reports of errors show of a request to an endpoint."""

from __future__ import annotations

from types import FrameType
from typing import Any

from django.http import HttpRequest
from django.views.debug import (
    SafeExceptionReporterFilter,
    get_default_exception_reporter_filter,
)

from ..protocol.headers import bearer_token
from .request import SESSION_ID_VARIABLE

_AUTHORIZATION = "HTTP_AUTHORIZATION"


class ReportFilter:
    """Does what the site's filter does, and hides the ``Mcp-Session-Id`` and bearer tokens, too.

    Neither may be in a report, whatever the site's own filter lets through: not among the headers,
    and not in a local variable of any frame.
    """

    _sites: SafeExceptionReporterFilter | None = None

    def __init__(self, sites: SafeExceptionReporterFilter | None = None) -> None:
        """``sites`` is what was chosen for this request; else it is that of the settings."""
        self._sites = sites

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    @property
    def _inner(self) -> Any:
        return self._sites or get_default_exception_reporter_filter()

    def get_safe_request_meta(self, request: HttpRequest) -> dict[str, Any]:
        """Return the request's variables, without what is secret in them."""
        shown: dict[str, Any] = self._inner.get_safe_request_meta(request)
        return {
            name: self._inner.cleansed_substitute
            if name in (SESSION_ID_VARIABLE, _AUTHORIZATION)
            else value
            for name, value in shown.items()
        }

    def get_traceback_frame_variables(
        self, request: HttpRequest, tb_frame: FrameType
    ) -> list[tuple[str, Any]]:
        """Return a frame's variables, without those in which something secret can be read."""
        shown = self._inner.get_traceback_frame_variables(request, tb_frame)
        secrets = _secrets_of(request)
        if not secrets:
            return list(shown)
        hidden = self._inner.cleansed_substitute
        return [(name, hidden if _shows(value, secrets) else value) for name, value in shown]


report_filter = ReportFilter()
"""That of requests for which the site has chosen none of its own."""


def extend_report_filter(request: Any) -> None:
    """Have a request's own filter, which somebody in the site has chosen, hide the same."""
    chosen = request.exception_reporter_filter
    if not isinstance(chosen, ReportFilter):
        request.exception_reporter_filter = ReportFilter(chosen)


def _secrets_of(request: HttpRequest) -> list[str]:
    session_id = getattr(request, "_mcp_session_id", None)
    token = bearer_token({"Authorization": request.META.get(_AUTHORIZATION, "")})
    return [each for each in (session_id, token) if each]


def _shows(value: Any, secrets: list[str]) -> bool:
    try:
        text = value if isinstance(value, str) else repr(value)
    except Exception:  # as Django's own report would find out
        return False
    return any(each in text for each in secrets)
