"""The site with django-tenants: a schema for each tenant, in PostgreSQL."""

from __future__ import annotations

from django.core.exceptions import ImproperlyConfigured

from tests.settings import DATABASES as GIVEN
from tests.settings import INSTALLED_APPS as ALL
from tests.settings import MIDDLEWARE as REST
from tests.tenants.settings import *  # noqa: F403
from tests.tenants.settings import DJANGO_MCP as COMMON
from tests.tenants.settings import NOT_HERE

if not GIVEN["default"]["ENGINE"].endswith("postgresql"):
    raise ImproperlyConfigured("Schemas are PostgreSQL's: set DATABASE_URL to such a database.")
DATABASES = {"default": {**GIVEN["default"], "ENGINE": "django_tenants.postgresql_backend"}}
DATABASE_ROUTERS = ["django_tenants.routers.TenantSyncRouter"]
SHARED_APPS = ["django_tenants", "tests.tenants.companies", "django.contrib.contenttypes"]
TENANT_APPS = [*(each for each in ALL if each not in NOT_HERE), "tests.tenants.desk"]
TENANT_APPS += ["oauth2_provider"]
INSTALLED_APPS = [*SHARED_APPS, *(each for each in TENANT_APPS if each not in SHARED_APPS)]
TENANT_MODEL = "companies.Company"
TENANT_DOMAIN_MODEL = "companies.Domain"
MIDDLEWARE = ["django_tenants.middleware.main.TenantMainMiddleware", *REST]
DJANGO_MCP = {**COMMON, "PARTITION": "django_mcp.contrib.tenants.TenantSchemas"}
