"""As a site would have it, but for the limits that would end the benchmark: see below."""

from __future__ import annotations

import os

from settings_base import *  # noqa: F403
from settings_base import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "django_mcp", "ours"]
ROOT_URLCONF = "django_mcp.urls"
DJANGO_MCP = {
    "AUTH": "django_mcp.auth.public",
    "SERVER_NAME": "bench",
    # One anonymous caller is everybody here, and there are more sessions than a site would allow.
    "RATE_LIMIT": "",
    "MAX_SESSIONS": 10_000_000,
    "MAX_STREAMS": 100_000,
    "SESSION_CACHE_SECONDS": float(os.environ.get("SESSION_CACHE_SECONDS") or 0),
}
if os.environ.get("REDIS_URL"):
    CHANNEL_LAYERS = {
        "default": {
            "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
            "CONFIG": {"hosts": [os.environ["REDIS_URL"]]},
        }
    }
