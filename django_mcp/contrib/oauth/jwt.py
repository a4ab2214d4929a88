"""``jwt_auth``: the value of ``AUTH`` that takes the signed tokens of authorization servers."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Mapping
from typing import Any, Final

from django.http import HttpRequest
from django.views.decorators.debug import sensitive_variables

from ...auth import Principal, ProtectedResource, Refusal
from ...conf import get_settings
from ...protocol.headers import bearer_token
from .issuers import Issuer, issuer_of
from .tokens import (
    CLOSED,
    INVALID,
    MAX_TOKEN_CHARACTERS,
    Objection,
    audiences_of,
    check_claims,
    client_of,
    principal_of,
    problems_of,
    resource_of,
)

try:
    from joserfc.errors import JoseError
    from joserfc.jwk import ECKey, OKPKey, RSAKey, import_key
    from joserfc.jws import JWSRegistry, deserialize_compact
except ImportError as error:
    raise ImportError(
        "django_mcp.contrib.oauth.jwt_auth needs joserfc. Install it: "
        "pip install 'django-mcp-endpoints[oauth]'"
    ) from error

logger = logging.getLogger("django_mcp.contrib.oauth")

MIN_RSA_BITS: Final = 2048
_KINDS: Final[dict[str, type]] = {"RS": RSAKey, "PS": RSAKey, "ES": ECKey, "Ed": OKPKey}
"""Which keys an algorithm takes, by how its name begins."""
_TYPES: Final = ("at+jwt", "application/at+jwt", "jwt", None)
"""RFC 9068, section 4, asks for the first two; many issuers write the third, or nothing."""
_OF_ID_TOKENS: Final = ("at_hash", "c_hash", "s_hash")
"""OpenID Connect Core, section 2 and 3.3.2.11: what is about a login, and no token for access."""


@sensitive_variables("token")
def jwt_auth(request: HttpRequest) -> Principal | Refusal:
    """Return the principal whose token an authorization server of the endpoint has signed.

    The token must name the endpoint's URL as its audience. A refusal never says why, but the log
    does.
    """
    resource = resource_of(request)
    if resource is None:
        return CLOSED
    token = bearer_token(request.headers)
    if not token:
        return Refusal(resource.advice)
    header, claims = _unverified(token)
    issuer = claims.get("iss")
    if not isinstance(issuer, str) or issuer not in resource.token_issuers:
        logger.info("Refused a token: %s.", _what_it_is(token, issuer))
        return Refusal(INVALID)
    try:
        _check(token, header, claims, issuer_of(issuer), resource)
    except Objection as objection:
        logger.info("Refused a token of %s: %s.", issuer, objection)
        return Refusal(INVALID, recognised=True)
    return principal_of(claims, comes_back=True)


jwt_auth.problems = problems_of  # type: ignore[attr-defined]


@sensitive_variables("token")
def _what_it_is(token: str, issuer: Any) -> str:
    """Return why nobody here can have issued a token, for the log."""
    if isinstance(issuer, str):
        return (
            f"it says that {ascii(issuer)[:200]} has issued it, which this endpoint does not name"
        )
    if token.count(".") == 4:  # RFC 7516, section 3.1
        return (
            "it is encrypted, so that its issuer alone can read it. Some issue such tokens where "
            "nothing says what a token is for"
        )
    return "it is no signed token that says who has issued it"


@sensitive_variables("token")
def _unverified(token: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return header and claims of what may be a token; empty ones if it cannot be any."""
    parts = token.split(".")
    if len(token) > MAX_TOKEN_CHARACTERS or len(parts) != 3:
        return {}, {}
    try:
        header, claims = (json.loads(_decoded(each)) for each in parts[:2])
    except (ValueError, RecursionError):
        return {}, {}
    is_token = isinstance(header, dict) and isinstance(claims, dict)
    return (header, claims) if is_token else ({}, {})


def _decoded(part: str) -> bytes:
    return base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True)


@sensitive_variables()  # also of the library that is used
def _check(
    token: str,
    header: Mapping[str, Any],
    claims: Mapping[str, Any],
    issuer: Issuer,
    resource: ProtectedResource,
) -> None:
    """Check everything about a token that names one of the endpoint's issuers."""
    algorithm = header.get("alg")
    if algorithm not in get_settings().jwt_algorithms:
        raise Objection("its algorithm is none of JWT_ALGORITHMS")
    if "crit" in header or "b64" in header:
        raise Objection("it has extensions that are not known here")
    kind = header.get("typ")
    if (kind.lower() if isinstance(kind, str) else kind) not in _TYPES:
        raise Objection("it is a token of another type")
    _check_is_for_access(header, claims)
    # Before any key is looked for, since that may have the issuer asked.
    check_claims(claims, resource)
    if resource.urls.isdisjoint(audiences_of(claims)):
        _check_names_its_client(claims)
    key = _find_key(issuer, header.get("kid"), algorithm)
    registry = JWSRegistry(algorithms=[algorithm], strict_check_header=False)
    registry.max_header_length = registry.max_payload_length = MAX_TOKEN_CHARACTERS
    try:
        signed = deserialize_compact(token, key, registry=registry)
        is_same = signed.headers() == header and json.loads(signed.payload) == claims
    except (JoseError, ValueError) as error:
        raise Objection(f"its signature does not hold ({type(error).__name__})") from error
    if not is_same:
        raise Objection("it can be read in two ways")


def _check_is_for_access(header: Mapping[str, Any], claims: Mapping[str, Any]) -> None:
    kind = claims.get("typ")  # as Keycloak has it
    is_id = any(each in claims for each in _OF_ID_TOKENS) or kind in ("ID", "Refresh", "Logout")
    says_access = str(header.get("typ")).lower().endswith("at+jwt") or kind == "Bearer"
    if is_id or ("nonce" in claims and not says_access):
        raise Objection("it is an ID token or the like, and no access token")


def _check_names_its_client(claims: Mapping[str, Any]) -> None:
    """Check that a token for one of TOKEN_AUDIENCES is for access.

    An ID token is for a client, which may have the name that the endpoint has at its issuer: with
    Microsoft Entra ID, where one registration is both.
    """
    if not client_of(claims) or not any(name in claims for name in ("scope", "scp", "roles")):
        raise Objection("it does not say to which client it was issued, and what that may do")


def _find_key(issuer: Issuer, kid: Any, algorithm: str) -> Any:
    """Return the issuer's key for a token; look for newer ones where there is none."""
    key = _usable_key(issuer.keys, kid, algorithm)
    if key is None and issuer.look_for_newer():
        key = _usable_key(issuer.keys, kid, algorithm)
    if key is None:
        raise Objection("its key is none of the issuer's")
    return key


def _usable_key(keys: list[Mapping[str, Any]], kid: Any, algorithm: str) -> Any:
    """Return the key that a token names; without a name, the only one that there is."""
    named = [each for each in keys if kid is None or each.get("kid") == kid]
    usable = [key for each in named if (key := _public_key(each, algorithm)) is not None]
    return usable[0] if len(usable) == 1 else None


def _public_key(data: Mapping[str, Any], algorithm: str) -> Any:
    """Return a published key if it is one that may sign with the algorithm."""
    if data.get("use", "sig") != "sig" or data.get("alg", algorithm) != algorithm:
        return None
    operations = data.get("key_ops")
    if operations is not None and "verify" not in operations:
        return None
    try:
        key: Any = import_key({name: data[name] for name in data if name in _PUBLIC})
    except (JoseError, ValueError, TypeError):
        return None
    if not isinstance(key, _KINDS[algorithm[:2]]):
        return None
    is_short = isinstance(key, RSAKey) and key.raw_value.key_size < MIN_RSA_BITS
    return None if is_short else key


_PUBLIC: Final = frozenset({"kty", "n", "e", "crv", "x", "y"})
"""What is needed of a key: nothing private, and nothing that is not looked at."""
