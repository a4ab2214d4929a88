"""What a server that names no version says its version is: the site's."""

from __future__ import annotations

import json
import sys
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import django_mcp
from django_mcp import MCPServer
from django_mcp.auth import public
from django_mcp.server.default_server import site_version, version_of
from django_mcp.testing import MCPClient


class Site:
    """A package of a site's, which may say what it is, and be installed in one way or another."""

    def __init__(self, place: Path, name: str) -> None:
        self.place, self.name = place, name
        self.package = place / "code" / name
        self.package.mkdir(parents=True)
        self.write()

    def write(self, text: str = "") -> None:
        (self.package / "__init__.py").write_text(text)
        (self.package / "urls.py").write_text("urlpatterns = []\n")

    def install(self, where: Path, **direct_url: Any) -> None:
        info = where / f"{self.name}-3.14.dist-info"
        info.mkdir(parents=True)
        metadata = f"Metadata-Version: 2.1\nName: {self.name}\nVersion: 3.14\n"
        (info / "METADATA").write_text(metadata)
        if direct_url:
            (info / "direct_url.json").write_text(json.dumps(direct_url))


@pytest.fixture
def site(tmp_path, monkeypatch, settings) -> Site:
    made = Site(tmp_path, "some_shop_of_a_test")
    monkeypatch.syspath_prepend(str(tmp_path / "elsewhere"))
    monkeypatch.syspath_prepend(str(tmp_path / "code"))
    settings.ROOT_URLCONF = f"{made.name}.urls"
    yield made
    for name in [each for each in sys.modules if each.partition(".")[0] == made.name]:
        del sys.modules[name]
    version_of.cache_clear()


def test_what_the_package_says_counts(site):
    site.write('__version__ = "2.7"\n')
    site.install(site.place / "code")
    assert site_version() == "2.7"


def test_else_what_it_was_installed_as(site):
    site.install(site.place / "code")
    assert site_version() == "3.14"


def test_a_site_that_is_installed_in_place_has_its_version(site):
    url = (site.place / "code").as_uri()
    site.install(site.place / "elsewhere", url=url, dir_info={"editable": True})
    assert site_version() == "3.14"


@pytest.mark.parametrize("direct_url", [{}, {"url": "https://pypi.example/"}])
def test_a_stranger_of_the_same_name_says_nothing(site, direct_url):
    site.install(site.place / "elsewhere", **direct_url)
    assert site_version() == "0"


@pytest.mark.parametrize(
    "urlconf", ["", "nowhere_at_all.urls", ".urls", ModuleType("urlconf"), None, 7]
)
def test_where_nothing_is_known_a_version_is_named_all_the_same(settings, urlconf):
    settings.ROOT_URLCONF = urlconf
    assert site_version() == "0"


def test_a_site_may_have_no_urlconf(settings):
    del settings.ROOT_URLCONF
    assert site_version() == "0"


@pytest.mark.django_db
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_clients_are_told(settings, site, revision):
    site.write('__version__ = "2.7"\n')
    settings.DJANGO_MCP = {"AUTH": "django_mcp.auth.public"}

    def told(*server: MCPServer) -> str:
        client = MCPClient(*server, revision=revision)
        if revision == "2025-11-25":
            return client.initialize().result["serverInfo"]["version"]
        meta = client.request("server/discover").result["_meta"]
        return meta["io.modelcontextprotocol/serverInfo"]["version"]

    assert told() == told(MCPServer("unversioned", auth=public)) == "2.7"
    assert told(MCPServer("versioned", version="1.1", auth=public)) == "1.1"
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "SERVER_VERSION": "5"}
    assert told() == told(MCPServer("unversioned", auth=public)) == "5"


@pytest.mark.django_db
@pytest.mark.parametrize("method", ["server/discover", "tools/list"])
def test_what_was_said_of_another_urlconf_is_not_said_again(settings, site, method):
    """As where a site's tests have several: ``override_settings(ROOT_URLCONF=...)``."""
    site.write('__version__ = "2.7"\n')
    here = settings.ROOT_URLCONF
    settings.DJANGO_MCP = {"AUTH": "django_mcp.auth.public"}
    server = MCPServer("unversioned", auth=public)

    @server.tool
    def nothing() -> None:
        """Do nothing."""

    def told(urlconf: str) -> str:
        settings.ROOT_URLCONF = urlconf
        meta = MCPClient(server, revision="2026-07-28").request(method).result["_meta"]
        return meta["io.modelcontextprotocol/serverInfo"]["version"]

    assert [told("tests.site.urls"), told(here), told("tests.site.urls")] == ["0", "2.7", "0"]


@pytest.mark.django_db
def test_clients_are_not_told_the_version_of_this_package(settings):
    settings.DJANGO_MCP = {"AUTH": "django_mcp.auth.public"}
    told = MCPClient().initialize().result["serverInfo"]["version"]
    assert told not in (django_mcp.__version__, version("django"))
