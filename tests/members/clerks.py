"""Settings of a site of another kind: keys of users are UUIDs, and moments have no zone."""

from __future__ import annotations

from tests.settings import *  # noqa: F403
from tests.settings import INSTALLED_APPS as ALL

INSTALLED_APPS = [*ALL, "tests.members"]
AUTH_USER_MODEL = "members.Clerk"
USE_TZ = False
# Hours ahead of the clocks of databases, so that a moment taken for UTC is long over or far away.
TIME_ZONE = "Asia/Kolkata"
