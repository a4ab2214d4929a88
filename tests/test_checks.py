"""The system checks: what a site has forgotten is named, with the cure."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from channels.layers import BaseChannelLayer
from django.core.checks import Error, run_checks
from django.core.checks.registry import registry
from django.urls import include, path, resolve

from django_mcp import MCPServer, endpoint
from django_mcp.asgi import mount
from django_mcp.auth import public
from django_mcp.checks import (
    KNOWN_MIDDLEWARE,
    REPLACEMENTS,
    check_middleware,
    check_openness,
    check_servers,
    check_settings,
)
from django_mcp.conf import OLD_NAMES, get_settings
from django_mcp.server.default_server import mcp
from tests.support.sites import urlconf


def ids(messages) -> list[str]:
    return [message.id for message in messages]


@pytest.mark.django_db
def test_a_site_in_order_has_no_messages():
    assert [message for message in run_checks() if message.id.startswith("django_mcp")] == []


def test_without_auth_the_check_says_what_to_choose(settings):
    settings.DJANGO_MCP = {}
    (error,) = check_settings()
    assert (error.id, error.level) == ("django_mcp.E001", Error("").level)
    for choice in ("token_auth", "django_user", "public"):
        assert choice in error.hint


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"AUTH": "django_mcp.auth.public", "NOPE": 1}, "django_mcp.E002"),
        ({"AUTH": "django_mcp.auth.pubic"}, "django_mcp.E003"),
        ({"AUTH": "django_mcp.auth.public", "DATABASE": "nowhere"}, "django_mcp.E004"),
    ],
)
def test_mistakes_in_the_settings_are_errors(settings, value, expected):
    settings.DJANGO_MCP = value
    assert ids(check_settings()) == [expected]


def cache(backend: str, directory: Path) -> dict[str, str]:
    """Return the settings of a cache, which may leave something behind in its directory."""
    where = "redis://127.0.0.1:6379/0" if "redis" in backend else str(directory)
    return {"BACKEND": backend, "LOCATION": where}


@pytest.mark.parametrize(
    ("backend", "expected"),
    [
        ("django.core.cache.backends.locmem.LocMemCache", ["django_mcp.E007"]),
        ("django.core.cache.backends.db.DatabaseCache", ["django_mcp.E007"]),
        ("django.core.cache.backends.filebased.FileBasedCache", ["django_mcp.E007"]),
        ("django.core.cache.backends.dummy.DummyCache", ["django_mcp.E007"]),
        ("django.core.cache.backends.redis.RedisCache", []),
        ("", ["django_mcp.E007"]),
    ],
)
def test_a_cache_that_does_not_count_exactly_is_an_error(settings, tmp_path, backend, expected):
    caches = {"default": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}}
    settings.CACHES = caches | ({"counts": cache(backend, tmp_path)} if backend else {})
    settings.DJANGO_MCP = {"AUTH": "django_mcp.auth.public", "RATE_LIMIT_CACHE": "counts"}
    assert ids(check_settings()) == expected


@pytest.mark.parametrize(
    ("backend", "seconds", "expected"),
    [
        ("django.core.cache.backends.locmem.LocMemCache", 2, ["django_mcp.E008"]),
        ("django.core.cache.backends.db.DatabaseCache", 2, ["django_mcp.E008"]),
        ("django.core.cache.backends.filebased.FileBasedCache", 2, ["django_mcp.E008"]),
        ("django.core.cache.backends.dummy.DummyCache", 2, ["django_mcp.E008"]),
        ("", 2, ["django_mcp.E008"]),
        ("django.core.cache.backends.redis.RedisCache", 0, ["django_mcp.E008"]),
        ("django.core.cache.backends.redis.RedisCache", 1.9, ["django_mcp.E008"]),
        ("django.core.cache.backends.redis.RedisCache", 2, []),
        ("django.core.cache.backends.redis.RedisCache", 10, []),
    ],
)
def test_a_cache_in_which_sessions_cannot_be_remembered_is_an_error(
    settings, tmp_path, backend, seconds, expected
):
    settings.CACHES = {"sessions": cache(backend, tmp_path)} if backend else {}
    settings.DJANGO_MCP = {
        "AUTH": "django_mcp.auth.public",
        "SESSION_CACHE": "sessions",
        "SESSION_CACHE_SECONDS": seconds,
    }
    assert ids(check_settings()) == expected


IN_MEMORY = "channels.layers.InMemoryChannelLayer"


class Reaching(BaseChannelLayer):
    """A channel layer that is not this process's alone."""


REACHING = f"{__name__}.Reaching"


@pytest.mark.parametrize(
    ("layer", "seconds", "expected"),
    [
        ("", 1, []),
        ("", 1.5, ["django_mcp.W003"]),
        (IN_MEMORY, 10, ["django_mcp.W003"]),
        (REACHING, 10, []),
    ],
)
def test_where_nobody_can_be_told_that_a_session_has_ended_a_warning_says_for_how_long(
    settings, layer, seconds, expected
):
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": layer}} if layer else {}
    settings.DJANGO_MCP = {
        "AUTH": "django_mcp.auth.public",
        "SESSION_CACHE_SECONDS": seconds,
    }
    messages = check_settings()
    assert ids(messages) == expected
    for message in messages:
        assert f"for {seconds} seconds after it has ended" in message.msg
        assert "channels_redis" in message.hint


def test_sqlite_without_immediate_transactions_is_a_warning(settings, monkeypatch):
    plain = {"ENGINE": "django.db.backends.sqlite3", "NAME": "x"}
    monkeypatch.setitem(settings.DATABASES, "default", plain)
    (warning,) = check_settings()
    assert warning.id == "django_mcp.W001"
    assert "IMMEDIATE" in warning.hint


def test_a_completion_of_nothing_is_an_error(monkeypatch):
    server = MCPServer("typo", version="1")

    @server.prompt
    def greet(name: str) -> str:
        """Greet somebody."""
        return name

    @server.completion("greet", "nam")
    def complete(value: str) -> list[str]:
        return []

    monkeypatch.setattr(mcp, "check", server.check)
    (error,) = check_servers()
    assert error.id == "django_mcp.E005"
    assert "'nam' for 'greet'" in error.msg


def test_every_server_in_the_urlconf_is_checked(settings):
    typo = MCPServer("typo", auth="django_mcp.auth.pubic")
    settings.ROOT_URLCONF = urlconf(
        endpoint("a", server=MCPServer("twice")),
        path("nested/", include([endpoint("b", server=MCPServer("twice"))])),
        endpoint("c", server=typo),
        endpoint("d", server=typo, auth="django_mcp.auth.privat"),
    )
    messages = [each for each in check_servers() if isinstance(each, Error)]
    assert sorted(ids(messages)) == ["django_mcp.E003", "django_mcp.E003", "django_mcp.E006"]
    assert "'twice'" in str(messages)


async def application(scope, receive, send) -> None:
    """Stand for Django's."""


mounted = mount(application)


def test_middleware_that_the_mount_passes_by_is_named(settings):
    settings.MIDDLEWARE = [*sorted(KNOWN_MIDDLEWARE), "site.tenants.TenantMiddleware"]
    settings.ASGI_APPLICATION = f"{__name__}.application"
    assert check_middleware() == []
    settings.ASGI_APPLICATION = f"{__name__}.mounted"
    (warning,) = check_middleware()
    assert warning.id == "django_mcp.W002"
    assert "site.tenants.TenantMiddleware" in warning.msg
    assert "SessionMiddleware" not in warning.msg
    assert "do that in AUTH" in warning.hint
    settings.MIDDLEWARE = sorted(KNOWN_MIDDLEWARE)
    assert check_middleware() == []


def test_each_middleware_has_a_message_that_says_what_replaces_it(settings):
    settings.ASGI_APPLICATION = f"{__name__}.mounted"
    settings.MIDDLEWARE = [*REPLACEMENTS, "site.own"]
    messages = check_middleware()
    assert ids(messages) == ["django_mcp.W002"] * len(settings.MIDDLEWARE)
    for name, message in zip(settings.MIDDLEWARE, messages, strict=True):
        assert name in message.msg
        assert f'add "{name}" to DJANGO_MCP["MOUNT_WITHOUT"]' in message.hint
        assert REPLACEMENTS.get(name, "do that in AUTH") in message.hint
    assert not REPLACEMENTS.keys() & KNOWN_MIDDLEWARE


def test_middleware_is_silenced_by_its_name(settings):
    settings.ASGI_APPLICATION = f"{__name__}.mounted"
    settings.MIDDLEWARE = ["csp.middleware.CSPMiddleware", "site.own"]
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "MOUNT_WITHOUT": ["csp.middleware.CSPMiddleware"]}
    (message,) = check_middleware()
    assert "site.own" in message.msg
    settings.DJANGO_MCP = settings.DJANGO_MCP | {"MOUNT_WITHOUT": 1}
    assert check_middleware() == []
    assert ids(check_settings()) == ["django_mcp.E002"]


def test_a_mistake_in_the_settings_breaks_nothing_but_is_told(settings):
    """The URLconf of the whole site includes ours."""
    settings.DJANGO_MCP = {"AUTH": "django_mcp.auth.public", "PATH": 1}
    settings.ROOT_URLCONF = urlconf(path("", include("django_mcp.urls")))
    urls = importlib.reload(importlib.import_module("django_mcp.urls"))
    assert resolve("/mcp", urls).func.mcp_endpoint
    assert "django_mcp.E002" in ids(check_settings())
    assert check_servers() == []


@pytest.mark.parametrize(("old", "new"), OLD_NAMES.items())
def test_an_old_name_of_a_setting_means_the_same_and_is_warned_of(settings, old, new):
    settings.DJANGO_MCP = {"AUTH": "django_mcp.auth.public", old: 3}
    assert getattr(get_settings(), new.lower()) == 3
    (warning,) = check_settings()
    assert warning.id == "django_mcp.W017"
    assert old in warning.msg
    assert new in warning.hint


@pytest.mark.parametrize(("old", "new"), OLD_NAMES.items())
def test_a_setting_by_both_of_its_names_is_an_error(settings, old, new):
    settings.DJANGO_MCP = {"AUTH": "django_mcp.auth.public", new: 3, old: 3}
    (error,) = check_settings()
    assert error.id == "django_mcp.E002"
    assert f"has both {new!r} and {old!r}" in error.msg
    assert f"remove {old!r}" in error.msg


def test_each_mistake_in_the_settings_is_an_error_of_its_own(settings):
    settings.DJANGO_MCP = {"NOPE": 1, "PAGE_SIZE": 0, "AUTH": 3, "LANES": "many"}
    errors = check_settings()
    assert ids(errors) == ["django_mcp.E002"] * 4
    named = ("'NOPE'", "'AUTH'", "'PAGE_SIZE'", "'LANES'")
    assert all(name in each.msg for name, each in zip(named, errors, strict=True))


def test_a_server_that_offers_nothing_is_a_warning(settings):
    settings.ROOT_URLCONF = urlconf(endpoint("void", server=MCPServer("void")))
    (warning,) = check_servers()
    assert warning.id == "django_mcp.W004"
    assert "'void'" in warning.msg


def test_a_permission_that_nobody_has_is_a_warning(settings):
    server = MCPServer("guarded")
    for name, wanted in (("a", "auth.change_user"), ("b", "auth.chnge_user"), ("c", bool)):
        server.tool(name=name, permission=wanted)(lambda: None)
    settings.ROOT_URLCONF = urlconf(endpoint("guarded", server=server))
    (warning,) = check_servers()
    assert warning.id == "django_mcp.W005"
    assert "'b' of the server 'guarded'" in warning.msg
    assert "Did you mean 'auth.change_user'?" in warning.msg


OPEN_SERVER, CLOSED_SERVER = (
    MCPServer("open"),
    MCPServer("closed", auth="django_mcp.auth.django_user"),
)


@pytest.mark.parametrize(
    ("patterns", "auth", "named"),
    [
        ([endpoint("a", server=OPEN_SERVER)], "django_mcp.auth.public", ["'open'"]),
        ([endpoint("a", server=OPEN_SERVER, auth=public)], None, ["'open'"]),
        ([endpoint("a", server=CLOSED_SERVER, auth=public)], None, ["'closed'"]),
        ([endpoint("a", server=OPEN_SERVER)], "django_mcp.auth.django_user", []),
        ([endpoint("a", server=CLOSED_SERVER)], "django_mcp.auth.public", []),
        ([], "django_mcp.auth.public", []),
    ],
)
def test_before_a_deploy_it_is_said_what_is_open_to_everybody(settings, patterns, auth, named):
    settings.ROOT_URLCONF = urlconf(*patterns)
    settings.DJANGO_MCP = {"AUTH": auth}
    found = check_openness()
    assert ids(found) == ["django_mcp.W006"] * len(named)
    assert all(name in each.msg for name, each in zip(named, found, strict=True))


@pytest.mark.parametrize(
    ("origins", "expected"),
    [(["*"], ["django_mcp.W007"]), (["https://a.example", "*"], ["django_mcp.W007"]), ([], [])],
)
def test_before_a_deploy_it_is_said_that_every_page_may_use_it(settings, origins, expected):
    settings.ROOT_URLCONF = urlconf(endpoint("a", server=CLOSED_SERVER))
    settings.DJANGO_MCP = {"ALLOWED_ORIGINS": origins}
    assert ids(check_openness()) == expected
    settings.DJANGO_MCP = {"ALLOWED_ORIGINS": 5}  # which another check tells of
    assert check_openness() == []


def test_what_is_said_before_a_deploy_is_not_said_without_being_asked():
    assert check_openness in registry.get_checks(include_deployment_checks=True)
    assert check_openness not in registry.get_checks()
