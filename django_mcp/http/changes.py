"""What brings changes to the connection that a session GETs, and of which it may be told."""

from __future__ import annotations

from typing import Any

from ..protocol.lifecycle import SessionInfo
from ..protocol.topics import LISTS, TopicKind
from ..server.methods.resources import is_readable
from ..server.registry import MCPServer
from ..store.changes.fanout import GetStreamListener
from ..store.delivery.stream_readers import StreamReader
from .request import Caller


def listener_of(
    reader: StreamReader, session: SessionInfo, caller: Caller, seen: int
) -> GetStreamListener:
    """Return what brings changes to a session's own stream, from the number ``seen`` on."""
    server = caller.server
    is_guarded = any(resource.permission is not None for resource in server.resources)

    def may_read(uri: str, user: Any) -> bool:
        return is_readable(uri, server, user)

    return GetStreamListener(
        reader,
        session.id,
        server.name,
        _lists(server),
        seen,
        principal=caller.principal,
        may_read=may_read if is_guarded else None,
    )


def _lists(server: MCPServer) -> frozenset[TopicKind]:
    return frozenset(kind for kind in LISTS if kind in server.features)
