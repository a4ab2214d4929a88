"""A host on this machine that shows documents of clients by HTTPS."""

from __future__ import annotations

import datetime as dt
import ipaddress
import json
import ssl
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat


def write_certificate(directory: Path) -> tuple[Path, Path]:
    """Write a certificate for 127.0.0.1 and localhost, signed by itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = dt.datetime.now(dt.UTC)
    names = [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("localhost")]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    paths = directory / "certificate.pem", directory / "key.pem"
    paths[0].write_bytes(certificate.public_bytes(Encoding.PEM))
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    paths[1].write_bytes(private)
    return paths


class DocumentHost:
    """What it shows, and what it was asked for."""

    def __init__(self, port: int, certificate: Path) -> None:
        self.url = f"https://127.0.0.1:{port}"
        self.certificate = certificate
        self.shown: dict[str, Any] = {}
        """By path: JSON, bytes, or a status with headers and a body."""
        self.asked: Counter[str] = Counter()
        self.drips = False
        """Whether it sends a byte at a time, for ever."""
        self.ended = threading.Event()

    def show(self, path: str = "/client.json", **changed: Any) -> str:
        """Show the document of a client at a path; return its id."""
        client_id = f"{self.url}{path}"
        document = {
            "client_id": client_id,
            "client_name": "Editor",
            "redirect_uris": ["http://127.0.0.1/callback"],
            **changed,
        }
        self.shown[path] = {key: value for key, value in document.items() if value is not None}
        return client_id

    def trusted(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.certificate))


@contextmanager
def serving_documents(directory: Path) -> Iterator[DocumentHost]:
    """Serve documents on this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            host.asked[self.path] += 1
            found = host.shown.get(self.path)
            status, headers, body = 404 if found is None else 200, {}, found
            if isinstance(found, tuple):
                status, headers, body = found
            self.send_response(status)
            headers = {"Content-Type": "application/json", **headers}
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            if host.drips:
                self.drip()
            else:
                self.wfile.write(body if isinstance(body, bytes) else json.dumps(body).encode())

        def drip(self) -> None:
            try:
                while not host.ended.wait(0.05):
                    self.wfile.write(b" ")
            except OSError:
                host.ended.set()

        def log_message(self, *args: Any) -> None:
            """Say nothing."""

    certificate, key = write_certificate(directory)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(
        server.socket, server_side=True, do_handshake_on_connect=False
    )
    host = DocumentHost(server.server_port, certificate)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield host
    finally:
        host.ended.set()
        server.shutdown()
        thread.join()
        server.server_close()
