"""Settings for django-mcpz."""

from __future__ import annotations

from settings_base import *  # noqa: F403
from settings_base import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "django_mcpz"]
ROOT_URLCONF = "peers.mcpz.urls"
