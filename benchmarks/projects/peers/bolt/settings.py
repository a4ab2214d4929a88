"""Settings for django-bolt."""

from __future__ import annotations

from settings_base import *  # noqa: F403
from settings_base import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "django_bolt"]
ROOT_URLCONF = "bare.urls"
BOLT_API = ["peers.bolt.api:api"]
