"""Opens a session of the legacy era.

2025-11-25, basic/lifecycle, "Initialization", and basic/transports, "Session Management".
"""

from __future__ import annotations

import itertools

from mcp_types import InitializeResult

from ..protocol import headers as names
from ..protocol import versions
from ..protocol.messages import Message, Response
from .endpoint import JSON, Endpoint, check
from .errors import OutcomeUnknown, UnsupportedServer
from .exchange import Exchange, only_response, outcome
from .server import Server, read
from .session import Session
from .streams import follow


async def initialize(endpoint: Endpoint, exchange: Exchange, ids: itertools.count[int]) -> Session:
    """Send ``initialize``, and return the session that the server has opened."""
    exchange.renew(ids)

    async def take(message: Message) -> Response | None:
        return message if isinstance(message, Response) and exchange.owns(message) else None

    async with endpoint.open("POST", {}, exchange.body({})) as answer:
        await check(answer)
        if answer.media_type == JSON:
            response: Response | None = only_response(await answer.message(), exchange)
        else:
            response = await follow(answer, take)
        session_id = answer.header(names.SESSION_ID)
    if response is None:
        raise OutcomeUnknown("The stream ended before the answer to initialize")
    return Session(session_id, _server(read(InitializeResult, outcome(response))))


def _server(result: InitializeResult) -> Server:
    revision = versions.BY_NAME.get(result.protocol_version)
    if revision is None or revision.modern:
        raise UnsupportedServer(
            f"The server wants revision {result.protocol_version[:40]!r}, which this client does"
            " not speak with sessions"
        )
    return Server(revision, result.capabilities, result.server_info, result.instructions)
