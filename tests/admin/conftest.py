from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import Permission
from django.test import Client


@pytest.fixture
def staff(db, django_user_model) -> Callable[..., Client]:
    """Log in a member of staff who has the permissions, and nothing else."""

    def log_in(*codenames: str) -> Client:
        user = django_user_model.objects.create_user("clerk", is_staff=True)
        user.user_permissions.set(
            Permission.objects.filter(content_type__app_label="django_mcp", codename__in=codenames)
        )
        client = Client()
        client.force_login(user)
        return client

    return log_in


@pytest.fixture
def anna(db, django_user_model):
    return django_user_model.objects.create_user("anna")
