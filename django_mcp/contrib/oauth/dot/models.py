"""The models of django-oauth-toolkit that the site has chosen."""

from __future__ import annotations

from typing import Any

from django.apps import apps

if not apps.is_installed("oauth2_provider") or not apps.is_installed("django_mcp.contrib.oauth"):
    # Importing the models would fail with a remark on app labels. The system check that tries
    # this import passes the cure on.
    raise ImportError(
        'Add "oauth2_provider" and "django_mcp.contrib.oauth" to INSTALLED_APPS, and run '
        '"manage.py mcp oauth-setup" for what else is to be set.'
    )

from oauth2_provider.models import (
    get_access_token_model,
    get_application_model,
    get_grant_model,
    get_refresh_token_model,
)

Application: Any = get_application_model()
Grant: Any = get_grant_model()
AccessToken: Any = get_access_token_model()
RefreshToken: Any = get_refresh_token_model()


def is_active(user: Any) -> bool:
    """Return whether a user may act at all; as Django's ModelBackend has it."""
    return user is not None and getattr(user, "is_active", True)
