"""The way to a server: names, addresses, certificates, and a server that takes its time."""

from __future__ import annotations

import datetime as dt
import ipaddress
import socket
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from django_mcp.doctor.examination import Report
from django_mcp.doctor.findings import Level
from django_mcp.doctor.visit import Options

from .conftest import examined, look, options_for
from .site import HOST, Answer, Asked, Site, served

QUICK = Options(timeout=1.0, watch=0.2, client_document="")


def found(report: Report, name: str, level: Level = Level.BROKEN) -> str:
    """What is said of something; and nothing else may be said after what ends the visit."""
    (finding,) = [each for each in report.findings if each.name == name]
    assert finding.level is level
    assert finding.cure or level is not Level.BROKEN
    return finding.message


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def test_a_name_that_nobody_knows():
    report = examined("https://no-such-host.invalid/mcp", QUICK)

    assert "no-such-host.invalid is not known here" in found(report, "unknown-name")
    assert report.findings[-1].name == "unknown-name"


def test_a_port_at_which_nobody_answers():
    report = examined(f"http://{HOST}:{free_port()}/mcp", QUICK)

    assert "Connection refused" in found(report, "unreachable")
    assert report.findings[-1].name == "unreachable"


def test_a_private_address_without_https():
    # Linux leads 0.0.0.0 to this machine, and it is no address of its loopback.
    with served(Site(guarded=False)) as site:
        report = examined(site.url.replace(HOST, "0.0.0.0"), options_for(site))

    assert "begins with http://" in found(report, "plain-http")
    assert "has private addresses only (0.0.0.0)" in found(report, "private", Level.NOTE)
    assert "Claude (web, Desktop, mobile) cannot connect" in report.findings[-8].message


def test_localhost_of_which_one_address_is_deaf():
    with served(Site(guarded=False)) as site:
        report = examined(site.url.replace(HOST, "localhost"), options_for(site))

    addresses = {each[4][0] for each in socket.getaddrinfo("localhost", 80)}
    assert report.count(Level.BROKEN) == 0
    if addresses > {HOST}:
        assert "::1: Connection refused" in found(report, "deaf-address", Level.NOTE)
    else:
        assert "of 127.0.0.1" in found(report, "reachable", Level.GOOD)


def test_localhost_and_127_0_0_1_are_two_resources():
    with served(Site(guarded=True)) as site:
        report = examined(site.url.replace(HOST, "localhost"), options_for(site))

    said = found(report, "resource-loopback")
    assert f"is about {site.url}, and you connect to http://localhost:" in said
    (codex,) = [each.message for each in report.findings if "Codex" in each.message]
    assert "its login fails by what is broken above (resource-loopback)" in codex


def test_a_server_that_says_nothing():
    def hold(asked: Asked, answer: Answer) -> Answer:
        site.closing.wait(5)
        return answer

    with served(Site(guarded=False)) as site:
        site.between.append(hold)
        report = examined(site.url, Options(timeout=0.3, client_document=""))
        assert "no answer came within 0.3 seconds" in found(report, "no-answer")
        assert report.findings[-1].name == "no-answer"


def test_a_get_that_is_held_back():
    def hold(asked: Asked, answer: Answer) -> Answer:
        if asked.method == "GET" and asked.is_endpoint:
            site.closing.wait(5)
        return answer

    with served(Site(guarded=False)) as site:
        site.between.append(hold)
        report = look(site, options=options_for(site, timeout=0.5))
        assert "Clients that ask for a stream of the session wait" in found(
            report, "get", Level.WARNING
        )


def test_a_document_that_is_held_back():
    def hold(asked: Asked, answer: Answer) -> Answer:
        if asked.path == "/.well-known/openid-configuration":
            site.closing.wait(5)
        return answer

    with served(Site(guarded=False)) as site:
        site.between.append(hold)
        report = look(site, options=options_for(site, timeout=0.5))
        assert "no answer at /.well-known/openid-configuration" in found(report, "document-silent")


def test_a_stream_whose_head_is_held_back():
    def hold(asked: Asked, answer: Answer) -> Answer:
        if asked.rpc == "subscriptions/listen":
            site.closing.wait(5)
        return answer

    with served(Site(guarded=False)) as site:
        site.between.append(hold)
        report = look(site, options=options_for(site, timeout=0.5))
        assert "of subscriptions/listen no answer came within 0.5 seconds" in found(
            report, "buffered"
        )


def test_what_is_no_http():
    with socket.create_server((HOST, 0)) as listener:
        report = examined(f"https://{HOST}:{listener.getsockname()[1]}/mcp", QUICK)
    assert "No secure connection comes about" in found(report, "tls")


# Certificates


USAGE = dict.fromkeys(
    (
        *("content_commitment", "key_encipherment", "data_encipherment", "key_agreement"),
        *("key_cert_sign", "crl_sign", "encipher_only", "decipher_only"),
    ),
    False,
) | {"digital_signature": True}


class Authority:
    """Issues certificates, and is trusted where SSL_CERT_FILE names its own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority")])
        self.file = directory / "authority.pem"
        own = self._signed(self.name, self.key, days=10, authority=True)
        self.file.write_bytes(own.public_bytes(Encoding.PEM))

    def context(self, *, days: int = 90, address: str = HOST) -> ssl.SSLContext:
        """What a server needs that has a certificate for an address, which lasts some days."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "server")])
        certificate = self._signed(subject, key, days=days, address=address)
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        file = self.directory / f"server-{days}-{address}.pem"
        file.write_bytes(certificate.public_bytes(Encoding.PEM) + private)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(file)
        return context

    def _signed(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        *,
        days: int,
        address: str = HOST,
        authority: bool = False,
    ) -> x509.Certificate:
        now = dt.datetime.now(dt.UTC)
        names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
        builder = (
            x509.CertificateBuilder(subject_name=subject, issuer_name=self.name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(days=100))
            .not_valid_after(now + dt.timedelta(days=days, minutes=5))
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
            .add_extension(names, critical=False)
            .add_extension(x509.KeyUsage(**USAGE | {"key_cert_sign": authority}), critical=True)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()),
                critical=False,
            )
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
        )
        return builder.sign(self.key, hashes.SHA256())


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Authority:
    made = Authority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(made.file))
    return made


def over_tls(context: ssl.SSLContext) -> Report:
    with served(Site(guarded=False), tls=context) as site:
        return look(site)


def test_a_certificate_that_is_accepted(authority: Authority):
    report = over_tls(authority.context())

    assert "accepted, and good for 90 days" in found(report, "certificate", Level.GOOD)
    assert report.count(Level.BROKEN) == report.count(Level.WARNING) == 0


def test_a_document_that_the_server_takes_for_plain_http(authority: Authority):
    """Behind a proxy that ends TLS and does not say so."""
    with served(Site(guarded=True), tls=authority.context()) as site:
        site.challenge = site.challenge.replace("https://", "http://")
        report = look(site)
    assert "names a document at http://, though the endpoint is at https://" in found(
        report, "document-scheme"
    )


def test_a_certificate_that_expires_soon(authority: Authority):
    report = over_tls(authority.context(days=3))
    assert "expires in 3 days" in found(report, "certificate-expires", Level.WARNING)


@pytest.mark.parametrize(
    ("days", "address", "why"),
    [
        pytest.param(-1, HOST, "certificate has expired", id="expired"),
        pytest.param(90, "127.0.0.9", "IP address mismatch", id="another-name"),
    ],
)
def test_a_certificate_that_is_not_accepted(
    authority: Authority, days: int, address: str, why: str
):
    report = over_tls(authority.context(days=days, address=address))

    assert why in found(report, "certificate")
    assert report.findings[-1].name == "certificate"


def test_a_certificate_of_strangers(tmp_path: Path):
    report = over_tls(Authority(tmp_path).context())
    assert "unable to get local issuer certificate" in found(report, "certificate")
