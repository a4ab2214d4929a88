"""Tenants of django-tenants: ``PARTITION`` for sites whose tenants have schemas of PostgreSQL.

    DJANGO_MCP = {"PARTITION": "django_mcp.contrib.tenants.TenantSchemas", ...}

This package's apps belong in ``TENANT_APPS``. A request is its tenant's, whom the middleware has
found; at the mount it is found as the middleware would. Rows are in the tenant's schema, and what
a site's functions do there is, too. The public schema is no partition.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from django.conf import settings
from django.core.checks import CheckMessage, Error
from django.db import DatabaseError, connections
from django.db.models import signals
from django.http import HttpRequest
from django.utils.module_loading import import_string
from django_tenants.middleware.main import TenantMainMiddleware
from django_tenants.postgresql_backend.base import FakeTenant
from django_tenants.utils import (
    get_public_schema_name,
    get_tenant_database_alias,
    get_tenant_domain_model,
    get_tenant_model,
    get_tenant_types,
    has_multi_type_tenants,
)

from django_mcp.conf import get_settings
from django_mcp.partitions import Partitions
from django_mcp.store.database import has_loop

APP: Final = "django_mcp"
HOST_SECONDS: Final = 10.0
"""For so long the mount remembers which tenant a host is, unless this process learns otherwise."""
KNOWN_HOSTS: Final = 10_000
"""Hosts that are remembered at most."""
LOCK_WAIT: Final = "1s"
"""How long the bookkeeping waits for a lock, as while a tenant's tables are migrated: it is that
of all tenants, and tries again.
"""
SET_PATH: Final = (
    "SELECT set_config('search_path', %s, false), set_config('lock_timeout', %s, false)"
)
IN_ERROR: Final = 3
"""The state of a transaction that has failed, as libpq numbers them."""
APPS_HINT: Final = "Put it into TENANT_APPS and not into SHARED_APPS, and run migrate_schemas."
LOGINS: Final = (f"{APP}.contrib.oauth", "oauth2_provider")
"""Apps that together log clients in."""


class TenantSchemas(Partitions):
    """The schemas of tenants, which are named by their schemas."""

    def __init__(self) -> None:
        self._hosts: dict[tuple[str, str], tuple[float, Any]] = {}
        """Tenants by what a request says of its host, and until when, by the monotonic clock."""
        self._tenants: dict[str, Any] = {}
        """Those that have been met, by their schemas: site code may ask its connection for it."""
        for model in (get_tenant_model(), get_tenant_domain_model()):
            for signal in (signals.post_save, signals.post_delete):
                signal.connect(self._forget, sender=model)

    def recall(self, request: HttpRequest) -> str | None:
        """Return the schema of the tenant that the middleware has found, or the mount not long ago.

        Also that of the connection, as in tests, which no middleware precedes.
        """
        # Not by getattr(): at the mount, where there is none, that would build a whole request.
        tenant = vars(request).get("tenant")
        if tenant is not None:
            return self._schema_of(tenant)
        if schema := self.here():
            return schema
        until, tenant = self._hosts.get(_host_of(request), (float("-inf"), None))
        if tenant is None or time.monotonic() >= until:
            return None
        return self._found(request, tenant)

    def of_request(self, request: HttpRequest) -> str | None:
        """Return the schema of the tenant that the middleware would find, if that goes by the
        host, and the tenant has the URLs of ``ROOT_URLCONF``.
        """
        if "tenant" in vars(request):
            return None  # the public one
        middleware = _middleware()
        if middleware is None:
            return None
        key, domains = _host_of(request), get_tenant_domain_model()
        with _moved(FakeTenant(get_public_schema_name())):
            try:
                host = middleware.hostname_from_request(request)
                tenant = middleware.get_tenant(domains, host)
            except domains.DoesNotExist:
                return None
        tenant.domain_url = host
        if self._schema_of(tenant) is None or not _has_root_urls(tenant):
            return None
        if len(self._hosts) >= KNOWN_HOSTS:
            self._hosts.clear()
        self._hosts[key] = (time.monotonic() + HOST_SECONDS, tenant)
        return self._found(request, tenant)

    def all(self) -> Iterable[str]:
        """Return the schemas of all tenants that have this app."""
        rows = get_tenant_model().objects.exclude(schema_name=get_public_schema_name())
        with _moved(FakeTenant(get_public_schema_name())):
            if not has_multi_type_tenants():
                return list(rows.order_by("pk").values_list("schema_name", flat=True))
            return [each.schema_name for each in rows.order_by("pk") if _has_app(each)]

    @contextmanager
    def enter(self, partition: str) -> Iterator[None]:
        """Set the tenant of the present thread's connection, as ``tenant_context`` does."""
        connection: Any = connections[get_tenant_database_alias()]
        before = connection.tenant
        if connection.schema_name == partition:
            yield
            return
        connection.set_tenant(self._tenants.get(partition) or FakeTenant(partition))
        try:
            yield
        finally:
            connection.set_tenant(before)

    @contextmanager
    def enter_for_bookkeeping(self, partition: str) -> Iterator[None]:
        """Set the path by one statement, and only if it is another one than before.

        django-tenants sets it before each statement, and forgets the content types of the whole
        process, which is nothing to do many times a second.
        """
        connection: Any = connections[get_tenant_database_alias()]
        _set_path_once(connection)
        with _moved(FakeTenant(partition), forgets_path=False):
            yield

    def here(self) -> str:
        """Return the schema of the present thread's connection, unless it is the public one."""
        if has_loop():
            return ""
        schema = getattr(connections[get_tenant_database_alias()], "schema_name", "")
        return "" if schema == get_public_schema_name() else str(schema or "")

    def middleware(self) -> Collection[str]:
        """Return the middleware that finds tenants by host."""
        found = _middleware_path()
        return () if found is None else (found,)

    def check(self) -> Iterable[CheckMessage]:
        """Check where this app is installed, and which database its rows are in."""
        shared, for_tenants = _apps_lists()
        for app in _apps_with_rows_of_users():
            if not any(_named(app, apps) for apps in for_tenants):
                message = f"{app!r} is not in TENANT_APPS, so that tenants have none of its tables."
                yield Error(message, hint=APPS_HINT, id="django_mcp.E021")
            if _named(app, shared):
                message = (
                    f"{app!r} is in SHARED_APPS: its rows have keys to users, whom the public "
                    "schema need not have, and a tenant without tables would use those there."
                )
                yield Error(message, hint=APPS_HINT, id="django_mcp.E021")
        if get_settings().database != get_tenant_database_alias():
            message = 'DJANGO_MCP["DATABASE"] is not the database with the tenants\' schemas.'
            hint = f"Leave it out, or name {get_tenant_database_alias()!r}."
            yield Error(message, hint=hint, id="django_mcp.E022")

    def _schema_of(self, tenant: Any) -> str | None:
        """Return the schema of a tenant; ``None`` for the public one."""
        schema: str = tenant.schema_name
        if schema == get_public_schema_name():
            return None
        self._tenants[schema] = tenant
        return schema

    def _found(self, request: Any, tenant: Any) -> str | None:
        # As the middleware has it. Requests share no instance: functions may change theirs.
        request.tenant = copy.copy(tenant)
        return self._schema_of(request.tenant)

    def _forget(self, **kwargs: Any) -> None:
        """Remember no host any more: a domain or a tenant has changed."""
        self._hosts.clear()


def _host_of(request: HttpRequest) -> tuple[str, str]:
    """Return what tells hosts apart, without making Django's whole request of the mount's."""
    sent = request.headers.get
    forwarded = sent("X-Forwarded-Host") if settings.USE_X_FORWARDED_HOST else None
    return forwarded or "", sent("Host") or ""


def _middleware_path() -> str | None:
    """Return the middleware of the site that finds the tenant by the host alone."""
    for path in settings.MIDDLEWARE:
        found: Any = import_string(path)
        if isinstance(found, type) and issubclass(found, TenantMainMiddleware):
            # One that goes by something else is Django's to run: it meets the view.
            given = [
                getattr(each, "process_request", None) for each in (found, TenantMainMiddleware)
            ]
            return path if given[0] is given[1] else None
    return None


def _middleware() -> Any:
    path = _middleware_path()
    return None if path is None else import_string(path)(lambda request: None)


def _has_root_urls(tenant: Any) -> bool:
    """Return whether the mount, which goes by ``ROOT_URLCONF``, has looked at the right URLs."""
    if not has_multi_type_tenants():
        return True
    urls = get_tenant_types()[tenant.get_tenant_type()].get("URLCONF")
    return bool(urls == settings.ROOT_URLCONF)


def _has_app(tenant: Any) -> bool:
    return _named(APP, get_tenant_types()[tenant.get_tenant_type()]["APPS"]) is not None


def _apps_lists() -> tuple[Collection[str], list[Collection[str]]]:
    """Return the apps of the public schema, and those of each type of tenants."""
    if not has_multi_type_tenants():
        given: Any = settings
        return given.SHARED_APPS, [given.TENANT_APPS]
    types, public = get_tenant_types(), get_public_schema_name()
    return types[public]["APPS"], [each["APPS"] for name, each in types.items() if name != public]


def _apps_with_rows_of_users() -> Iterator[str]:
    """Return the apps whose tables must be each tenant's own."""
    yield APP
    if all(_named(app, settings.INSTALLED_APPS) for app in LOGINS):
        yield from LOGINS


def _named(app: str, apps: Collection[str]) -> str | None:
    """Return how ``app`` is named among ``apps``: perhaps by its configuration."""
    return next((each for each in apps if each == app or each.startswith(f"{app}.apps.")), None)


@contextmanager
def _moved(tenant: Any, *, forgets_path: bool = True) -> Iterator[None]:
    """Have the present thread's connection in another schema, without a word to anybody.

    ``forgets_path``: what the server was told last is told again before the next statement.
    """
    connection: Any = connections[get_tenant_database_alias()]
    before, included = connection.tenant, connection.include_public_schema
    _move(connection, tenant, True, forgets_path)
    try:
        yield
    finally:
        _move(connection, before, included, forgets_path)


def _move(connection: Any, tenant: Any, includes_public: bool, forgets_path: bool) -> None:
    connection.tenant, connection.schema_name = tenant, tenant.schema_name
    connection.include_public_schema = includes_public
    connection.set_settings_schema(tenant.schema_name)
    if forgets_path:
        connection.search_path_set_schemas = None


def _set_path_once(connection: Any) -> None:
    """Have a connection set its path only where the server has another one.

    In the same statement it is told how long to wait for locks.
    """
    in_general = getattr(connection, "_handle_search_path", None)
    if in_general is None or "_handle_search_path" in vars(connection):
        return
    _leave_pool(connection)
    commit_in_general = connection._commit

    def set_path(cursor: Any = None) -> None:
        wanted = connection._get_cursor_search_paths()
        if connection._setting_search_path or wanted == connection.search_path_set_schemas:
            return
        connection.search_path_set_schemas = None
        if cursor is None:
            in_general()
            return
        path = ",".join(connection.ops.quote_name(each) for each in wanted)
        connection._setting_search_path = True
        try:
            cursor.execute(SET_PATH, [path, LOCK_WAIT])
        except DatabaseError:
            pass  # the transaction has failed before; who rolls it back comes here again
        else:
            connection.search_path_set_schemas = wanted
        finally:
            connection._setting_search_path = False

    def commit() -> None:
        # What has failed is rolled back, with the path that was set in it, although nobody says so:
        # the error may have been caught where it was raised, and COMMIT gives none.
        server = connection.connection
        if server is not None and server.info.transaction_status == IN_ERROR:
            connection.search_path_set_schemas = None
        commit_in_general()

    connection._handle_search_path, connection._commit = set_path, commit


def _leave_pool(connection: Any) -> None:
    """Have a connection be its thread's own: who got it next from a pool would wait for locks no
    longer than the bookkeeping does.
    """
    configured, options = connection.settings_dict, connection.settings_dict["OPTIONS"]
    if options.get("pool") and not connection.in_atomic_block:
        connection.close()
        connection.settings_dict = {**configured, "OPTIONS": {**options, "pool": None}}
