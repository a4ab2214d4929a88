"""The settings of a site that has just got the apps, and nothing else."""

from __future__ import annotations

from tests.settings import *  # noqa: F403
from tests.settings import INSTALLED_APPS as ALL

INSTALLED_APPS = [*ALL, "oauth2_provider"]
