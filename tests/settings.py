"""Settings of the test suite. ``DATABASE_URL`` chooses the database; SQLite without."""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.databases import database_from_url

BASE_DIR = Path(__file__).parent
SECRET_KEY = "for tests only"
DEBUG = False
ALLOWED_HOSTS = ["testserver", "localhost", "127.0.0.1", "[::1]"]
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
ROOT_URLCONF = "tests.site.urls"
DATABASES = {"default": database_from_url(os.environ.get("DATABASE_URL", ""))}
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django_mcp",
    "django_mcp.contrib.oauth",
    "django_mcp.contrib.tokens",
    "tests.site",
    "tests.model_tools.desk",
    "tests.tutorials.employees",
    "tests.tutorials.snippets",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DJANGO_MCP = {
    "AUTH": "django_mcp.auth.public",
    "SERVER_NAME": "test",
    "SERVER_VERSION": "1.0",
}
