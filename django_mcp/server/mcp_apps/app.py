"""One app: a page, the resource by which hosts read it, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.conf import settings
from django.core.checks import CheckMessage, Error
from django.core.checks import Warning as CheckWarning
from django.utils import translation
from mcp_types import TextResourceContents

from ..builders import build_resource
from ..primitives import Resource
from ..ui_extension import MIME_TYPE
from .loaded_urls import unreachable
from .page_options import ui_of_page
from .rendering import PageError, check_context, render

__all__ = ["App", "ui_of_page"]

VARIABLE: Final = "mcp_page"
"""By which the tags of a template find their page."""

URL_HINT: Final = (
    "Hosts block what csp= does not name. Put files of the site into the page by {% mcp_css %}, "
    "{% mcp_script %} or {% mcp_data_uri %}; name the origin of what comes from elsewhere in csp= "
    "of mcp.app(...)."
)


@dataclass(slots=True)
class Page:
    """A page while it is rendered, and which scripts of this package it has so far."""

    app: App
    has_bridge: bool = False
    has_forms: bool = False


class App:
    """A page of a template. It is rendered when it is first read, once for each language."""

    def __init__(
        self,
        uri: str,
        template: str,
        server: Any,
        *,
        name: str | None,
        context: Mapping[str, Any],
        ui: dict[str, Any],
    ) -> None:
        self.uri = uri
        self.template = template
        self.server = server
        """The server that offers it, with the tools that its forms call."""
        self.name = name or uri.removeprefix("ui://")
        self.ui = ui
        """``_meta.ui``."""
        check_context(context, f"mcp.app({uri!r})")
        self._context = dict(context)
        self._rendered: dict[str | None, str] = {}

    def html(self) -> str:
        """Return the document in the present language. Raises :class:`PageError`."""
        language = translation.get_language()
        html = self._rendered.get(language)
        if html is None:
            html = render(self.template, {**self._context, VARIABLE: Page(self)})
            if not settings.DEBUG:
                self._rendered[language] = html
        return html

    def resource(self, **options: Any) -> Resource:
        """Return the resource of the page; ``options`` are those of :meth:`MCPServer.resource`."""

        def read() -> TextResourceContents:
            return TextResourceContents(
                uri=self.uri, mime_type=MIME_TYPE, text=self.html(), _meta=self._meta
            )

        return build_resource(
            read,
            uri=self.uri,
            name=self.name,
            mime_type=MIME_TYPE,
            size=None,
            annotations=None,
            meta=self._meta,
            listing=None,
            atomic=False,
            model=None,
            is_app=True,
            **options,
        )

    def check(self) -> Iterator[CheckMessage]:
        """Yield what a system check finds: a page that cannot be made, and what it cannot load."""
        label = f"The app {self.uri!r} of the server {self.server.name!r}"
        try:
            html = self.html()
        except PageError as error:
            yield Error(f"{label} has no page. {error}", id="django_mcp.E070")
            return
        for url, wanted in unreachable(html, self.ui.get("csp", {})):
            yield CheckWarning(
                f"{label} would load {url!r}, which is not in its {wanted}.",
                hint=URL_HINT,
                id="django_mcp.W070",
            )

    @property
    def _meta(self) -> dict[str, Any] | None:
        # Of the listing and of the contents: hosts look at either (2026-01-26).
        return {"ui": self.ui} if self.ui else None
