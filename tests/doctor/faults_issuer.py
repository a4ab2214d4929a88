"""Faults of who issues the tokens."""

from __future__ import annotations

from collections.abc import Iterator

from .plants import BROKEN, NOTE, WARNING, Fault, both, document, metadata
from .site import ISSUER


def _issuer() -> Iterator[Fault]:
    yield Fault(
        "no-metadata",
        True,
        lambda site: site.documents.pop(ISSUER) and None,
        BROKEN,
        "no-metadata",
        "/.well-known/oauth-authorization-server (404, application/json)",
    )
    yield Fault(
        "below-the-path",
        True,
        both(
            document(authorization_servers=["ORIGIN/o"]),
            lambda site: site.documents.update({"/o" + ISSUER: site.metadata}),
        ),
        BROKEN,
        "no-metadata",
        "/o/.well-known/oauth-authorization-server, where clients do not look",
    )
    yield Fault(
        "here-alone",
        True,
        document(authorization_servers=["ftp://id.example.com"]),
        BROKEN,
        "issuer-url",
        "ftp://id.example.com is no URL that clients go to",
    )
    yield Fault(
        "other-issuer",
        True,
        metadata(issuer="https://id.example.com"),
        BROKEN,
        "issuer-differs",
        "is of the issuer https://id.example.com, and the resource names",
    )
    yield Fault(
        "issuer-slash",
        True,
        metadata(issuer="ORIGIN/"),
        BROKEN,
        "issuer-differs",
        "Clients must not use it",
    )
    yield Fault(
        "two-issuers",
        True,
        lambda site: site.documents.update(
            {"/.well-known/openid-configuration": {**site.metadata, "issuer": f"{site.origin}/o"}}
        ),
        WARNING,
        "issuer-differs",
        "/.well-known/openid-configuration is of the issuer",
    )
    yield Fault(
        "no-token-endpoint",
        True,
        metadata(token_endpoint=None),
        BROKEN,
        "endpoint",
        "has no token_endpoint",
    )
    yield Fault(
        "plain-endpoint",
        True,
        metadata(token_endpoint="http://id.example.com/token"),
        BROKEN,
        "endpoint-scheme",
        "is not HTTPS: http://id.example.com/token",
    )
    yield Fault(
        "implicit",
        True,
        metadata(response_types_supported=["token"]),
        BROKEN,
        "no-code",
        "issues no codes",
    )
    yield Fault(
        "machines",
        True,
        metadata(grant_types_supported=["client_credentials"]),
        BROKEN,
        "no-code",
        "issues no codes",
    )
    yield Fault(
        "no-refresh",
        True,
        metadata(grant_types_supported=["authorization_code"]),
        WARNING,
        "no-refresh",
        "People log in again",
    )
    yield Fault(
        "no-pkce",
        True,
        metadata(code_challenge_methods_supported=None),
        BROKEN,
        "pkce",
        "says nothing of PKCE",
    )
    yield Fault(
        "plain-pkce",
        True,
        metadata(code_challenge_methods_supported=["plain"]),
        BROKEN,
        "pkce",
        "does not take S256 of PKCE",
    )
    yield Fault(
        "no-iss",
        True,
        metadata(authorization_response_iss_parameter_supported=None),
        NOTE,
        "no-iss",
        "Its answers do not name it",
    )
    yield Fault(
        "unknown-scope",
        True,
        metadata(scopes_supported=["openid", "list"]),
        BROKEN,
        "unknown-scopes",
        "told to ask for read, which the authorization server does not",
    )
    yield Fault(
        "scopes-of-openid",
        True,
        metadata(scopes_supported=["openid", "profile", "offline_access"]),
        NOTE,
        "unknown-scopes",
        "lists none but those of OpenID Connect",
    )
    yield Fault(
        "two-metadata",
        True,
        lambda site: site.documents.update(
            {
                "/.well-known/openid-configuration": {
                    **site.metadata,
                    "registration_endpoint": f"{site.origin}/elsewhere",
                }
            }
        ),
        NOTE,
        "issuer-documents",
        "says something else as registration_endpoint than",
    )
    yield Fault(
        "by-hand",
        True,
        metadata(client_id_metadata_document_supported=None, registration_endpoint=None),
        WARNING,
        "no-registration",
        "cannot come to a client id by itself",
    )
    yield Fault(
        "registration-alone",
        True,
        metadata(client_id_metadata_document_supported=False),
        NOTE,
        "no-cimd",
        "takes no client ids that are documents",
    )
    yield Fault(
        "documents-alone",
        True,
        metadata(registration_endpoint=None),
        WARNING,
        "no-dcr",
        "It takes documents alone",
    )
    yield Fault(
        "no-none",
        True,
        metadata(token_endpoint_auth_methods_supported=["client_secret_basic"]),
        WARNING,
        "no-none",
        '"none" is not among',
    )
    yield Fault(
        "no-internet",
        True,
        lambda site: site.documents.pop("/client.json") and None,
        BROKEN,
        "client-document",
        "The document of a client cannot be fetched here",
    )


FAULTS = [*_issuer()]
