"""Where nothing stays running: each request has a process of its own, as under CGI."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.support.messages import (
    HEADERS,
    INITIALIZED,
    encoded,
    modern,
    opening,
    request,
    tool_call,
)
from tests.support.servers import CONFORMANCE, running_servers

from .serving import HERE

ONCE = (
    "from wsgiref.handlers import CGIHandler; "
    "from fixture.wsgi import application; "
    "CGIHandler().run(application)"
)
BOUND = 60

Answer = tuple[int, str, Any]
"""Status, session and message of an answer."""


class Site:
    """A site of which a process is made for each request."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self.session = ""

    def send(self, message: Any, method: str = "POST", **headers: str) -> Answer:
        """Send a message; return what is answered, of a stream its last message."""
        body = encoded(message)
        sent = {**HEADERS, "Host": "127.0.0.1", **headers}
        if self.session:
            sent["Mcp-Session-Id"] = self.session
        variables = {
            "REQUEST_METHOD": method,
            "SCRIPT_NAME": "",
            "PATH_INFO": "/mcp",
            "SERVER_NAME": "127.0.0.1",
            "SERVER_PORT": "80",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "CONTENT_TYPE": sent.pop("Content-Type"),
            "CONTENT_LENGTH": str(len(body)),
            **{f"HTTP_{name.upper().replace('-', '_')}": text for name, text in sent.items()},
        }
        done = subprocess.run(
            [sys.executable, "-c", ONCE],
            cwd=CONFORMANCE,
            env={**self._environment, **variables},
            input=body,
            capture_output=True,
            timeout=BOUND,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()
        head, _, rest = done.stdout.partition(b"\r\n\r\n")
        lines = (line.partition(": ") for line in head.decode().splitlines())
        found = {name.lower(): text for name, _, text in lines}
        if found.get("content-type") == "text/event-stream":
            rest = rest.rstrip().rpartition(b"\ndata: ")[2]
        status = int(found["status"].split()[0])
        return status, found.get("mcp-session-id", ""), json.loads(rest) if rest else None

    def open(self, revision: str) -> None:
        """Open a session."""
        _, self.session, _ = self.send(request("initialize", 0, **opening(revision)))
        self.send(INITIALIZED)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    gates = str(tmp_path_factory.mktemp("gates"))
    variables = {"GATES": gates, "WSGI_STREAMS": "4"}
    with running_servers([], settings="shop.settings", path=HERE, variables=variables) as served:
        yield served[1]


@pytest.mark.parametrize("tool", ["work", "awork", "speak", "aspeak"])
def test_a_session_goes_on_from_process_to_process(environment, tool):
    site = Site(environment)
    site.open("2025-11-25")
    status, _, answer = site.send(tool_call(tool, 7, value="done"))
    assert (status, answer["id"]) == (200, 7)
    assert answer["result"]["content"][0]["text"] == "done"
    assert site.send(None, "DELETE")[0] in (200, 204)
    assert site.send(tool_call(tool, 8, value="done"))[0] == 404


def test_a_call_without_a_session(environment):
    message, headers = modern("tools/call", 5, name="aspeak", arguments={"value": "done"})
    status, _, answer = Site(environment).send(message, **headers)
    assert (status, answer["id"]) == (200, 5)
    assert answer["result"]["content"][0]["text"] == "done"


def test_calls_are_counted_together(environment):
    """A rate that is not said to be `per process`."""
    site = Site({**environment, "RATE": "2/h"})
    site.open("2025-11-25")
    statuses = [site.send(tool_call("work", 1, value="x"))[0] for _ in range(3)]
    assert statuses == [200, 200, 429]
