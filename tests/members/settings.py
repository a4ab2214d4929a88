"""Settings of a site with a user model of its own, for tests that run in a process of their own."""

from __future__ import annotations

from tests.settings import *  # noqa: F403
from tests.settings import INSTALLED_APPS as ALL

INSTALLED_APPS = [*(app for app in ALL if app != "django.contrib.admin"), "tests.members"]
AUTH_USER_MODEL = "members.Member"
