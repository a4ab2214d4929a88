"""Tools that are made of a model: the customers, for agents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django_mcp import Context, ModelTools, mcp
from example_project.support.forms import CustomerForm
from example_project.support.models import Customer

if TYPE_CHECKING:
    from django.db.models import QuerySet


@mcp.model(Customer)
class CustomerTools(ModelTools):
    """Those who write to the desk, with their tickets in the result of get_customer."""

    fields = ["id", "name", "email", "company", "created"]
    list_fields = ["id", "name", "email", "company"]
    search_fields = ["name", "email", "company"]
    filters = {"email": ["iexact"], "created": ["gte"]}
    ordering_fields = ["name"]
    related = {"tickets": ["id", "subject", "status", "created"]}
    create = update = CustomerForm
    tool_options = {
        "get": {
            "title": "Read a customer",
            "description": "Read one of the customers, with the last 50 of their tickets.",
        },
        "create": {
            "description": "Add somebody who writes to the desk. Look first whether the address is "
            "known.",
        },
    }

    def get_related_queryset(
        self, ctx: Context, name: str, queryset: QuerySet[Any]
    ) -> QuerySet[Any]:
        """The tickets that the caller may see: the one place that says it is the queryset."""
        visible: QuerySet[Any] = queryset.visible_to(ctx.user)  # type: ignore[attr-defined]
        return visible
