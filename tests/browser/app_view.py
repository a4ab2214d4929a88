"""An app in a host, as a person meets it: the host's page, and within its two frames the app."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

if TYPE_CHECKING:
    from .chromium import Browser
    from .serving import Site


class AppView:
    """The app of a tool, shown by a host. What a test looks for is in the app."""

    def __init__(
        self, browser: Browser, site: Site, host: str, sandbox: str, page: str = "host.html"
    ) -> None:
        self.browser = browser
        self._host = f"{host}/{page}"
        self._common = {"endpoint": site.url, "sandbox": sandbox}

    def show(self, tool: str, /, **wishes: Any) -> AppView:
        """Have the host call a tool and show its app; ``wishes`` are those of the host's page."""
        plain = {
            name: value if isinstance(value, str) else json.dumps(value)
            for name, value in wishes.items()
        }
        query = urlencode({**self._common, "tool": tool, **plain})
        self.browser.driver.switch_to.default_content()
        self.browser.open(f"{self._host}?{query}")
        self.enter()
        return self

    def enter(self) -> None:
        """Look at the app."""
        driver = self.browser.driver
        driver.switch_to.default_content()
        driver.switch_to.frame(self.browser.find("iframe"))
        driver.switch_to.frame(self.browser.find("iframe"))

    @contextmanager
    def host(self) -> Iterator[None]:
        """Look at the host's page for the block."""
        self.browser.driver.switch_to.default_content()
        try:
            yield
        finally:
            self.enter()

    def seen(self) -> dict[str, Any]:
        """Return what the host has seen of the app."""
        with self.host():
            seen: dict[str, Any] = self.browser.run("return window.seen")
        return seen

    def in_host(self, script: str, *arguments: Any) -> Any:
        """Run a script in the host's page."""
        with self.host():
            return self.browser.run(script, *arguments)

    def assert_clean(self) -> None:
        """The app did nothing that a host or a browser objects to."""
        assert self.seen()["faults"] == []
        assert self.browser.errors() == []

    def save(self, path: Path) -> None:
        """Keep a picture of the host's page."""
        with self.host():
            self.browser.driver.save_screenshot(str(path))
