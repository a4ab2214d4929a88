"""Settings of the project that the workers serve."""

from __future__ import annotations

import os
import sys
from importlib import import_module

from tests.support.databases import database_from_url

SECRET_KEY = "insecure-and-public-for-the-tests-only"
ALLOWED_HOSTS = ["127.0.0.1"]
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django_mcp",
    "shop",
]
if os.environ.get("WATCHED"):
    # Developed, with a file that a test changes.
    INSTALLED_APPS.insert(0, "daphne")
    ASGI_APPLICATION = "fixture.asgi.application"
    sys.path.append(os.environ["SEARCHED"])
    import_module(os.environ["WATCHED"])
MIDDLEWARE = ["django.middleware.common.CommonMiddleware"]
ROOT_URLCONF = "shop.urls"
DATABASES = {"default": database_from_url(os.environ["DATABASE_URL"])}
# Created by Django's own means for test databases, under this very name.
DATABASES["default"]["TEST"] = {"NAME": DATABASES["default"]["NAME"]}
DATABASES["default"]["CONN_MAX_AGE"] = None
USE_TZ = True
if os.environ.get("LAYER"):
    CHANNEL_LAYERS = {
        "default": {
            "BACKEND": os.environ["LAYER"],
            "CONFIG": {"hosts": [os.environ.get("REDIS_URL") or "redis://127.0.0.1:6379/0"]},
        }
    }
CACHES = {"default": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}} | {
    name: {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": os.environ.get("REDIS_URL") or "redis://127.0.0.1:6379/0",
        "KEY_PREFIX": name,
    }
    for name in (os.environ.get("RATE_CACHE"), os.environ.get("SESSION_CACHE"))
    if name
}
DJANGO_MCP = {
    "AUTH": "django_mcp.auth.public",
    "SERVER_NAME": "shop",
    "RATE_LIMIT": os.environ.get("RATE", ""),
    "RATE_LIMIT_CACHE": os.environ.get("RATE_CACHE", ""),
    "SESSION_CACHE_SECONDS": float(os.environ.get("SESSION_CACHE_SECONDS") or 0),
    "SESSION_CACHE": os.environ.get("SESSION_CACHE", ""),
    "WORKER_THREADS": int(os.environ.get("WORKER_THREADS") or 16),
    "WRITE_TIMEOUT_SECONDS": float(os.environ.get("WRITE_TIMEOUT") or 60),
    "LEASE_SECONDS": float(os.environ.get("LEASE") or 15),
    "REPLAY_SECONDS": int(os.environ.get("REPLAY") or 300),
    "RETENTION_SECONDS": int(os.environ.get("RETENTION") or 7 * 24 * 60 * 60),
    "WSGI_STREAMS": int(os.environ.get("WSGI_STREAMS") or 0),
    "SHUTDOWN_SECONDS": float(os.environ.get("SHUTDOWN") or 8),
}
