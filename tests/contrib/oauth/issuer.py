"""An authorization server on this machine: its documents, keys that change, and what it signs."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from joserfc import jwt
from joserfc.jwk import ECKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

CLIENT, SECRET = "the resource", "s3cret&"
RSA = [RSAKey.generate_key(2048, {"kid": f"key-{number}"}) for number in range(2)]
"""Made once, since it takes its time."""


def named(key: Any, kid: str, **more: Any) -> Any:
    """Return the same key by another name."""
    return type(key).import_key({**key.as_dict(private=True), "kid": kid, **more})


def elliptic(kid: str) -> Any:
    return ECKey.generate_key("P-256", {"kid": kid})


def edwards(kid: str) -> Any:
    return OKPKey.generate_key("Ed25519", {"kid": kid})


class Issuer:
    """What the server says, and what it was asked."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.keys: list[Any] = [RSA[0]]
        self.documents: dict[str, Any] = {}
        """By path; whatever stands here is shown."""
        self.asked: Counter[str] = Counter()
        self.forms: list[dict[str, str]] = []
        self.authorizations: list[str] = []
        self.introspected: dict[str, dict[str, Any]] = {}
        """What it says of tokens."""
        self.answers = True
        self.publish()

    def publish(self, path: str = "/.well-known/oauth-authorization-server", **more: Any) -> None:
        """Show the metadata at a path, and the keys as they are now."""
        self.documents[path] = {
            "issuer": self.url,
            "jwks_uri": f"{self.origin}/keys",
            "introspection_endpoint": f"{self.origin}/introspect",
            **more,
        }
        self.show_keys(*self.keys)

    def show_keys(self, *keys: Any) -> None:
        """Publish these keys and no others."""
        self.keys = list(keys)
        self.documents["/keys"] = {"keys": [each.as_dict(private=False) for each in keys]}

    @property
    def origin(self) -> str:
        return "/".join(self.url.split("/")[:3])

    def claims(self, audience: Any, **changed: Any) -> dict[str, Any]:
        """Return the claims of a token for anna; those that are ``None`` are left out."""
        now = int(time.time())
        claims = {
            "iss": self.url,
            "sub": "anna",
            "aud": audience,
            "exp": now + 300,
            "iat": now,
            "client_id": "claude",
            "scope": "orders:read",
            **changed,
        }
        return {name: value for name, value in claims.items() if value is not None}

    def sign(self, claims: dict[str, Any], key: Any = None, **header: Any) -> str:
        """Return a signed token; headers that are ``None`` are left out."""
        key = key or self.keys[0]
        given = {"alg": "RS256", "typ": "at+jwt", "kid": key.kid, **header}
        given = {name: value for name, value in given.items() if value is not None}
        registry = JWSRegistry(algorithms=[given["alg"]], strict_check_header=False)
        return jwt.encode(given, claims, key, registry=registry)


def sign_by_hand(header: dict[str, Any], claims: dict[str, Any], key: Any = RSA[0]) -> str:
    """Return a token with any header, and a signature that holds."""
    signed = f"{part(header)}.{part(claims)}"
    return f"{signed}.{part(key.raw_value.sign(signed.encode(), PKCS1v15(), SHA256()))}"


def part(value: Any) -> str:
    """Return a part of a token, as bytes or JSON."""
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@contextmanager
def serving(path: str = "") -> Iterator[Issuer]:
    """Serve an issuer whose identifier has a path."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            issuer.asked[self.path] += 1
            self.answer(issuer.documents.get(self.path))

        def do_POST(self) -> None:
            issuer.asked[self.path] += 1
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            form = {name: values[0] for name, values in parse_qs(body).items()}
            issuer.forms.append(form)
            issuer.authorizations.append(self.headers.get("Authorization", ""))
            self.answer(issuer.introspected.get(form.get("token", ""), {"active": False}))

        def answer(self, document: Any) -> None:
            status = 503 if not issuer.answers else 404 if document is None else 200
            if isinstance(document, tuple):
                status, document = document
            body = document if isinstance(document, bytes) else json.dumps(document).encode()
            self.send_response(status)
            if status == 302:
                self.send_header("Location", f"{issuer.origin}/elsewhere")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    issuer = Issuer(f"http://127.0.0.1:{server.server_port}{path}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield issuer
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
