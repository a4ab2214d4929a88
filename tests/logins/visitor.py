"""A client and the person who uses it, on their way through a login, in this process."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html import unescape
from html.parser import HTMLParser
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from django.test import Client

from tests.support.answers import HTTPAnswer
from tests.support.caller import Caller
from tests.support.entrances import open_entrance

SITE = "http://localhost"
RESOURCE = f"{SITE}/mcp"
LIBRARY = f"{SITE}/books/mcp"
CALLBACK = "https://editor.example/callback"
VERIFIER = "a-verifier-of-more-than-forty-three-characters-as-is-due"
CHALLENGE = (
    base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).decode().rstrip("=")
)


class Visitor:
    """One client of one person."""

    def __init__(
        self, user: Any, client_id: str = "", *, host: str = "localhost", resource: str = RESOURCE
    ) -> None:
        self.user = user
        self.resource = resource
        self.browser = Client(SERVER_NAME=host, raise_request_exception=True)
        self.machine = Client(SERVER_NAME=host, enforce_csrf_checks=True)
        self.client_id = client_id
        self.secret = ""
        if user is not None:
            self.browser.force_login(user)

    def register(self, **metadata: Any) -> Any:
        """Register, as most clients do; return the response."""
        sent = {
            "client_name": "Editor",
            "redirect_uris": [CALLBACK],
            "token_endpoint_auth_method": "none",
            **metadata,
        }
        sent = {name: value for name, value in sent.items() if value is not None}
        response = self.machine.post(
            "/o/register/", json.dumps(sent), content_type="application/json"
        )
        if response.status_code == 201:
            self.client_id = response.json()["client_id"]
            self.secret = response.json().get("client_secret", "")
        return response

    def url_of(self, **parameters: Any) -> str:
        """Return the URL of the page to which the client sends the person."""
        sent = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": CALLBACK,
            "scope": "orders:read",
            "state": "a state",
            "resource": self.resource,
            "code_challenge": CHALLENGE,
            "code_challenge_method": "S256",
            **parameters,
        }
        sent = {name: value for name, value in sent.items() if value is not None}
        return f"/o/authorize/?{urlencode(sent, doseq=True)}"

    def ask(self, **parameters: Any) -> Any:
        """Have the person sent to the page; return what the browser gets."""
        self.url = self.url_of(**parameters)
        return self.browser.get(self.url)

    def answer(self, page: Any, *, allow: bool = True, **changed: Any) -> dict[str, str]:
        """Answer what a page asks; return what comes back in the URL, and where it leads."""
        assert page.status_code == 200, page.headers
        form = {**fields_of(page.content.decode()), **changed}
        response = self.browser.post(self.url, {**form, **({"allow": "1"} if allow else {})})
        return sent_back(response)

    def code(self, **parameters: Any) -> str:
        """Return a code that the person has agreed to."""
        if not self.client_id:
            assert self.register().status_code == 201
        return self.answer(self.ask(**parameters))["code"]

    def exchange(self, code: str, **changed: Any) -> Any:
        """Ask for the tokens of a code; return the response."""
        sent = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": CALLBACK,
            "client_id": self.client_id,
            "code_verifier": VERIFIER,
            "resource": self.resource,
            **changed,
        }
        return self._token(sent)

    def refresh(self, refresh_token: str, **changed: Any) -> Any:
        """Ask for new tokens; return the response."""
        return self._token(
            {
                "grant_type": "refresh_token",
                "refresh_token": refresh_token,
                "client_id": self.client_id,
                "resource": self.resource,
                **changed,
            }
        )

    def login(self, **parameters: Any) -> dict[str, Any]:
        """Go all the way; return the tokens."""
        resource = parameters.get("resource", self.resource)
        response = self.exchange(self.code(**parameters), resource=resource)
        assert response.status_code == 200, response.content
        found: dict[str, Any] = response.json()
        return found

    def call(self, token: str, tool: str = "whoami", path: str = "/mcp") -> HTTPAnswer:
        """Call a tool with a token."""
        return caller_with(token, path=path).tool(tool)

    def _token(self, sent: dict[str, Any]) -> Any:
        given = {name: value for name, value in sent.items() if value is not None}
        return self.machine.post(
            "/o/token/",
            urlencode(given, doseq=True),
            content_type="application/x-www-form-urlencoded",
        )


def caller_with(token: str, entrance: str = "wsgi", path: str = "/mcp") -> Caller:
    """Return whoever calls the endpoint at a path with a token."""
    caller = Caller(open_entrance(entrance), path=path)
    return caller.with_headers(Authorization=f"Bearer {token}")


class _Fields(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "input" and given.get("name"):
            self.found[str(given["name"])] = given.get("value") or ""


def fields_of(page: str) -> dict[str, str]:
    """Return the hidden fields of a page's form."""
    parser = _Fields()
    parser.feed(page)
    return parser.found


def sent_back(response: Any) -> dict[str, str]:
    """Return what a redirect to the client carries; ``to`` is where it leads."""
    assert response.status_code == 302, response.content
    return carried(response.headers["Location"])


def offered(response: Any) -> dict[str, str]:
    """Return the same of the link to the client that a page has, which people follow or not."""
    assert response.status_code == 400, response.headers
    (link,) = re.findall(r'<a href="(https?://[^"]*)">', response.content.decode())
    return carried(unescape(link))


def carried(url: str) -> dict[str, str]:
    """Return what a URL of the client carries."""
    parts = urlsplit(url)
    return {"to": parts._replace(query="").geturl(), **dict(parse_qsl(parts.query))}
