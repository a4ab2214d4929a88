"""What is known of authorization servers that others run: the doctor's only place that says so.

They have settings that are not seen from outside, and documents that say less than they do, or
more. ``seen`` names the pages of the maker's that the facts are from, as they were on the day
``READ``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final
from urllib.parse import urlsplit

from .findings import Finding, Level
from .visit import AuthorizationServer

READ: Final = "2026-11-25"


@dataclass(frozen=True, slots=True)
class Remark:
    """What a finding means for one of them."""

    message: str = ""
    """Sentences that follow those of the finding."""
    cure: str = ""
    """What to do there, instead of what the finding says; empty where that is right."""
    level: Level | None = None
    """How grave it is there, where that is another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownIssuer:
    """One of them, and by what it is recognised."""

    name: str
    seen: str
    hosts: tuple[str, ...] = ()
    """How the names of its own hosts end. Many have hosts of their customers."""
    paths: Mapping[str, str]
    """How the paths of URLs in its metadata end."""
    audience: str
    """When tokens are for the endpoint; RESOURCE stands for its URL."""
    needs_whole_scopes: bool = False
    """Whether a scope names its API, and a client without any gets no token for it."""
    if_document: str = ""
    """On what it depends that a client's document is taken, where the metadata says that it is."""
    if_registering: str = ""
    """On what it depends that a client may register, where the metadata says that it may."""
    remarks: Mapping[str, Remark] = field(default_factory=dict)
    """By the names of findings."""


NOTHING_TO_SET: Final = "Nothing can be set there."
NO_ISS: Final = Remark(cure=NOTHING_TO_SET)

KEYCLOAK: Final = KnownIssuer(
    name="Keycloak",
    seen="www.keycloak.org/securing-apps/mcp-authz-server",
    paths={"token_endpoint": "/protocol/openid-connect/token"},
    audience="a mapper of the type Audience puts RESOURCE into aud, or resource indicators are on",
    if_document="a client policy of the realm lets that document in",
    if_registering="the realm lets strangers register, which by default it does not",
    remarks={
        "registration": Remark(
            "Keycloak says so whether strangers may register or not; by default they may not.",
            "Allow it in the realm under Clients, Client registration, or register clients by hand "
            "and give people the id.",
            Level.NOTE,
        ),
        "no-cimd": Remark(cure="Start Keycloak 26.7 or newer with --features=cimd."),
        "no-none": Remark(cure="Upgrade to Keycloak 26.7, which has it with --features=cimd."),
    },
)

AUTH0: Final = KnownIssuer(
    name="Auth0",
    seen="auth0.com/ai/docs/mcp, auth0.com/docs",
    hosts=(".auth0.com",),
    paths={"token_endpoint": "/oauth/token", "jwks_uri": "/.well-known/jwks.json"},
    audience=(
        "an API has the identifier RESOURCE, and the tenant's Resource Parameter Compatibility "
        "Profile is on"
    ),
    if_document="an administrator has imported that document",
    if_registering="the tenant's Dynamic Client Registration is on",
    remarks={
        "registration": Remark(
            "Auth0 takes only documents that an administrator has imported, and lets clients "
            "register where the tenant has that switched on. Either gets tokens where the API "
            "permits third-party applications.",
            "Import the documents of your clients (Applications, Create Application, Import from "
            "URL), or switch on Dynamic Client Registration.",
            Level.NOTE,
        ),
        "no-cimd": Remark(
            cure="Switch on Client ID Metadata Document Registration, in Settings, Advanced."
        ),
        "no-iss": Remark(
            cure="Switch on Include Issuer in Authorization Responses, in Settings, Advanced."
        ),
        "unknown-scopes": Remark(
            "Auth0 never lists those of an API, so that this says nothing.",
            "See that the API has them.",
            Level.NOTE,
        ),
        "no-none": Remark(
            "Auth0 takes public clients all the same, which it does not say.",
            "Switch on Dynamic Client Registration as well, for clients that go by this.",
        ),
    },
)

ENTRA: Final = KnownIssuer(
    name="Microsoft Entra ID",
    seen="learn.microsoft.com/entra/agent-id/secure-mcp-server-with-entra-id",
    hosts=("login.microsoftonline.com", "login.microsoftonline.us", "sts.windows.net"),
    paths={"token_endpoint": "/oauth2/v2.0/token", "jwks_uri": "/discovery/v2.0/keys"},
    audience=(
        "RESOURCE is an Application ID URI of a registration whose tokens are of version 2, letter "
        "by letter; they name its client id, for TOKEN_AUDIENCES"
    ),
    needs_whole_scopes=True,
    remarks={
        "pkce": Remark(
            "Microsoft Entra ID takes S256 all the same, which it does not say. The official SDKs "
            "go on; other clients refuse.",
            "Nothing can be set there: use clients that go on.",
            Level.WARNING,
        ),
        "no-registration": Remark(
            cure="Register each client by hand, and give people its id: there is no other way.",
        ),
        "issuer-differs": Remark(
            cure="Name https://login.microsoftonline.com/TENANT/v2.0, with the id of the tenant (a "
            "GUID): not common, organizations, a domain, or an issuer of version 1.",
        ),
        "unknown-scopes": Remark(
            "Microsoft Entra ID never lists those of an API, so that this says nothing.",
            "See that the registration exposes them.",
            Level.NOTE,
        ),
        "no-iss": NO_ISS,
    },
)

AUTHKIT: Final = KnownIssuer(
    name="AuthKit of WorkOS",
    seen="workos.com/docs/authkit/mcp, workos.com/docs/authkit/connect/token-claims",
    hosts=(".authkit.app",),
    paths={"token_endpoint": "/oauth2/token", "introspection_endpoint": "/oauth2/introspection"},
    audience="RESOURCE is among the MCP resource indicators of the environment",
    remarks={
        "unknown-scopes": Remark(
            "AuthKit gives none but these to clients that register themselves or have a document.",
            "Ask for none: leave BASE_SCOPES empty, and decide by the permissions of users.",
            Level.BROKEN,
        ),
        "no-registration": Remark(cure="Switch CIMD on, in the dashboard: Connect, Configuration."),
        "no-cimd": Remark(cure="Switch it on, in the dashboard: Connect, Configuration."),
        "no-dcr": Remark(cure="Switch it on, in the dashboard: Connect, Configuration."),
        "no-iss": NO_ISS,
    },
)

ISSUERS: Final = (KEYCLOAK, AUTH0, ENTRA, AUTHKIT)


def known_issuer(server: AuthorizationServer) -> KnownIssuer | None:
    """Return which of them it is: by its host, or by where its endpoints are."""
    host = _part(server.issuer, "hostname")
    for each in ISSUERS:
        has_paths = all(
            _part(server.url(key), "path").endswith(end) for key, end in each.paths.items()
        )
        if has_paths or (each.hosts and host.endswith(each.hosts)):
            return each
    return None


def _part(url: str, name: str) -> str:
    try:
        return getattr(urlsplit(url), name) or ""
    except ValueError:
        return ""


def as_known(server: AuthorizationServer, finding: Finding) -> Finding:
    """Return what a finding means for this authorization server."""
    known = known_issuer(server)
    remark = None if known is None else known.remarks.get(finding.name)
    if remark is None:
        return finding
    return replace(
        finding,
        level=remark.level or finding.level,
        message=f"{finding.message} {remark.message}".rstrip(),
        cure=remark.cure or finding.cure,
    )
