"""SQLite and memory by default; real services by DATABASE_URL and REDIS_URL."""

from __future__ import annotations

import os
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from example_project import environment

BASE_DIR = Path(__file__).resolve().parent.parent

# On, because this is a demonstration that starts without a question. Anything that is
# reachable from elsewhere sets DJANGO_DEBUG=0, which also ends the access without a token.
DEBUG = environment.flag("DJANGO_DEBUG", default=True)

SECRET_KEY = os.environ.get("DJANGO_SECRET_KEY", "")
if not SECRET_KEY:
    if not DEBUG:
        raise ImproperlyConfigured("Set DJANGO_SECRET_KEY; only DJANGO_DEBUG=1 does without.")
    SECRET_KEY = "insecure-and-public-for-the-demonstration-only"

ALLOWED_HOSTS = environment.words(
    "DJANGO_ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"]
)

INSTALLED_APPS = [
    "daphne",  # first: it makes runserver speak ASGI
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "oauth2_provider",
    "rest_framework",
    "django_mcp",
    "django_mcp.contrib.oauth",
    "django_mcp.contrib.tokens",
    "example_project.support",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
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
            ],
        },
    },
]

ROOT_URLCONF = "example_project.urls"
LOGIN_URL = "login"
ASGI_APPLICATION = "example_project.asgi.application"
WSGI_APPLICATION = "example_project.wsgi.application"

DATABASES = {
    "default": environment.database(
        os.environ.get("DATABASE_URL") or "sqlite:///db.sqlite3", base=BASE_DIR
    ),
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL = os.environ.get("REDIS_URL", "")
CACHES = environment.caches(REDIS_URL)
CHANNEL_LAYERS = environment.channel_layers(REDIS_URL)

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True

STATIC_URL = "static/"
STATIC_ROOT = BASE_DIR / "staticfiles"

# Where people reach the desk: what tokens are issued by, and for.
SITE = os.environ.get("DJANGO_SITE") or f"http://127.0.0.1:{os.environ.get('PORT') or 8000}"

DJANGO_MCP = {
    "AUTH": "example_project.support.auth.demo_auth",
    "BASE_URL": SITE,
    "AUTHORIZATION_SERVERS": SITE,
    "SCOPES": {
        "desk:read": "Tickets, customers and articles",
        "desk:write": "Tickets: answer, assign, close and refund them",
    },
    "BASE_SCOPES": ["desk:read"],
    "READ_ONLY_SCOPES": ["desk:read"],
    "SCOPE_HIERARCHY": {"desk:write": ["desk:read"]},
    "PATH": "mcp",
    "SERVER_NAME": "support-desk",
    "SERVER_VERSION": "1.0",
    "INSTRUCTIONS": (
        "The support desk of Harbour, a maker of shop software. Search tickets before you read "
        "one, read a ticket before you answer it, and look for a knowledge base article to cite. "
        "Public replies reach the customer at once; internal notes do not. "
        "The resource desk://guide holds the house rules."
    ),
}

# As `manage.py mcp oauth-setup` prints it; on a machine without Internet set DJANGO_FETCHES=0.
OAUTH2_PROVIDER = {
    "OIDC_ISS_ENDPOINT": SITE,
    "OAUTH2_VALIDATOR_CLASS": "django_mcp.contrib.oauth.dot.validator.Validator",
    "SCOPES_BACKEND_CLASS": "django_mcp.contrib.oauth.dot.site.Scopes",
    "DCR_ENABLED": True,
    "DCR_REGISTRATION_PERMISSION_CLASSES": ["oauth2_provider.dcr.AllowAllDCRPermission"],
    "CIMD_ENABLED": environment.flag("DJANGO_FETCHES", default=True),
    "CIMD_REGISTRATION_PERMISSION_CLASSES": [
        "django_mcp.contrib.oauth.dot.documents.OnConsentPage",
    ],
    "CIMD_METADATA_FETCHER": "django_mcp.contrib.oauth.dot.documents.Fetcher",
    "ALLOWED_REDIRECT_URI_SCHEMES": ["https", "http", "cursor", "vscode", "vscode-insiders"],
    "ALLOW_LOCALHOST_LOOPBACK": True,
    "ACCESS_TOKEN_EXPIRE_SECONDS": 60 * 60,
    "REFRESH_TOKEN_EXPIRE_SECONDS": 30 * 24 * 60 * 60,
    "REFRESH_TOKEN_REUSE_PROTECTION": True,
    "COMPLIANT_BCP_RFC9700_TOKEN_STORAGE": True,
    "COMPLIANT_BCP_RFC9700_IMPLICIT_GRANT": True,
    "COMPLIANT_BCP_RFC9700_PASSWORD_GRANT": True,
    "COMPLIANT_BCP_RFC9700_PKCE_METHOD": True,
    "COMPLIANT_BCP_RFC9700_ACCESS_TOKEN_TRANSPORT": True,
    "COMPLIANT_BCP_RFC9700_AUTHZ_RESPONSE_ISS": True,
}
