"""A client that sends people to a site's login, and takes what comes back with them."""

from __future__ import annotations

import base64
import hashlib
import secrets
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx

SECONDS = 15


@dataclass
class Editor:
    """A client, as it has introduced itself."""

    origin: str
    resource: str
    """The URL of the endpoint that it wants to use."""
    callback: str
    """Where people are sent back to."""
    client_id: str = ""
    state: str = field(default_factory=secrets.token_hex)
    verifier: str = field(default_factory=secrets.token_urlsafe)

    def register(self, name: str = "Editor") -> None:
        """Register, as most clients do."""
        about = {
            "client_name": name,
            "redirect_uris": [self.callback],
            "token_endpoint_auth_method": "none",
        }
        self.client_id = self._post("/o/register/", json=about)["client_id"]

    def url(self, scope: str) -> str:
        """Return the URL of the page on which people agree."""
        digest = hashlib.sha256(self.verifier.encode()).digest()
        asked = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": self.callback,
            "scope": scope,
            "state": self.state,
            "resource": self.resource,
            "code_challenge": base64.urlsafe_b64encode(digest).decode().rstrip("="),
            "code_challenge_method": "S256",
        }
        return f"{self.origin}/o/authorize/?{urlencode(asked)}"

    def answer_in(self, url: str) -> dict[str, str]:
        """Return what a URL to which people were sent back says, to this client alone."""
        parts = urlsplit(url)
        assert parts._replace(query="").geturl() == self.callback
        answer = dict(parse_qsl(parts.query))
        assert answer.pop("state") == self.state
        assert answer.pop("iss") == self.origin
        return answer

    def exchange(self, code: str) -> dict[str, Any]:
        """Return the tokens of a code."""
        given = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self.callback,
            "client_id": self.client_id,
            "code_verifier": self.verifier,
            "resource": self.resource,
        }
        return self._post("/o/token/", data=given)

    def _post(self, path: str, **body: Any) -> dict[str, Any]:
        with httpx.Client(trust_env=False, timeout=SECONDS) as client:
            response = client.post(self.origin + path, **body)
        assert response.is_success, response.text
        found: dict[str, Any] = response.json()
        return found
