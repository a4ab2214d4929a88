"""What reports of errors show of requests for tokens: nothing that opens anything."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable
from types import FrameType
from typing import Any

from django.http import HttpRequest
from django.views.debug import SafeExceptionReporterFilter, get_exception_reporter_filter


class _Hiding(SafeExceptionReporterFilter):
    """Hides what was posted, and all variables: the servers of OAuth hand it on under any name."""

    def get_post_parameters(self, request: HttpRequest | None) -> dict[str, Any]:
        shown = super().get_post_parameters(request)
        return self._hidden(shown) if self.is_active(request) else shown

    def get_traceback_frame_variables(
        self, request: HttpRequest | None, tb_frame: FrameType
    ) -> ItemsView[str, Any]:
        shown = super().get_traceback_frame_variables(request, tb_frame)
        return self._hidden(dict(shown)).items() if self.is_active(request) else shown

    def _hidden(self, names: Iterable[str]) -> dict[str, Any]:
        return dict.fromkeys(names, self.cleansed_substitute)


def hide_secrets(request: HttpRequest) -> None:
    """Let no report of an error at this request show codes, tokens and secrets of clients."""
    own = type(get_exception_reporter_filter(request))
    hiding: Any = type("Filter", (_Hiding, own), {})
    request.exception_reporter_filter = hiding()
