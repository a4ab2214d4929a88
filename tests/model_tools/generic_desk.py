"""An admin site with tickets, and clients of the five tools for its models."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import User

from django_mcp import MCPServer
from django_mcp.testing import MCPClient

from .desk.models import Comment, Customer, Device, Ticket
from .support import MODERN, user_with


class CommentInline(admin.TabularInline):
    model = Comment
    fields = ["author", "text"]


class TicketAdmin(admin.ModelAdmin):
    list_display = ["number", "subject", "status", "customer", "late"]
    fields = ["number", "subject", "status", "priority", "customer", "tags", "due", "price"]
    search_fields = ["number", "^subject"]
    list_filter = ["status", "customer", "due"]
    inlines = [CommentInline]
    actions = ["close", "publish"]

    @admin.display(boolean=True)
    def late(self, ticket):
        return ticket.is_late

    @admin.action(description="Close the tickets", permissions=["change"])
    def close(self, request, queryset):
        self.message_user(request, f"{queryset.update(status='closed')} closed")

    def publish(self, request, queryset):
        queryset.update(is_public=True)


class CustomerAdmin(admin.ModelAdmin):
    fields = ["name"]


site = admin.AdminSite("desk")
site.register(Ticket, TicketAdmin)
site.register(Customer, CustomerAdmin)
site.register(Device, fields=["name"])
site.register(User, UserAdmin)

TICKETS = {"write": {"desk.Ticket": ["create", "update", "delete"]}, "actions": ["close"]}
"""Options with which tickets can be changed, and nothing else."""


def client_for(user: Any, options: Any = None, models: Any = ("desk.*",), **more: Any) -> MCPClient:
    server = MCPServer("desk")
    server.admin_site(site, models=models, **(options or {}))
    more.setdefault("revision", MODERN)
    return MCPClient(server, **more).as_user(user)


def staff(*codenames: str, **more: Any) -> Any:
    return user_with(*codenames, is_staff=True, **more)


def superuser() -> Any:
    return User.objects.create_superuser("root")


def names(client: MCPClient) -> list[str]:
    return [tool["name"] for tool in client.list_tools()]
