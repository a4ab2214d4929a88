from __future__ import annotations

import socket
from typing import Any

import httpx
import pytest
from django.core.management import CommandError, call_command

from .demo import Demo

VERSION = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def call(demo: Demo, tool: str, arguments: dict[str, Any], **headers: str) -> httpx.Response:
    params = {"name": tool, "arguments": arguments, "_meta": META}
    return httpx.post(
        f"{demo.site}/mcp",
        json={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params},
        headers={
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": VERSION,
            "Mcp-Method": "tools/call",
            "Mcp-Name": tool,
            **{name.replace("_", "-"): value for name, value in headers.items()},
        },
    )


@pytest.mark.processes
class TestDemo:
    def test_says_how_to_connect(self, demo):
        lines = demo.output.splitlines()
        assert f"Endpoint: {demo.site}/mcp" in lines
        assert f"Admin:    {demo.site}/admin/   login admin, password demo" in lines
        assert f"claude mcp add --transport http support {demo.site}/mcp" in lines

    def test_has_seeded_the_desk(self, demo):
        assert "Wrote 3000 tickets" in demo.output

    def test_starts_again_with_the_same_desk(self, demo, tmp_path):
        again = Demo(tmp_path, demo.database_url)
        with again.serving():
            # Once, and not again by the reloader's child.
            assert again.output.count(f"Endpoint: {again.site}/mcp") == 1
            assert "Wrote" not in again.output
            assert call(again, "search_tickets", {}).status_code == 200

    def test_serves_the_demo_agent_without_a_token(self, demo):
        response = call(demo, "search_tickets", {"assignee": "me", "limit": 1})
        assert response.status_code == 200
        result = response.json()["result"]["structuredContent"]
        assert result["found"] > 0
        assert result["tickets"][0]["assignee"] == "agent"

    @pytest.mark.parametrize(
        "headers", [{"X_Forwarded_For": "192.0.2.7"}, {"Authorization": "Bearer wrong"}]
    )
    def test_refuses_others(self, demo, headers):
        response = call(demo, "search_tickets", {}, **headers)
        assert response.status_code == 401
        assert "error" in response.json()

    def test_serves_the_endpoint_through_the_mount(self, demo):
        # Django's middleware adds the header to whatever it sees.
        assert "X-Frame-Options" in httpx.get(demo.site).headers
        assert "X-Frame-Options" not in call(demo, "search_tickets", {}).headers

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
