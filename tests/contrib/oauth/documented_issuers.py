"""Authorization servers that others run, as their documents say: what they publish, and sign.

Each fact has the page that it is from; docs/how-to/external-logins.md has the same for readers. The
keys are made in the tests.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from .issuer import Issuer

TENANT = "aaaabbbb-0000-cccc-1111-dddd2222eeee"
API = "00001111-aaaa-2222-bbbb-3333cccc4444"
"""The client id of the registration that stands for the endpoint at Microsoft Entra ID."""
CLIENT = "11112222-bbbb-3333-cccc-4444dddd5555"
ENVIRONMENT = "client_01HZYX"
"""The client id of an environment at WorkOS."""

Claims = dict[str, Any]


@dataclass(frozen=True)
class Documented:
    """How one of them is set up for an endpoint, and what its tokens are like."""

    name: str
    path: str
    """What follows the origin in the identifier of the issuer."""
    documents: Callable[[str], dict[str, Any]]
    """Its metadata by path, given the origin."""
    keys_path: str
    key: dict[str, Any]
    """What a published key says beside the key itself."""
    header: dict[str, Any]
    claims: Callable[[str, str], Claims]
    """Those of a token for anna, given the origin and the URL of the endpoint."""
    read: str
    """The scope for reading, as tokens have it; the one for writing ends otherwise."""
    client: str
    id_token: Claims
    """What an ID token of hers has instead; ``None`` stands for nothing."""
    settings: Claims
    other_key: dict[str, Any] | None = None
    """What it publishes beside the keys that sign."""

    def issuer(self, origin: str) -> str:
        """The identifier, as the metadata and tokens write it."""
        return f"{origin}{self.path}"

    def publish(self, issuer: Issuer, *keys: Any) -> None:
        """Show the documents, and these keys."""
        issuer.url = self.issuer(issuer.origin)
        issuer.keys = list(keys)
        published = [{**each.as_dict(private=False), **self.key} for each in keys]
        if self.other_key is not None:
            published.append({**published[0], **self.other_key})
        issuer.documents = {
            **self.documents(issuer.origin),
            self.keys_path: {"keys": published},
        }

    def token(self, issuer: Issuer, resource: str, *, key: Any = None, **changed: Any) -> str:
        """A signed token for anna; claims that are ``None`` are left out."""
        now = int(time.time())
        claims = {"exp": now + 300, "iat": now, **self.claims(issuer.origin, resource), **changed}
        claims = {name: value for name, value in claims.items() if value is not None}
        return issuer.sign(claims, key, **self.header)


# Keycloak 26.8


def _keycloak_documents(origin: str) -> dict[str, Any]:
    realm = f"{origin}/realms/shop"
    protocol = f"{realm}/protocol/openid-connect"
    document = {
        "issuer": realm,
        "authorization_endpoint": f"{protocol}/auth",
        "token_endpoint": f"{protocol}/token",
        "introspection_endpoint": f"{protocol}/token/introspect",
        "jwks_uri": f"{protocol}/certs",
        # It is there whether strangers may register or not: "Client registration service", "Client
        # Registration Policies".
        "registration_endpoint": f"{realm}/clients-registrations/openid-connect",
        "grant_types_supported": ["authorization_code", "refresh_token", "client_credentials"],
        "response_types_supported": ["code", "none", "id_token", "code id_token"],
        "response_modes_supported": ["query", "fragment", "form_post", "query.jwt"],
        "scopes_supported": ["openid", "profile", "email", "basic", "orders:read", "orders:write"],
        "code_challenge_methods_supported": ["plain", "S256"],
        "token_endpoint_auth_methods_supported": [
            *("private_key_jwt", "client_secret_basic", "client_secret_post"),
            *("tls_client_auth", "client_secret_jwt"),
        ],
        "authorization_response_iss_parameter_supported": True,
    }
    return {
        # Since 26.4: keycloak.org/docs/latest/upgrading, "RFC 8414 compliant lookup of metadata"
        "/.well-known/oauth-authorization-server/realms/shop": document,
        "/realms/shop/.well-known/oauth-authorization-server": document,
        "/realms/shop/.well-known/openid-configuration": document,
    }


def _keycloak_claims(origin: str, resource: str) -> Claims:
    return {
        "iss": f"{origin}/realms/shop",
        "jti": "onrtac:0f1d6a4e",
        # keycloak.org/securing-apps/mcp-authz-server, "Without Resource Indicators"
        "aud": resource,
        "sub": "anna",
        "typ": "Bearer",
        # server_admin, "Audience support": the client is in azp and not in aud
        "azp": "claude",
        "sid": "1c0d5e6f",
        "acr": "1",
        "allowed-origins": ["http://localhost:6274"],
        "realm_access": {"roles": ["offline_access", "uma_authorization"]},
        "resource_access": {"account": {"roles": ["manage-account"]}},
        "scope": "openid orders:read profile",
        "preferred_username": "anna@example.com",
    }


KEYCLOAK = Documented(
    name="Keycloak",
    path="/realms/shop",
    documents=_keycloak_documents,
    keys_path="/realms/shop/protocol/openid-connect/certs",
    key={"use": "sig", "alg": "RS256", "x5c": ["MIIC"], "x5t": "x"},
    header={"typ": "JWT"},
    claims=_keycloak_claims,
    read="orders:read",
    client="claude",
    id_token={"typ": "ID", "scope": None},
    settings={},
    other_key={"kid": "enc", "use": "enc", "alg": "RSA-OAEP"},
)


# Auth0, in November 2026


def _auth0_documents(origin: str) -> dict[str, Any]:
    # auth0.com/docs/get-started/applications/configure-applications-with-oidc-discovery
    document = {
        "issuer": f"{origin}/",
        "authorization_endpoint": f"{origin}/authorize",
        "token_endpoint": f"{origin}/oauth/token",
        "device_authorization_endpoint": f"{origin}/oauth/device/code",
        "userinfo_endpoint": f"{origin}/userinfo",
        "mfa_challenge_endpoint": f"{origin}/mfa/challenge",
        "jwks_uri": f"{origin}/.well-known/jwks.json",
        "registration_endpoint": f"{origin}/oidc/register",
        "revocation_endpoint": f"{origin}/oauth/revoke",
        "scopes_supported": [
            *("openid", "profile", "offline_access", "name", "given_name", "family_name"),
            *("nickname", "email", "email_verified", "picture", "created_at", "identities"),
            *("phone", "address"),
        ],
        "response_types_supported": ["code", "token", "id_token", "code token", "code id_token"],
        "code_challenge_methods_supported": ["S256", "plain"],
        "response_modes_supported": ["query", "fragment", "form_post"],
        "token_endpoint_auth_methods_supported": [
            *("client_secret_basic", "client_secret_post", "private_key_jwt"),
        ],
    }
    return {
        "/.well-known/openid-configuration": document,
        "/.well-known/oauth-authorization-server": document,
    }


def _auth0_claims(origin: str, resource: str) -> Claims:
    # auth0.com/docs/secure/tokens/access-tokens/access-token-profiles
    return {
        "iss": f"{origin}/",
        "sub": "anna",
        "aud": [resource, f"{origin}/userinfo"],
        "azp": "tpc_8SXWY6j3afl2",
        "scope": "openid profile orders:read",
        "permissions": ["orders:read", "orders:write"],
    }


AUTH0 = Documented(
    name="Auth0",
    path="/",
    documents=_auth0_documents,
    keys_path="/.well-known/jwks.json",
    key={"use": "sig", "alg": "RS256", "x5c": ["MIID"], "x5t": "x"},
    header={"typ": "JWT"},
    claims=_auth0_claims,
    read="orders:read",
    client="tpc_8SXWY6j3afl2",
    id_token={"aud": "tpc_8SXWY6j3afl2", "azp": None, "scope": None, "nonce": "a"},
    settings={},
)


def _auth0_profile_claims(origin: str, resource: str) -> Claims:
    claims = _auth0_claims(origin, resource)
    del claims["azp"]
    # A client that was imported from its document has the URL as its id.
    return {**claims, "client_id": "https://claude.ai/client", "jti": "73WakrfVbNJBaAmhQtEeDv"}


AUTH0_RFC_9068 = replace(
    AUTH0,
    name="Auth0, RFC 9068",
    header={"typ": "at+jwt"},
    claims=_auth0_profile_claims,
    client="https://claude.ai/client",
)


# Microsoft Entra ID, in November 2026


def _entra_documents(origin: str) -> dict[str, Any]:
    # learn.microsoft.com/entra/identity-platform/v2-protocols-oidc; there is no document of RFC
    # 8414, and none says anything of PKCE.
    login = f"{origin}/{TENANT}"
    document = {
        "token_endpoint": f"{login}/oauth2/v2.0/token",
        "token_endpoint_auth_methods_supported": [
            *("client_secret_post", "private_key_jwt", "client_secret_basic"),
        ],
        "jwks_uri": f"{login}/discovery/v2.0/keys",
        "response_modes_supported": ["query", "fragment", "form_post"],
        "subject_types_supported": ["pairwise"],
        "id_token_signing_alg_values_supported": ["RS256"],
        "response_types_supported": ["code", "id_token", "code id_token", "id_token token"],
        "scopes_supported": ["openid", "profile", "email", "offline_access"],
        "issuer": f"{login}/v2.0",
        "authorization_endpoint": f"{login}/oauth2/v2.0/authorize",
    }
    return {f"/{TENANT}/v2.0/.well-known/openid-configuration": document}


def _entra_claims(origin: str, resource: str) -> Claims:
    # learn.microsoft.com/entra/identity-platform/access-token-claims-reference
    return {
        "aud": API,
        "iss": f"{origin}/{TENANT}/v2.0",
        "nbf": int(time.time()),
        "aio": "AXQAi/8IAAAA",
        "azp": CLIENT,
        "azpacr": "0",
        "oid": "222222ff-ff1a-4d56-abd1-7e4f7d38e474",
        "rh": "I",
        "scp": "orders.read",
        "sub": "anna",
        "tid": TENANT,
        "uti": "fqiBqXLPj0eQa82S-IYFAA",
        "ver": "2.0",
    }


ENTRA = Documented(
    name="Microsoft Entra ID",
    path=f"/{TENANT}/v2.0",
    documents=_entra_documents,
    keys_path=f"/{TENANT}/discovery/v2.0/keys",
    key={
        "use": "sig",
        "x5t": "x",
        "x5c": ["MIID"],
        "issuer": f"https://login.example/{TENANT}/v2.0",
    },
    header={"typ": "JWT"},
    claims=_entra_claims,
    read="orders.read",
    client=CLIENT,
    # learn.microsoft.com/entra/identity-platform/id-token-claims-reference
    id_token={"azp": None, "azpacr": None, "scp": None, "roles": ["Shop.Clerk"]},
    settings={
        "TOKEN_AUDIENCES": {"http://testserver/mcp": API},
        "SCOPE_FORMAT": "{resource}/{scope}",
    },
)


# AuthKit of WorkOS, in November 2026


def _authkit_documents(origin: str) -> dict[str, Any]:
    # workos.com/docs/authkit/mcp, and workos.com/docs/reference/workos-connect/metadata
    both = {
        "issuer": origin,
        "authorization_endpoint": f"{origin}/oauth2/authorize",
        "introspection_endpoint": f"{origin}/oauth2/introspection",
        "response_types_supported": ["code"],
        "scopes_supported": ["email", "offline_access", "openid", "profile"],
        "token_endpoint": f"{origin}/oauth2/token",
        "token_endpoint_auth_methods_supported": [
            *("none", "client_secret_post", "client_secret_basic"),
        ],
    }
    return {
        # As that page has it: without the place of the keys.
        "/.well-known/oauth-authorization-server": {
            **both,
            "code_challenge_methods_supported": ["S256"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "registration_endpoint": f"{origin}/oauth2/register",
            "client_id_metadata_document_supported": True,
            "response_modes_supported": ["query"],
        },
        "/.well-known/openid-configuration": {
            **both,
            "grant_types_supported": ["authorization_code", "client_credentials", "refresh_token"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "jwks_uri": f"{origin}/oauth2/jwks",
            "subject_types_supported": ["public"],
        },
    }


def _authkit_claims(origin: str, resource: str) -> Claims:
    # workos.com/docs/authkit/connect/token-claims. Scopes of the site's own are those of an
    # application that was made by hand.
    return {
        "iss": origin,
        "aud": resource,
        "sub": "anna",
        "client_id": "client_01JP8BD0CZ401TDF9X54NT5ZEK",
        "org_id": "org_01EHZNVPK3SFK441A1RGBFSHRT",
        "sid": "app_consent_01JP8BD0CZ",
        "scope": "openid profile orders:read",
        "jti": "01JMGA70GA2W47M7Z53JG355GW",
    }


AUTHKIT = Documented(
    name="AuthKit",
    path="",
    documents=_authkit_documents,
    keys_path="/oauth2/jwks",
    key={"use": "sig", "alg": "RS256"},
    header={"typ": None},
    claims=_authkit_claims,
    read="orders:read",
    client="client_01JP8BD0CZ401TDF9X54NT5ZEK",
    id_token={"aud": "client_01JP8BD0CZ401TDF9X54NT5ZEK", "scope": None, "nonce": "a"},
    settings={},
)

ALL = (KEYCLOAK, AUTH0, AUTH0_RFC_9068, ENTRA, AUTHKIT)
