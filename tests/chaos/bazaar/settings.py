"""Settings of the sabotaged site: everything short, so that much can happen in little time."""

from __future__ import annotations

import os
import time
from datetime import timedelta

from django.utils import timezone

from tests.support.databases import database_from_url

OFFSET = float(os.environ.get("CLOCK_OFFSET") or 0)
"""By how many seconds this process's clock is wrong. Its monotonic clock is right."""
if OFFSET:
    _right, _right_now = time.time, timezone.now
    time.time = lambda: _right() + OFFSET
    timezone.now = lambda: _right_now() + timedelta(seconds=OFFSET)

SECRET_KEY = "insecure-and-public-for-the-tests-only"
ALLOWED_HOSTS = ["127.0.0.1"]
INSTALLED_APPS = ["django.contrib.auth", "django.contrib.contenttypes", "django_mcp", "bazaar"]
ROOT_URLCONF = "bazaar.urls"
DATABASES = {"default": database_from_url(os.environ["DATABASE_URL"])}
DATABASES["default"] |= {"CONN_MAX_AGE": 60, "CONN_HEALTH_CHECKS": True}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
if os.environ.get("LAYER"):
    CHANNEL_LAYERS = {"default": {"BACKEND": os.environ["LAYER"]}}
    if os.environ.get("REDIS_URL"):
        CHANNEL_LAYERS["default"]["CONFIG"] = {"hosts": [os.environ["REDIS_URL"]]}
DJANGO_MCP = {
    "AUTH": "django_mcp.auth.public",
    "SERVER_NAME": "bazaar",
    "LEASE_SECONDS": float(os.environ.get("LEASE") or 15),
    # Calls become streams early, and streams end early, for their clients to come back.
    "STREAM_AFTER_SECONDS": 0.4,
    "STREAM_MAX_AGE_SECONDS": 6,
    "MAX_SESSIONS": 1_000_000,
    "RATE_LIMIT": None,  # all clients are one anonymous caller
    # In half of the legs sessions are remembered; where there is Redis, others are told to forget.
    "SESSION_CACHE_SECONDS": 1 if os.environ.get("LAYER") else 0,
}
