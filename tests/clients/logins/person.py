"""A person at a browser, who logs in, reads what is asked, and agrees; needs nothing but Python.

`person.py URL` opens a page as a client asks for it, and goes back to the client, unless `--stay`
says so: then the place to go back to is printed. `person.py --revoke SITE` revokes all access
tokens in the admin. Each visit is noted in the file that VISITS names, if it names one.
"""

from __future__ import annotations

import json
import os
import sys
import time
import urllib.error
import urllib.request
from html.parser import HTMLParser
from http.cookiejar import CookieJar
from urllib.parse import urlencode, urljoin, urlsplit

NAME, PASSWORD = "anna", "secret"
TOKENS = "/admin/oauth2_provider/accesstoken/"
SECONDS = 20


class Form(HTMLParser):
    """The fields of a page's forms, those that have a value, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.fields: dict[str, list[str]] = {}
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        name = found.get("name")
        if tag == "input" and name and found.get("type") != "submit":
            self.fields.setdefault(name, []).append(found.get("value") or "")

    def handle_data(self, data: str) -> None:
        self.text += f" {data.strip()}" if data.strip() else ""


class _SameSite(urllib.request.HTTPRedirectHandler):
    """Follows what stays at the site; whatever leads elsewhere is for the client."""

    def redirect_request(self, request, file, code, message, headers, url):
        if urlsplit(url).netloc != urlsplit(request.full_url).netloc:
            return None
        return super().redirect_request(request, file, code, message, headers, url)


class Person:
    """Has cookies, and an account."""

    def __init__(self) -> None:
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}),
            urllib.request.HTTPCookieProcessor(CookieJar()),
            _SameSite(),
        )
        self.where = ""
        self.read = ""

    def open(self, url: str, form: dict[str, list[str]] | None = None) -> Form:
        """Open a page, or send a form to it; log in where that is asked for."""
        data = None if form is None else urlencode(form, doseq=True).encode()
        request = urllib.request.Request(url, data, {"Referer": self.where or url})
        with self._opener.open(request, timeout=SECONDS) as response:
            self.where, page = response.url, response.read().decode()
        found = Form(page)
        if "password" not in found.fields:
            return found
        if form and "password" in form:
            raise AssertionError(f"Nobody was logged in at {self.where}: {found.text}")
        return self.open(self.where, {**found.fields, "username": [NAME], "password": [PASSWORD]})

    def agree(self, url: str) -> str:
        """Agree to what a client asks; return the URL to which its answer goes."""
        page = self.open(url)
        self.read = page.text.strip()
        if visits := os.environ.get("VISITS"):
            with open(visits, "a") as notes:
                notes.write(json.dumps({"url": url, "read": self.read}) + "\n")
        try:
            self.open(self.where, {**page.fields, "allow": ["1"]})
        except urllib.error.HTTPError as left:
            if not left.headers["Location"]:
                raise
            return urljoin(self.where, left.headers["Location"])
        raise AssertionError(f"Nobody was sent back from {self.where}")

    def come_back(self, url: str) -> None:
        """Go to where the answer goes, once the client listens there.

        mcp-remote does so only half a second after it has opened a browser: anybody else is slower.
        """
        until = time.monotonic() + SECONDS
        while True:
            try:
                with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url) as page:
                    page.read()
                return
            except urllib.error.URLError as error:
                refused = isinstance(error.reason, ConnectionRefusedError)
                if not refused or time.monotonic() > until:
                    raise
                time.sleep(0.05)

    def revoke(self, site: str) -> int:
        """Revoke all access tokens in the admin; return how many there were."""
        page = self.open(site + TOKENS)
        chosen = page.fields.get("_selected_action", [])
        answer = self.open(site + TOKENS, {**page.fields, "action": ["revoke_tokens"]})
        assert "revoke" in answer.text.lower(), answer.text
        return len(chosen)


def main(arguments: list[str]) -> None:
    person = Person()
    if arguments[0] == "--revoke":
        print(person.revoke(arguments[1]))
        return
    back = person.agree(arguments[-1])
    print(back)
    if "--stay" not in arguments:
        person.come_back(back)


if __name__ == "__main__":
    main(sys.argv[1:])
