from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.core.management import CommandError, call_command

ROOT = Path(__file__).parents[2]
SECONDS = 60
VERSION = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Demo:
    """`manage.py demo` in a process of its own."""

    def __init__(self, directory: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.site = f"http://127.0.0.1:{free.getsockname()[1]}"
        self.log = directory / "log"
        self.environment = os.environ | {
            "PORT": self.site.rsplit(":", 1)[1],
            "DATABASE_URL": f"sqlite:///{directory / 'desk.sqlite3'}",
            "DJANGO_DEBUG": "1",
            "PYTHONUNBUFFERED": "1",
        }
        # Whoever runs these tests may have chosen another password, settings or reloader state.
        for name in ("DEMO_PASSWORD", "DJANGO_SETTINGS_MODULE", "RUN_MAIN"):
            self.environment.pop(name, None)

    @property
    def output(self) -> str:
        return self.log.read_text()

    def start(self) -> subprocess.Popen[bytes]:
        with self.log.open("wb") as log:
            return subprocess.Popen(
                [sys.executable, "manage.py", "demo"],
                cwd=ROOT,
                env=self.environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # the reloader's child is ended with it
            )

    def wait(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + SECONDS
        while True:
            assert process.poll() is None, self.output
            assert time.monotonic() < deadline, self.output
            try:
                httpx.get(self.site, timeout=1)
            except httpx.TransportError:
                time.sleep(0.1)
            else:
                return

    def call(self, tool: str, arguments: dict[str, Any], **headers: str) -> httpx.Response:
        params = {"name": tool, "arguments": arguments, "_meta": META}
        return httpx.post(
            f"{self.site}/mcp",
            json={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params},
            headers={
                "Accept": "application/json, text/event-stream",
                "MCP-Protocol-Version": VERSION,
                "Mcp-Method": "tools/call",
                "Mcp-Name": tool,
                **{name.replace("_", "-"): value for name, value in headers.items()},
            },
        )


@pytest.fixture(scope="module")
def demo(tmp_path_factory) -> Iterator[Demo]:
    demo = Demo(tmp_path_factory.mktemp("demo"))
    process = demo.start()
    try:
        demo.wait(process)
        yield demo
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=SECONDS)


@pytest.mark.processes
class TestDemo:
    def test_says_how_to_connect(self, demo):
        lines = demo.output.splitlines()
        assert f"Endpoint: {demo.site}/mcp" in lines
        assert f"Admin:    {demo.site}/admin/   login admin, password demo" in lines
        assert f"claude mcp add --transport http support {demo.site}/mcp" in lines
        assert demo.output.count("Endpoint:") == 1  # and not again by the reloader's child

    def test_has_seeded_the_desk(self, demo):
        assert "Wrote 3000 tickets" in demo.output

    def test_serves_the_demo_agent_without_a_token(self, demo):
        response = demo.call("search_tickets", {"assignee": "me", "limit": 1})
        assert response.status_code == 200
        result = response.json()["result"]["structuredContent"]
        assert result["found"] > 0
        assert result["tickets"][0]["assignee"] == "agent"

    @pytest.mark.parametrize(
        "headers", [{"X_Forwarded_For": "192.0.2.7"}, {"Authorization": "Bearer wrong"}]
    )
    def test_refuses_others(self, demo, headers):
        response = demo.call("search_tickets", {}, **headers)
        assert response.status_code == 401
        assert "error" in response.json()

    def test_serves_the_endpoint_through_the_mount(self, demo):
        # Django's middleware adds the header to whatever it sees.
        assert "X-Frame-Options" in httpx.get(demo.site).headers
        assert "X-Frame-Options" not in demo.call("search_tickets", {}).headers

    def test_serves_the_admin_with_its_styles(self, demo):
        assert httpx.get(f"{demo.site}/admin/login/").status_code == 200
        assert httpx.get(f"{demo.site}/static/admin/css/base.css").status_code == 200


def test_port_must_be_free(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setenv("PORT", str(port))
        with pytest.raises(CommandError, match=f"Cannot listen on port {port}"):
            call_command("demo")


@pytest.mark.parametrize("port", ["http", "0", "65536", "-1"])
def test_port_must_be_one(monkeypatch, port):
    monkeypatch.setenv("PORT", port)
    with pytest.raises(CommandError, match="number from 1 to 65535"):
        call_command("demo")
