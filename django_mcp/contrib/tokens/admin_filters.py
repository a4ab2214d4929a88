"""By what tokens are filtered in the admin, beside their columns."""

from __future__ import annotations

import json
from typing import Any, Final

from django.contrib import admin
from django.db import connections
from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from .choices import known_scopes, known_servers
from .models import State, Token

NOT_LIMITED: Final = "-"


class TokenStateFilter(admin.SimpleListFilter):
    """Filters by the state, which is computed rather than stored."""

    title = _("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Offer every state."""
        return list(State.choices)

    def queryset(self, request: HttpRequest, queryset: QuerySet[Token]) -> QuerySet[Token]:
        """Keep the tokens in the chosen state."""
        return queryset.filter(Q(state=self.value())) if self.value() else queryset


class ScopeFilter(admin.SimpleListFilter):
    """Filters by the scopes that tokens have been given."""

    title = _("scopes")
    parameter_name = "scope"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Offer the scopes that there are, if there are any."""
        known = [(each, each) for each in known_scopes()]
        return [(NOT_LIMITED, _("not limited")), *known] if known else []

    def queryset(self, request: HttpRequest, queryset: QuerySet[Token]) -> QuerySet[Token]:
        """Keep the tokens with the chosen scope."""
        scope = self.value()
        if scope == NOT_LIMITED:
            return queryset.filter(scopes__isnull=True)
        return having(queryset, "scopes", scope) if scope else queryset


class ServerFilter(admin.SimpleListFilter):
    """Filters by what tokens open."""

    title = _("server")
    parameter_name = "server"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Offer the servers, if there are several."""
        names = [server.name for server in known_servers()]
        return [(name, name) for name in names] if len(names) > 1 else []

    def queryset(self, request: HttpRequest, queryset: QuerySet[Token]) -> QuerySet[Token]:
        """Keep the tokens that open the chosen server, among others or all."""
        name = self.value()
        return having(queryset, "servers", name, or_is_empty=True) if name else queryset


def having(
    queryset: QuerySet[Token], column: str, name: str, *, or_is_empty: bool = False
) -> QuerySet[Token]:
    """Keep the rows whose list in the column has the name."""
    if connections[queryset.db].features.supports_json_field_contains:
        found = Q(**{f"{column}__contains": [name]})
    else:
        # SQLite has lists as text, as Python writes them. What it compares, it does in any case.
        queryset = queryset.alias(**{f"{column}_as_text": Cast(column, TextField())})
        found = Q(**{f"{column}_as_text__contains": json.dumps(name)})
    return queryset.filter(found | Q(**{column: []}) if or_is_empty else found)
