"""The login that a scenario of the official suite needs, by the official SDK's OAuth providers."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import (
    ClientCredentialsOAuthProvider,
    PrivateKeyJWTOAuthProvider,
    SignedJWTParameters,
)
from mcp.client.auth.extensions.identity_assertion import IdentityAssertionOAuthProvider
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from pydantic import AnyUrl

from django_mcp.client.auth import Auth

CALLBACK = "http://localhost:3000/callback"
METADATA_DOCUMENT = "https://conformance-test.local/client-metadata.json"
"""The suite knows its content; nobody fetches it."""
JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
TOKEN_TYPES = "urn:ietf:params:oauth:token-type"


class Storage:
    """Keeps a login in memory."""

    def __init__(self, client: OAuthClientInformationFull | None = None) -> None:
        self._client = client
        self._tokens: OAuthToken | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self._tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._client = client_info


class Browser:
    """A person who agrees at once."""

    async def visit(self, url: str) -> None:
        async with httpx.AsyncClient() as client:
            response = await client.get(url)
        query = parse_qs(urlsplit(response.headers["location"]).query)
        self._answer = {name: query[name][0] for name in ("code", "state", "iss") if name in query}

    async def come_back(self) -> AuthorizationCodeResult:
        return AuthorizationCodeResult(**self._answer)


class WorkloadLogin(httpx.Auth):
    """Shows the token of a workload, and gets one for the server; the SDK has no such provider."""

    def __init__(self, endpoint: str, resource: str, assertion: str) -> None:
        self._endpoint = endpoint
        self._form = {"grant_type": JWT_BEARER, "assertion": assertion, "resource": resource}
        self._token = ""

    async def async_auth_flow(
        self, request: httpx.Request
    ) -> AsyncGenerator[httpx.Request, httpx.Response]:
        if self._token:
            request.headers["Authorization"] = f"Bearer {self._token}"
        response = yield request
        if response.status_code == 401:
            answer = yield httpx.Request("POST", self._endpoint, data=self._form)
            self._token = json.loads(await answer.aread())["access_token"]
            request.headers["Authorization"] = f"Bearer {self._token}"
            yield request


async def login(scenario: str, url: str) -> Auth:
    """Make what logs in at `url`, with what the suite tells the client of a scenario."""
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    match scenario:
        case "auth/client-credentials-basic":
            return ClientCredentialsOAuthProvider(
                server_url=url,
                storage=Storage(),
                client_id=context["client_id"],
                client_secret=context["client_secret"],
                issuer=await issuer_of(url),
            )
        case "auth/client-credentials-jwt":
            return await signed(url, context)
        case "auth/enterprise-managed-authorization":
            return await across_applications(url, context)
        case "auth/wif-jwt-bearer":
            issuer = await issuer_of(url)
            metadata = await read(f"{issuer}/.well-known/oauth-authorization-server")
            return WorkloadLogin(metadata["token_endpoint"], url, context["valid_jwt"])
        case "auth/pre-registration":
            known = OAuthClientInformationFull(
                redirect_uris=[AnyUrl(CALLBACK)],
                token_endpoint_auth_method="client_secret_basic",
                client_id=context["client_id"],
                client_secret=context["client_secret"],
                issuer=context["issuer"],
            )
            return person(url, Storage(known))
    return person(url, Storage())


def person(url: str, storage: Storage) -> OAuthClientProvider:
    """Log in a person, by a metadata document where the server takes one."""
    browser = Browser()
    return OAuthClientProvider(
        server_url=url,
        client_metadata=OAuthClientMetadata(
            client_name="django_mcp", redirect_uris=[AnyUrl(CALLBACK)]
        ),
        storage=storage,
        redirect_handler=browser.visit,
        callback_handler=browser.come_back,
        client_metadata_url=METADATA_DOCUMENT,
    )


async def signed(url: str, context: dict[str, Any]) -> PrivateKeyJWTOAuthProvider:
    """Log in a machine by a key."""
    parameters = SignedJWTParameters(
        issuer=context["client_id"],
        subject=context["client_id"],
        signing_key=context["private_key_pem"],
        signing_algorithm=context["signing_algorithm"],
    )
    return PrivateKeyJWTOAuthProvider(
        server_url=url,
        storage=Storage(),
        client_id=context["client_id"],
        assertion_provider=parameters.create_assertion_provider(),
        issuer=await issuer_of(url),
    )


async def across_applications(url: str, context: dict[str, Any]) -> IdentityAssertionOAuthProvider:
    """Log in whom the enterprise's own identity provider knows."""

    async def assertion(audience: str, resource: str) -> str:
        form = {
            "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
            "client_id": context["idp_client_id"],
            "subject_token": context["idp_id_token"],
            "subject_token_type": f"{TOKEN_TYPES}:id_token",
            "requested_token_type": f"{TOKEN_TYPES}:id-jag",
            "audience": audience,
            "resource": resource,
        }
        async with httpx.AsyncClient() as client:
            response = await client.post(context["idp_token_endpoint"], data=form)
        return str(response.json()["access_token"])

    return IdentityAssertionOAuthProvider(
        server_url=url,
        storage=Storage(),
        client_id=context["client_id"],
        client_secret=context["client_secret"],
        issuer=await issuer_of(url),
        assertion_provider=assertion,
        token_endpoint_auth_method="client_secret_basic",
    )


async def issuer_of(url: str) -> str:
    """What an operator would have configured, and the suite does not tell."""
    split = urlsplit(url)
    where = f"{split.scheme}://{split.netloc}/.well-known/oauth-protected-resource{split.path}"
    return str((await read(where))["authorization_servers"][0])


async def read(url: str) -> dict[str, Any]:
    """Read a document."""
    async with httpx.AsyncClient() as client:
        response = await client.get(url)
    document: dict[str, Any] = response.json()
    return document
