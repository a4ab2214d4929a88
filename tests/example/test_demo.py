from __future__ import annotations

import socket

import httpx
import pytest
from django.core.management import CommandError, call_command

from tests.support.caller import Caller
from tests.support.entrances import ServerEntrance

from .demo import Demo


@pytest.fixture
def caller(demo: Demo) -> Caller:
    return Caller(ServerEntrance(demo.site))


@pytest.mark.processes
class TestDemo:
    def test_says_how_to_connect(self, demo):
        lines = demo.output.splitlines()
        assert f"Endpoint: {demo.site}/mcp" in lines
        assert f"Admin:    {demo.site}/admin/   login admin, password demo" in lines
        assert f"claude mcp add --transport http support {demo.site}/mcp" in lines
        login = f"claude mcp add --transport http support-login {demo.site}/login/mcp"
        assert login in lines

    def test_lets_clients_log_in(self, demo):
        endpoint = f"{demo.site}/login/mcp"
        refused = Caller(ServerEntrance(demo.site), path="/login/mcp").tool("search_tickets")
        assert refused.status == 401
        about = httpx.get(f"{demo.site}/.well-known/oauth-protected-resource/login/mcp").json()
        assert (about["resource"], about["authorization_servers"]) == (endpoint, [demo.site])
        server = httpx.get(f"{demo.site}/.well-known/oauth-authorization-server").json()
        assert server["issuer"] == demo.site
        assert httpx.get(f"{demo.site}/login/?next=/o/authorize/").status_code == 200

    def test_has_seeded_the_desk(self, demo):
        assert "Wrote 3000 tickets" in demo.output

    def test_starts_again_with_the_same_desk(self, demo, tmp_path):
        again = Demo(tmp_path, demo.database_url)
        with again.serving():
            # Once, and not again by the reloader's child.
            assert again.output.count(f"Endpoint: {again.site}/mcp") == 1
            assert "Wrote" not in again.output
            assert Caller(ServerEntrance(again.site)).tool("search_tickets").status == 200

    def test_serves_the_demo_agent_without_a_token(self, caller):
        answer = caller.tool("search_tickets", assignee="me", limit=1)
        assert answer.status == 200
        result = answer.result["structuredContent"]
        assert result["found"] > 0
        assert result["tickets"][0]["assignee"] == "agent"

    @pytest.mark.parametrize(
        "headers", [{"X_Forwarded_For": "192.0.2.7"}, {"Authorization": "Bearer wrong"}]
    )
    def test_refuses_others(self, caller, headers):
        answer = caller.with_headers(**headers).tool("search_tickets")
        assert answer.status == 401
        assert answer.error

    def test_serves_the_endpoint_through_the_mount(self, demo, caller):
        # Django's middleware adds the header to whatever it sees.
        assert "X-Frame-Options" in httpx.get(demo.site).headers
        assert "X-Frame-Options" not in caller.tool("search_tickets").headers

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
