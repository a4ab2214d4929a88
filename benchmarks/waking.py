"""How long a stream waits for what happens at another process, with Redis and without."""

from __future__ import annotations

import http.client
import json
import random
import time
from contextlib import ExitStack
from typing import Any

from tests.support.servers import HOST

from .contenders import ENTRANCES
from .databases import Missing, Redis
from .figures import percentile
from .legs import MODERN, headers_of
from .responses import Head, Response
from .rounds import Bench
from .serving import Failed
from .sessions import HEADERS, IdleStream, Refused, open_sessions

HEARD = b"notifications/tools/list_changed"
POLL_SECONDS = 0.5


def measure(bench: Bench, number: int) -> list[dict[str, Any]]:
    """Announce a change at one process, so many times; a session's stream is open at another."""
    found = []
    try:
        found.append(_measure(bench, "polling", number, {}))
        redis = Redis(bench.logs / "redis")
        try:
            found.append(_measure(bench, "Redis", number * 4, {"REDIS_URL": redis.url}))
        finally:
            redis.stop()
    except (Failed, Missing) as error:
        bench.leave_out("wake-up", str(error))
    return found


def _measure(bench: Bench, how: str, number: int, variables: dict[str, str]) -> dict[str, Any]:
    mount = next(each for each in ENTRANCES if each.name == "mount, uvicorn")
    delays: list[float] = []
    calls: list[float] = []
    with ExitStack() as stack:
        speaking, listening = (
            stack.enter_context(bench.serving(mount, **variables)) for _ in range(2)
        )
        (session,) = open_sessions(listening.port, 1)
        stream = IdleStream(listening.port, session)
        stack.callback(stream.close)
        connection = http.client.HTTPConnection(HOST, speaking.port, timeout=20)
        stack.callback(connection.close)
        for _ in range(number + 2):
            # Anywhere between two looks, so that polling is not met always at the same moment.
            time.sleep(random.uniform(0.02, POLL_SECONDS if not variables else 0.1))
            begun = time.perf_counter()
            _announce(connection)
            calls.append(time.perf_counter() - begun)
            delays.append(stream.wait_for(HEARD) - begun)
    return {
        "how": how,
        "number": number,
        # The first ones wait for what is done once.
        "median": round(percentile(delays[2:], 0.5) * 1e3, 2),
        "late": round(percentile(delays[2:], 0.99) * 1e3, 2),
        "call": round(percentile(calls[2:], 0.5) * 1e3, 2),
    }


def _announce(connection: http.client.HTTPConnection) -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": "announce", "arguments": {}, "_meta": meta}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = HEADERS | headers_of(MODERN, "tools/call", "announce")
    connection.request("POST", "/mcp", json.dumps(message), headers)
    got = connection.getresponse()
    headers = {name.lower(): value for name, value in got.getheaders()}
    # A call that lasts, as the first one may, is answered with events.
    *_, answer = Response(Head(got.status, headers), got.read()).messages()
    if answer["result"]["content"][0]["text"] != "told":
        raise Refused(f"announce: {answer}")
