"""Chromium, driven by Selenium: the only module that knows either."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from selenium.common.exceptions import StaleElementReferenceException, WebDriverException
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import Select, WebDriverWait

SECONDS = 15
NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--no-proxy-server",
    # Or the console of a frame that may do little, as apps are shown in, is not heard of.
    "--disable-features=IsolateSandboxedIframes",
    "--window-size=1280,900",
    # Nothing but this machine can be reached, whatever a page or the browser itself would like.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
T = TypeVar("T")


class MissingBrowserError(Exception):
    """There is no Chromium here, or no driver of it."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request that the browser made, and what came of it; `None` while nothing has."""

    url: str
    status: int | None


class Browser:
    """What the tests do with a browser. Elements are named by CSS selectors."""

    def __init__(self, driver: Chrome) -> None:
        self.driver = driver
        self._logs: dict[str, list[dict[str, Any]]] = {"browser": [], "performance": []}

    def forget(self) -> None:
        """Become a browser that has been nowhere."""
        self.driver.get("about:blank")
        self.driver.execute_cdp_cmd("Network.clearBrowserCookies", {})
        self.driver.execute_cdp_cmd("Network.clearBrowserCache", {})
        self.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        self.prefer("light")
        for name, noticed in self._logs.items():
            self._log(name)
            noticed.clear()

    # Pages

    def open(self, url: str) -> None:
        """Go to a page, and wait until it has loaded."""
        self.driver.get(url)

    def resize(self, *, width: int, height: int = 720) -> None:
        """Become a phone; windows cannot be as narrow."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": True}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def prefer(self, scheme: str) -> None:
        """Ask pages for their `light` or their `dark` colours."""
        preference = {"name": "prefers-color-scheme", "value": scheme}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [preference]})

    def run(self, script: str, *arguments: Any) -> Any:
        """Run a script in the page, and return what it returns, or what its promise does."""
        return self.driver.execute_script(script, *arguments)

    @property
    def source(self) -> str:
        """The page as it is now."""
        return self.driver.page_source

    def press(self, *keys: str) -> None:
        """Press keys, one after the other, where the focus is; ``CONTROL`` holds for the next."""
        actions = ActionChains(self.driver)
        for key, before in zip(keys, ("", *keys), strict=False):
            if key == "CONTROL":
                actions.key_down(Keys.CONTROL)
                continue
            actions.send_keys(getattr(Keys, key, key))
            if before == "CONTROL":
                actions.key_up(Keys.CONTROL)
        actions.perform()

    # Elements

    def find(self, selector: str) -> WebElement:
        """Return the first element, once it is there."""
        return self.wait(lambda: self.find_all(selector), f"there is no {selector}")[0]

    def find_all(self, selector: str) -> list[WebElement]:
        """Return the elements that are there now."""
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector: str) -> str:
        """Return what an element says, once it is there."""
        return self.find(selector).text

    def row(self, text: str) -> WebElement:
        """Return the row of the admin's list that has a text."""
        found = [row for row in self.find_all("#result_list tbody tr") if text in row.text]
        assert len(found) == 1, f"{len(found)} rows have {text!r}"
        return found[0]

    def in_row(self, text: str, selector: str) -> WebElement:
        """Return an element of that row."""
        return self.row(text).find_element(By.CSS_SELECTOR, selector)

    # Forms

    def fill(self, **fields: str) -> None:
        """Type into the fields of these names, in place of what they hold."""
        for name, value in fields.items():
            field = self.find(f"[name={name}]")
            field.clear()
            field.send_keys(value)

    def choose(self, name: str, label: str) -> None:
        """Choose an option by what it says."""
        Select(self.find(f"select[name={name}]")).select_by_visible_text(label)

    def follow(self, element: WebElement | str) -> None:
        """Click, and wait for the page that comes of it."""
        clicked = self.find(element) if isinstance(element, str) else element
        page = self.find("html")
        clicked.click()
        self.wait(lambda: _is_gone(page), "the click leads nowhere")
        loaded = "return document.readyState === 'complete'"
        self.wait(lambda: self.run(loaded), "the page does not finish loading")

    def wait(self, condition: Callable[[], T], complaint: str = "") -> T:
        """Return the first true value of a condition."""
        waiting = WebDriverWait(self.driver, SECONDS, 0.05, [StaleElementReferenceException])
        return waiting.until(lambda _: condition(), complaint)

    # Cookies

    def cookie(self, name: str) -> str:
        """Return a cookie of the page."""
        cookie: Any = self.driver.get_cookie(name)
        return str(cookie["value"])

    def take_cookie(self, url: str, name: str, value: str) -> None:
        """Have a cookie of a page that need not be open."""
        self.driver.execute_cdp_cmd("Network.setCookie", {"url": url, "name": name, "value": value})

    # What it noticed since it has been nowhere

    def errors(self) -> list[str]:
        """Return the errors on the console."""
        return [entry["message"] for entry in self._log("browser") if entry["level"] == "SEVERE"]

    def exchanges(self) -> list[Exchange]:
        """Return the requests, in order."""
        events = [json.loads(entry["message"])["message"] for entry in self._log("performance")]
        sent = _of_kind(events, "Network.requestWillBeSent")
        received = {e["requestId"]: e["response"] for e in _of_kind(events, RECEIVED)}
        return [
            Exchange(each["request"]["url"], received.get(each["requestId"], {}).get("status"))
            for each in sent
        ]

    def _log(self, name: str) -> list[dict[str, Any]]:
        # The driver forgets what it has told.
        self._logs[name] += self.driver.get_log(name)
        return self._logs[name]


def _is_gone(element: WebElement) -> bool:
    """Tell whether the page of an element has been left."""
    try:
        element.is_enabled()
    except StaleElementReferenceException:
        return True
    except WebDriverException as error:
        # What the driver says if it asks just while the page is left.
        if "does not belong to the document" in str(error.msg):
            return True
        raise
    return False


RECEIVED = "Network.responseReceived"


def _of_kind(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [event["params"] for event in events if event["method"] == kind]


@contextmanager
def running_chromium(directory: Path) -> Iterator[Browser]:
    """Start a browser that knows nothing, and keeps what it learns in the directory."""
    options = ChromeOptions()
    options.binary_location = _program(*NAMES)
    for flag in (*FLAGS, f"--user-data-dir={directory / 'profile'}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    # Selenium looks on the network for a driver that it is not given.
    driver = Chrome(options=options, service=Service(_program("chromedriver")))
    try:
        driver.set_page_load_timeout(SECONDS)
        driver.set_script_timeout(SECONDS)
        yield Browser(driver)
    finally:
        driver.quit()


def _program(*names: str) -> str:
    for name in names:
        if path := shutil.which(name):
            return path
    raise MissingBrowserError(f"There is no {' or '.join(names)} on PATH.")
