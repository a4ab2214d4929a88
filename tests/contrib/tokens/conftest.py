from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.http import HttpRequest
from django.test import Client, RequestFactory

from django_mcp.contrib.tokens.models import Token


@pytest.fixture
def anna(db, django_user_model):
    return django_user_model.objects.create_user("anna")


@pytest.fixture
def issued(anna) -> tuple[Token, str]:
    return Token.objects.issue(anna, name="laptop")


@pytest.fixture
def token(issued) -> Token:
    return issued[0]


@pytest.fixture
def secret(issued) -> str:
    return issued[1]


@pytest.fixture
def request_with(rf: RequestFactory) -> Callable[..., HttpRequest]:
    """Build the request that the gate hands to AUTH: a header, and the name of the server."""

    def build(secret: str, *, server: str = "shop", scheme: str = "Bearer") -> HttpRequest:
        headers: dict[str, Any] = {"Authorization": f"{scheme} {secret}"}
        request = rf.post("/mcp", headers=headers)
        request.mcp_server = server
        return request

    return build


@pytest.fixture
def clerk(db, django_user_model) -> Client:
    """A member of staff who may do everything with tokens in the admin, and nothing else."""
    user = django_user_model.objects.create_user("clerk", is_staff=True)
    user.user_permissions.set(
        Permission.objects.filter(content_type__app_label="django_mcp_tokens")
    )
    client = Client()
    client.force_login(user)
    return client
