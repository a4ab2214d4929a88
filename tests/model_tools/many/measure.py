"""Prints, as JSON, what the list of tools of a site with thirty models takes."""

from __future__ import annotations

import json
import os
from typing import Any

import django

os.environ["DJANGO_SETTINGS_MODULE"] = "tests.model_tools.many.settings"
django.setup()

from django.core.management import call_command  # noqa: E402

call_command("migrate", verbosity=0, run_syncdb=True)

from django.contrib.admin import AdminSite, ModelAdmin  # noqa: E402
from django.contrib.auth.models import User  # noqa: E402

from django_mcp import MCPServer, ModelTools  # noqa: E402
from django_mcp.testing import MCPClient  # noqa: E402
from tests.model_tools.many.models import MODELS  # noqa: E402


def tools_of(model: Any) -> Any:
    options = {
        "fields": ["id", "name", "status", "created", "owner"],
        "search_fields": ["name"],
        "filters": ["status", "owner"],
    }
    return type(f"{model.__name__}Tools", (ModelTools,), options)


class RecordAdmin(ModelAdmin):
    list_display = ["name", "status", "created", "owner"]
    search_fields = ["name"]
    list_filter = ["status", "owner"]
    actions = ["finish"]

    def finish(self, request: Any, queryset: Any) -> None:
        """Finish."""
        queryset.update(status="done")


def each_by_tools() -> MCPServer:
    server = MCPServer("each")
    for model in MODELS:
        server.model(model)(tools_of(model))
    return server


def each_by_admin() -> MCPServer:
    server, site = MCPServer("admin"), site_with_all()
    for model in MODELS:
        server.admin(model, site=site)
    return server


def all_by_five(**options: Any) -> MCPServer:
    server = MCPServer("five")
    options.setdefault("models", ["many.*"])
    server.admin_site(site_with_all(), **options)
    return server


def site_with_all() -> AdminSite:
    site = AdminSite()
    for model in MODELS:
        site.register(model, RecordAdmin)
    return site


def listed(server: MCPServer) -> dict[str, int]:
    """Return how many tools are listed, of how many characters as they are sent."""
    client = MCPClient(server).as_user(User.objects.get())
    tools = client.list_tools()
    text = json.dumps(tools, ensure_ascii=False, separators=(",", ":"))
    return {"tools": len(tools), "characters": len(text)}


User.objects.create_superuser("root")
TO_WRITE = {"write": ["create", "update", "delete"], "actions": ["finish"]}
SERVERS = {
    "each": each_by_tools(),
    "each admin": each_by_admin(),
    "five": all_by_five(),
    "five, to write": all_by_five(**TO_WRITE),
    "five of one": all_by_five(**TO_WRITE, models=["many.Order"]),
}
sizes = {name: listed(server) for name, server in SERVERS.items()}
client = MCPClient(SERVERS["five, to write"]).as_user(User.objects.get())
described = client.tool("describe_model", model="many.Order").assert_ok()
sizes["described"] = {"tools": 1, "characters": len(described.text)}
print(json.dumps(sizes))
