"""Settings of the project that the workers serve."""

from __future__ import annotations

import os

from tests.databases import database_from_url

SECRET_KEY = "insecure-and-public-for-the-tests-only"
ALLOWED_HOSTS = ["127.0.0.1"]
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django_mcp",
    "shop",
]
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
DJANGO_MCP = {
    "AUTH": "django_mcp.auth.public",
    "SERVER_NAME": "shop",
    "LANES": int(os.environ.get("LANES") or 16),
    "LEASE_SECONDS": float(os.environ.get("LEASE") or 30),
}
