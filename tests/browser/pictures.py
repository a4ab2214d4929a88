"""Makes pictures of pages for the documentation: ``make pictures``."""

from __future__ import annotations

import tempfile
from io import BytesIO
from pathlib import Path

from PIL import Image

from tests.support.servers import CHECKOUT

from .chromium import Browser, running_chromium
from .editor import Editor
from .serving import running_site

IMAGES = CHECKOUT / "docs" / "images"
NAME = "https://desk.example.com"
WIDTH, HEIGHT, MARGIN = 480, 1200, 16
"""Of each half, in pixels: of the window, and what is left above and below."""
COLOURS = 64


def main() -> None:
    """Write all pictures."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        with (
            running_site(directory, allowed_origin=NAME, name=NAME) as site,
            running_chromium(directory) as browser,
        ):
            editor = Editor(site.origin, f"{NAME}/login/mcp", "http://localhost:3118/callback")
            editor.register("Claude Code")
            browser.open(editor.url("desk:read desk:write"))
            browser.fill(username="admin", password="demo")
            browser.follow("[type=submit]")
            write_in_both_schemes(browser, "main", IMAGES / "consent.png")


def write_in_both_schemes(browser: Browser, selector: str, path: Path) -> None:
    """Write a picture of an element: on a light page at the left, on a dark one at the right."""
    halves = []
    for scheme in ("light", "dark"):
        browser.prefer(scheme)
        browser.resize(width=WIDTH, height=HEIGHT)
        box = browser.find(selector).rect
        whole = Image.open(BytesIO(browser.driver.get_screenshot_as_png()))
        top = round(box["y"]) - MARGIN
        halves.append(whole.crop((0, top, WIDTH, top + round(box["height"]) + 2 * MARGIN)))
    picture = Image.new("RGB", (2 * WIDTH, halves[0].height))
    for number, half in enumerate(halves):
        picture.paste(half, (number * WIDTH, 0))
    picture.quantize(COLOURS).save(path, optimize=True)


if __name__ == "__main__":
    main()
