"""Registration of clients by themselves (RFC 7591), as far as MCP needs it.

DOT's own would give a machine without a user all scopes, take plain HTTP, and answer with a token
that is good for the endpoints as well. Here there are authorization codes for people, and no token:
whoever wants to change a registration registers anew.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from typing import Any, Final

from django.core.exceptions import ValidationError
from django.http import HttpRequest, JsonResponse
from django.views import View
from django.views.decorators.debug import sensitive_variables
from oauth2_provider.settings import oauth2_settings

from ....conf import get_settings
from ....http.rate_limits import address_key
from ....partitions import here
from ....protocol.errors import Unavailable
from ....rates import Rate
from ....store.access.rate_counters import spend
from ..client_documents import MAX_DOCUMENT_BYTES, MAX_NAME_CHARACTERS, MAX_REDIRECT_URIS
from .guarding import Guarded
from .models import Application
from .redirects import objection_to
from .site import sentences

METHODS: Final = ("none", "client_secret_basic", "client_secret_post")
"""How clients may say at the token endpoint who they are."""


class Refused(Exception):
    """Nothing is registered; the text says why."""

    def __init__(self, description: str, error: str = "invalid_client_metadata") -> None:
        super().__init__(description)
        self.error = error


class RegistrationView(Guarded, View):
    """Registers a client: POST, as JSON."""

    reads_form = False

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Answer 404 where clients cannot register themselves."""
        if not oauth2_settings.DCR_ENABLED:
            return _answer(404, error="not_found", error_description="Clients cannot register.")
        return super().dispatch(request, *args, **kwargs)

    @sensitive_variables("secret")
    def post(self, request: HttpRequest) -> JsonResponse:
        """Register a client, and say under which id."""
        classes = oauth2_settings.DCR_REGISTRATION_PERMISSION_CLASSES
        if not classes or not all(each().has_permission(request) for each in classes):
            return _answer(401, error="access_denied", error_description="Clients cannot register.")
        waiting = _count(request)
        if waiting:
            description = "Too many clients were registered from there; try again later."
            response = _answer(429, error="slow_down", error_description=description)
            response.headers["Retry-After"] = str(math.ceil(waiting))
            return response
        try:
            metadata = _read(request)
            method = _method_of(metadata)
            application = _application(metadata, method)
            scope = _scope_of(metadata)
        except Refused as refused:
            return _answer(400, error=refused.error, error_description=str(refused))
        # It is hashed when it is saved.
        secret = application.client_secret if method != "none" else ""
        application.save()
        return _answer(201, **_described(application, method, scope, secret))


def _count(request: HttpRequest) -> float:
    """Return how many seconds somebody at this address has to wait."""
    rate = get_settings().registration_rate
    if not rate:
        return 0.0
    key = f"registration\n{address_key(request.META.get('REMOTE_ADDR', ''), here())}"
    try:
        return spend(hashlib.sha256(key.encode()).hexdigest(), Rate.parse(rate))
    except Unavailable as error:
        return float(error.retry_after)


def _read(request: HttpRequest) -> dict[str, Any]:
    said = request.META.get("CONTENT_LENGTH") or "0"
    is_long = not said.isdecimal() or len(said) > 9 or int(said) > MAX_DOCUMENT_BYTES
    if is_long or len(request.body) > MAX_DOCUMENT_BYTES:
        raise Refused(f"Send {MAX_DOCUMENT_BYTES} bytes at most.")
    try:
        metadata = json.loads(request.body)
    except (ValueError, RecursionError):
        metadata = None
    if not isinstance(metadata, dict):
        raise Refused("Send an object of JSON.")
    return metadata


def _method_of(metadata: dict[str, Any]) -> str:
    # RFC 7591, section 2: the first of them, where a client does not say.
    method = metadata.get("token_endpoint_auth_method", "client_secret_basic")
    if method not in METHODS:
        raise Refused(f"token_endpoint_auth_method is one of {', '.join(METHODS)}.")
    return str(method)


def _application(metadata: dict[str, Any], method: str) -> Any:
    # Others that a client lists, such as device codes, are left out: section 3.2.1 lets us.
    if "authorization_code" not in _listed(metadata, "grant_types", "authorization_code"):
        raise Refused("grant_types must have authorization_code.")
    if "code" not in _listed(metadata, "response_types", "code"):
        raise Refused("response_types must have code.")
    name = metadata.get("client_name", "")
    if not isinstance(name, str) or len(name) > MAX_NAME_CHARACTERS or not name.isprintable():
        raise Refused(f"client_name is a text of {MAX_NAME_CHARACTERS} characters at most.")
    application = Application(
        name=name.strip(),
        redirect_uris=" ".join(_redirect_uris(metadata)),
        client_type="public" if method == "none" else "confidential",
        authorization_grant_type="authorization-code",
        registration_source=Application.RegistrationSource.DCR,
    )
    try:
        application.full_clean()
    except ValidationError as error:
        raise Refused("; ".join(error.messages)) from error
    return application


def _redirect_uris(metadata: dict[str, Any]) -> list[str]:
    uris = _listed(metadata, "redirect_uris")
    if not 0 < len(uris) <= MAX_REDIRECT_URIS:
        raise Refused(f"redirect_uris has 1 to {MAX_REDIRECT_URIS} URIs.", "invalid_redirect_uri")
    for uri in uris:
        objection = objection_to(uri)
        if objection:
            raise Refused(f"{objection}.", "invalid_redirect_uri")
    return list(dict.fromkeys(uris))


def _listed(metadata: dict[str, Any], name: str, *default: str) -> list[str]:
    value = metadata.get(name)
    if value is None:
        return list(default)
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise Refused(f"{name} must be a list of texts.")
    return value


def _scope_of(metadata: dict[str, Any]) -> str:
    """Return what the client may ask for: what it wants of the endpoints' scopes."""
    wanted = metadata.get("scope")
    if wanted is not None and not isinstance(wanted, str):
        raise Refused("scope is a text.")
    ours = sentences()
    return " ".join([each for each in (wanted or "").split() if each in ours] or ours)


def _described(application: Any, method: str, scope: str, secret: str) -> dict[str, Any]:
    described = {
        "client_id": application.client_id,
        "client_id_issued_at": int(time.time()),
        "redirect_uris": application.redirect_uris.split(),
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": method,
        "scope": scope,
    }
    if application.name:
        described["client_name"] = application.name
    if secret:
        described |= {"client_secret": secret, "client_secret_expires_at": 0}
    return described


def _answer(status: int, **body: Any) -> JsonResponse:
    return JsonResponse(body, status=status, headers={"Cache-Control": "no-store"})
