"""One accepted request with everything that its handler may know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..conf import Settings
from ..principal import Guard, Principal
from ..protocol.headers import Headers
from ..protocol.lifecycle import Sender, SessionInfo
from ..protocol.messages import Request
from ..protocol.versions import Revision
from ..site_version import site_version
from .ports import Peer
from .progress import Progress
from .questions.asking import Questions

if TYPE_CHECKING:
    from .registry import MCPServer


@dataclass(slots=True, kw_only=True, eq=False)
class Exchange:
    """A request, who sends it, in which revision, and what is needed to answer it."""

    server: MCPServer
    request: Request
    revision: Revision
    sender: Sender
    principal: Principal
    session: SessionInfo | None
    headers: Headers
    settings: Settings
    """As they were when the request came in."""
    is_public: bool
    """Whether the endpoint is open to everyone, so that nothing depends on who asks."""
    peer: Peer
    progress: Progress
    http_request: Callable[[], Any]
    """Build the ``HttpRequest``, which costs something at the mount."""
    questions: Questions = field(default_factory=Questions)
    guard: Guard | None = None
    """Says whether a user may go on with what is asked for, where not everybody may. Nobody loses
    what he never had: there is none until the caller has been found to be allowed it.
    """

    @property
    def version(self) -> str:
        """The version of a server that has none of its own."""
        return self.settings.server_version or site_version()

    @property
    def label(self) -> str:
        """How the log speaks of it."""
        params = self.request.params
        name = params.get("name") or params.get("uri") or ""
        return f"{self.request.method} {str(name)[:100]!r}"
