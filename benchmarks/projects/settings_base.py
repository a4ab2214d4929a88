"""What the settings of all Django projects here have in common: production, and nothing beside.

No middleware: what it costs is the same for everybody, and it would hide the rest. A project says
`from settings_base import *` and adds its own.
"""

from __future__ import annotations

import os

from tests.support.databases import database_from_url

SECRET_KEY = "insecure-and-public-for-the-benchmark-only"
DEBUG = False
ALLOWED_HOSTS = ["127.0.0.1"]
USE_TZ = True
MIDDLEWARE: list[str] = []
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "shelf",
]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
DATABASES = {"default": database_from_url(os.environ.get("DATABASE_URL", ""))}
if os.environ.get("DATABASE_POOL"):
    DATABASES["default"]["OPTIONS"]["pool"] = True
else:
    DATABASES["default"]["CONN_MAX_AGE"] = None
LOGGING = {
    "version": 1,
    "disable_existing_loggers": True,
    "handlers": {"console": {"class": "logging.StreamHandler"}},
    "root": {"handlers": ["console"], "level": "WARNING"},
}
