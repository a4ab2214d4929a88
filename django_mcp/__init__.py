"""Model Context Protocol endpoints for Django sites.

Add ``"django_mcp"`` to ``INSTALLED_APPS`` and say who may use the endpoint::

    DJANGO_MCP = {"AUTH": "django_mcp.auth.django_user"}

Give it a URL::

    urlpatterns = [path("", include("django_mcp.urls"))]        # at /mcp

And decorate functions, in the file ``mcp.py`` of any app::

    from django_mcp import Context, mcp

    @mcp.tool(read_only=True, permission="shop.view_order")
    def count_orders(ctx: Context, status: Literal["open", "shipped"]) -> int:
        "Count the caller's orders."
        return Order.objects.filter(user=ctx.user, status=status).count()

Every MCP client can list and call it now. ``@mcp.resource("order://{id}")`` and ``@mcp.prompt``
work alike; ``MCPServer`` makes more servers, ``endpoint("staff/mcp", server=staff)`` gives them
URLs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .http.views import MCPView
    from .model_tools.results.pages import Page
    from .model_tools.results.shown_fields import Fields
    from .model_tools.toolset import ModelTools
    from .routing import endpoint
    from .server.asked_parameters import Ask
    from .server.context import Context
    from .server.default_server import mcp
    from .server.errors import (
        QuestionCancelled,
        QuestionDeclined,
        QuestionError,
        QuestionFailed,
        QuestionTimedOut,
        QuestionUnsupported,
        RegistrationError,
        ResourceNotFound,
        ToolError,
    )
    from .server.file_links import FileLink
    from .server.filled_parameters import Load, Provide
    from .server.questions.kinds import Elicit, ElicitURL, Roots
    from .server.questions.sampling import Sample
    from .server.registry import MCPServer
    from .server.toolsets import Toolset, tool
    from .server.uploads import Upload

__version__ = "0.1.0"

__all__ = [
    "Ask",
    "Context",
    "Elicit",
    "ElicitURL",
    "Fields",
    "FileLink",
    "Load",
    "MCPServer",
    "MCPView",
    "ModelTools",
    "Page",
    "Provide",
    "QuestionCancelled",
    "QuestionDeclined",
    "QuestionError",
    "QuestionFailed",
    "QuestionTimedOut",
    "QuestionUnsupported",
    "RegistrationError",
    "ResourceNotFound",
    "Roots",
    "Sample",
    "ToolError",
    "Toolset",
    "Upload",
    "endpoint",
    "mcp",
    "tool",
]

# When they are first asked for: views import models, which must not happen while Django is still
# loading the apps, and the client needs no Django at all.
_PLACES = {
    "routing": ("endpoint",),
    "server.context": ("Context",),
    "server.default_server": ("mcp",),
    "server.errors": (
        "QuestionCancelled",
        "QuestionDeclined",
        "QuestionError",
        "QuestionFailed",
        "QuestionTimedOut",
        "QuestionUnsupported",
        "RegistrationError",
        "ResourceNotFound",
        "ToolError",
    ),
    "server.asked_parameters": ("Ask",),
    "server.file_links": ("FileLink",),
    "server.filled_parameters": ("Load", "Provide"),
    "server.questions.kinds": ("Elicit", "ElicitURL", "Roots"),
    "server.questions.sampling": ("Sample",),
    "server.registry": ("MCPServer",),
    "server.toolsets": ("Toolset", "tool"),
    "server.uploads": ("Upload",),
    "http.views": ("MCPView",),
    "model_tools.results.pages": ("Page",),
    "model_tools.results.shown_fields": ("Fields",),
    "model_tools.toolset": ("ModelTools",),
}
_PLACE_OF = {name: f".{place}" for place, names in _PLACES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _PLACE_OF:
        return getattr(import_module(_PLACE_OF[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
