"""One browser and one site for all tests; each test finds the browser as new."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from tests.support.caller import Caller
from tests.support.entrances import ServerEntrance

from .serving import PAGES, Site, running_site, serving_pages

if TYPE_CHECKING:
    from .chromium import Browser

HERE = Path(__file__).resolve().parent
ADMIN = {"username": "admin", "password": "demo"}


@pytest.hookimpl(tryfirst=True)  # before xdist looks for groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this directory."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.xdist_group("browser"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Function) -> Generator[None, Any, Any]:
    """Keep a picture of the page on which a test has failed."""
    report = yield
    fixtures: dict[str, Any] = item.funcargs
    if report.when == "call" and report.failed and "browser" in fixtures:
        driver, picture = fixtures["browser"].driver, fixtures["tmp_path"] / "failed.png"
        driver.save_screenshot(str(picture))
        report.sections.append(("Browser", f"{driver.current_url}, see {picture}"))
    return report


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Give the browser; skip where there is none, but never in CI."""
    with ExitStack() as stack:
        try:
            from .chromium import MissingBrowserError, running_chromium  # noqa: PLC0415
        except ModuleNotFoundError as error:
            _do_without(error)
        try:
            browser = stack.enter_context(running_chromium(tmp_path_factory.mktemp("chromium")))
        except MissingBrowserError as error:
            _do_without(error)
        yield browser


def _do_without(error: Exception) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(f"CI must have it: {error}")
    pytest.skip(str(error))


@pytest.fixture
def browser(chromium: Browser, tmp_path: Path) -> Browser:
    """A browser that has been nowhere."""
    chromium.forget()
    return chromium


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages of these tests, and room for others."""
    return shutil.copytree(PAGES, tmp_path_factory.mktemp("friendly") / "pages")


@pytest.fixture(scope="session")
def friendly_origin(pages: Path) -> Iterator[str]:
    """Where pages are served that the site lets in."""
    with serving_pages(pages) as origin:
        yield origin


@pytest.fixture(scope="session")
def foreign_origin() -> Iterator[str]:
    """Where the same pages are served, of which the site knows nothing."""
    with serving_pages() as origin:
        yield origin


@pytest.fixture(scope="session")
def site(
    chromium: Browser, tmp_path_factory: pytest.TempPathFactory, friendly_origin: str
) -> Iterator[Site]:
    """The example project; not started where there is no browser to visit it."""
    directory = tmp_path_factory.mktemp("site")
    with running_site(directory, allowed_origin=friendly_origin) as running:
        yield running
        log = running.log.read_text()
    assert "Traceback" not in log, log


@pytest.fixture(scope="session")
def login(chromium: Browser, site: Site) -> str:
    """The cookie of the demo's admin, who logs in once: passwords are slow to check."""
    chromium.forget()
    chromium.open(site.at("/admin/"))
    chromium.fill(**ADMIN)
    chromium.follow("[type=submit]")
    return chromium.cookie("sessionid")


@pytest.fixture
def admin(login: str, browser: Browser, site: Site) -> Browser:
    """The browser, in which the demo's admin has logged in."""
    browser.take_cookie(site.origin, "sessionid", login)
    browser.open(site.at("/admin/"))
    return browser


@pytest.fixture
def caller(site: Site) -> Caller:
    """An MCP client without a session."""
    return Caller(ServerEntrance(site.origin))


@pytest.fixture
def enter(caller: Caller) -> Callable[[str], Caller]:
    """Give a function that opens a session, as a client of some name."""
    return lambda name: caller.opened(clientInfo=named(name))


def named(name: str) -> dict[str, str]:
    """Return what a client of some name says of itself."""
    return {"name": name, "version": "1.0"}
