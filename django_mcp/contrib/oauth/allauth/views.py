"""allauth's views, with what clients of MCP need besides, and without what they must not have."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Final
from urllib.parse import parse_qs, quote, urlsplit

from allauth.idp.oidc import views
from allauth.idp.oidc.adapter import get_adapter
from allauth.idp.oidc.forms import RPInitiatedLogoutForm
from allauth.idp.oidc.internal.oauthlib.utils import get_validator_context
from allauth.idp.oidc.models import Client
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import ValidationError
from django.core.signing import BadSignature, Signer
from django.http import HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.shortcuts import render
from django.views.decorators.csrf import csrf_exempt

from ....conf import LOOPBACK, get_settings
from ..client_documents import (
    DocumentRefused,
    check_redirect_uri,
    is_document_url,
    leads_to_own_machine,
)
from ..reports import hide_secrets
from ..resources import only_resource, resource_at
from . import grants
from .clients import (
    GRANT_TYPES,
    MAX_REGISTRATION_BYTES,
    RESPONSE_TYPES,
    find_client,
    is_made_by_hand,
)

OLD: Final = "The application that has sent you here is too old to log in safely: "
STRANGE: Final = "The application that has sent you here asks for what this site does not do: "
_PORT: Final = re.compile(r"^(http://(?:localhost|127\.0\.0\.1|\[::1\])):[0-9]{1,5}(?=[/?]|$)")
"""Of a program on the user's own machine, which takes any that is free (RFC 8252, section 7.3)."""


class AuthorizationView(views.AuthorizationView):
    """Where people log in, and say what a client may do.

    A client that nobody has made by hand, or that asks for an endpoint or a scope of one, must use
    PKCE with S256, names one endpoint, and people are always asked.
    """

    template_name = "django_mcp/allauth/consent.html"

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Show who wants what; whoever is not logged in does so first."""
        asked = request.GET.copy()
        if not request.user.is_authenticated:
            if "none" in (prompts := asked.get("prompt", "").split()) and not _may_be_silent(asked):
                # Whose client nobody knows could have any page opened by a link to this site.
                asked["prompt"] = " ".join({*prompts} - {"none"})
                request.GET = asked  # type: ignore[assignment]
            return super().get(request, *args, **kwargs)
        try:
            client = find_client(
                asked.get("client_id", ""), adapter=get_adapter(), user=request.user
            )
            if _is_for_mcp(client, asked, asked.getlist("resource")):
                _complete(asked, request)
                _check(client, asked, asked.getlist("resource"))
                if "none" in (prompts := asked.get("prompt", "").split()):
                    # To allauth, consent to one client is consent to all.
                    asked["prompt"] = " ".join({*prompts, "consent"} - {"none"})
        except (DocumentRefused, ValidationError) as error:
            return _refusal(request, error)
        request.GET = asked  # type: ignore[assignment]
        request.META["QUERY_STRING"] = asked.urlencode()
        _admit_port(client, asked.get("redirect_uri", ""))
        response = super().get(request, *args, **kwargs)
        if _leads_astray(response, client, asked.get("redirect_uri", "")):
            given = parse_qs(urlsplit(response.headers["Location"]).query)
            what = " ".join(given.get("error", ()))
            return _refusal(request, ValidationError(f"{STRANGE}{what}."))
        return _with_issuer(response, asked.get("redirect_uri", ""))

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Send the client a code, or the answer that it gets none."""
        try:
            _, asked = Signer().unsign_object(request.POST.get("request", ""))
        except BadSignature:
            return super().post(request, *args, **kwargs)
        client = Client.objects.filter(pk=asked["client_id"]).first()
        resources = asked.get("resources") or []
        try:
            if _is_for_mcp(client, asked, resources):
                _check(client, asked, resources)
        except (DocumentRefused, ValidationError) as error:
            return _refusal(request, error)
        _admit_port(client, asked["redirect_uri"])
        response = super().post(request, *args, **kwargs)
        return _with_issuer(response, asked["redirect_uri"])

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Add what people have to know to decide (2026-07-28, basic/authorization)."""
        context = super().get_context_data(**kwargs)
        asked = self._request_info
        target = urlsplit(asked["redirect_uri"])
        client_id = asked["client_id"]
        return {
            **context,
            "client_host": urlsplit(client_id).netloc if is_document_url(client_id) else "",
            "is_made_by_hand": is_made_by_hand(context["client"]),
            "redirect_host": target.netloc or target.scheme,
            "redirect_is_web": target.scheme in ("http", "https"),
            "redirect_is_local": target.hostname in LOOPBACK,
            "resource": next(iter(asked.get("resources") or ()), ""),
        }


authorization = AuthorizationView.as_view()


def _is_for_mcp(client: Any, asked: Mapping[str, Any], resources: list[str]) -> bool:
    if any(get_adapter().is_other_resource(each) for each in resources):
        return False
    scopes = set((asked.get("scope") or "").split())
    is_asked = bool(resources or scopes & set(get_settings().scopes))
    return is_asked or (client is not None and not is_made_by_hand(client))


def _complete(asked: QueryDict, request: HttpRequest) -> None:
    """Add what old clients leave out, where there is no doubt: the endpoint and what all need."""
    only = None if "resource" in asked else only_resource(request)
    if only is not None:
        asked["resource"] = only.url
    resource = resource_at(asked.get("resource", ""))
    if resource is not None and resource.scopes and not asked.get("scope"):
        asked["scope"] = " ".join(resource.scopes)


def _may_be_silent(asked: Mapping[str, Any]) -> bool:
    """Return whether a client may ask whether somebody is logged in, without a page to see."""
    if "openid" not in asked.get("scope", "").split():
        return False  # allauth fails
    client = Client.objects.filter(pk=asked.get("client_id", "")).first()
    return client is not None and is_made_by_hand(client)


def _leads_astray(response: HttpResponse, client: Any, redirect_uri: str) -> bool:
    """Return whether somebody who was not asked would be sent to a page of anybody's.

    RFC 9700, section 4.11.2. Programs on the own machine are told of errors.
    """
    return (
        client is not None
        and bool(redirect_uri)
        and response.headers.get("Location", "").startswith(redirect_uri)
        and not is_made_by_hand(client)
        and not leads_to_own_machine(redirect_uri)
    )


def _check(client: Any, asked: Mapping[str, Any], resources: list[str]) -> None:
    """Check what a client asks for; raises ``ValidationError`` that says what is missing.

    2026-07-28, basic/authorization, "Authorization Code Protection"; OAuth 2.1, section 7.5.2.
    """
    if client is not None:
        _check_redirect_uri(client, asked.get("redirect_uri") or "")
    if asked.get("response_type") not in RESPONSE_TYPES:
        raise ValidationError(f"{OLD}it must ask for a code.")
    if not asked.get("code_challenge") or asked.get("code_challenge_method") != "S256":
        raise ValidationError(f"{OLD}it must use PKCE with the method S256.")
    if not resources:
        raise ValidationError(f"{OLD}it does not say for which endpoint it wants a token.")
    get_adapter().check_resources(resources)


def _check_redirect_uri(client: Any, redirect_uri: str) -> None:
    """Check that a client is answered where it said, letter by letter but for local ports.

    RFC 9700, section 4.1.3. allauth lets whoever makes the link add to the query, with which the
    answer would have two codes, and name a user, parameters of the path or a fragment.
    """
    if not is_made_by_hand(client):
        check_redirect_uri(redirect_uri)
    known = {_PORT.sub(r"\1", each) for each in client.get_redirect_uris()}
    if _PORT.sub(r"\1", redirect_uri) not in known and not client.allow_uri_wildcards:
        raise ValidationError(f"{STRANGE}an answer sent to where nobody knows it.")


def _refusal(request: HttpRequest, error: Exception) -> HttpResponse:
    """Show people what is wrong. Nothing is sent to the client: it might be anybody's."""
    text = " ".join(getattr(error, "messages", None) or [str(error)])
    context = {"error": {"description": text}}
    return render(request, "idp/oidc/error.html", context, status=400)


def _admit_port(client: Any, redirect_uri: str) -> None:
    """Admit http://localhost with any port where a public client has it without, for this request.

    RFC 8252, section 7.3, has it for 127.0.0.1, and allauth, too; some clients say localhost.
    """
    parts = urlsplit(redirect_uri)
    if client is None or client.type != Client.Type.PUBLIC:
        return
    if (parts.scheme, parts.hostname) != ("http", "localhost"):
        return
    known = client.get_redirect_uris()
    if parts._replace(netloc="localhost").geturl() in known:
        client.set_redirect_uris([*known, redirect_uri])
        get_validator_context().clients[client.pk] = client


def _with_issuer(response: HttpResponse, redirect_uri: str) -> HttpResponse:
    """Say in what is sent to a client who has sent it (RFC 9207, section 2)."""
    target = response.headers.get("Location", "")
    if redirect_uri and target.startswith(redirect_uri) and "#" not in target:
        issuer = quote(get_adapter().get_issuer(), safe="")
        response.headers["Location"] = f"{target}{'&' if '?' in target else '?'}iss={issuer}"
    return response


class LogoutForm(RPInitiatedLogoutForm):
    """What is asked at a logout. Nobody is sent to a page of anybody's."""

    def clean(self) -> dict[str, Any] | None:
        """Leave out where clients lead that nobody has made by hand: RFC 9700, section 4.11.2."""
        cleaned: dict[str, Any] | None = super().clean()
        client = cleaned.get("client") if cleaned else None
        if cleaned and client is not None and not is_made_by_hand(client):
            cleaned["post_logout_redirect_uri"] = ""
        return cleaned


class LogoutView(views.LogoutView):
    """Where clients have people log out."""

    form_class = LogoutForm


logout = LogoutView.as_view()


def for_every_origin(*methods: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let pages of every origin use a view that knows nobody by a cookie."""

    def decorate(view: Callable[..., Any]) -> Callable[..., Any]:
        @csrf_exempt
        @login_not_required
        @wraps(view)
        def answer(request: HttpRequest) -> HttpResponse:
            response = HttpResponse(status=204) if request.method == "OPTIONS" else view(request)
            response.headers["Access-Control-Allow-Origin"] = "*"
            if request.method == "OPTIONS":
                asked = request.headers.get("Access-Control-Request-Headers", "*")
                response.headers["Access-Control-Allow-Methods"] = ", ".join(methods)
                response.headers["Access-Control-Allow-Headers"] = asked
            return response

        return answer

    return decorate


@for_every_origin("GET", "HEAD")
def server_metadata(request: HttpRequest) -> HttpResponse:
    """Show the document that clients of MCP look for first (RFC 8414, section 3).

    It is allauth's, less what is not for them: some ask for every scope that they find.
    """
    response: HttpResponse = views.configuration(request)
    if response.status_code != 200:
        return response
    data = json.loads(response.content)
    data["scopes_supported"] = list(get_settings().scopes)
    data["response_types_supported"] = list(RESPONSE_TYPES)
    data["response_modes_supported"] = ["query"]
    data["grant_types_supported"] = list(GRANT_TYPES)
    data.pop("device_authorization_endpoint", None)
    return JsonResponse(data)


configuration = for_every_origin("GET", "HEAD")(views.configuration)


@for_every_origin("POST")
def revoke(request: HttpRequest) -> HttpResponse:
    """Revoke tokens."""
    hide_secrets(request)
    response: HttpResponse = views.revoke(request)
    return response


@for_every_origin("POST")
def token(request: HttpRequest) -> HttpResponse:
    """Issue tokens; see :func:`.grants.exchange`."""
    hide_secrets(request)
    return grants.exchange(request, views.token)


@for_every_origin("POST")
def client_registration(request: HttpRequest) -> HttpResponse:
    """Register a client (RFC 7591, section 3); what it can do without is left out."""
    body = request.body
    if len(body) > MAX_REGISTRATION_BYTES or b"\\u0000" in body:
        return _invalid("The metadata is too long, or has a NUL")
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError):
        return _invalid("The body is no JSON")
    if not isinstance(asked, dict):
        return _invalid("The body is no object of JSON")
    for name, admitted in (("grant_types", GRANT_TYPES), ("response_types", RESPONSE_TYPES)):
        if isinstance(given := asked.get(name), list):
            asked[name] = [each for each in admitted if each in given]
            if not asked[name]:
                return _invalid(f"Of {name} there are only {', '.join(admitted)}")
    try:
        # Databases take neither NaN nor halves of characters.
        request._body = json.dumps(asked, allow_nan=False, ensure_ascii=False).encode()
    except ValueError:
        return _invalid("The metadata has what is no text, or no number")
    response: HttpResponse = views.client_registration(request)
    if response.status_code != 201:
        return response
    return JsonResponse(_with_scope(json.loads(response.content), asked), status=201)


def _with_scope(registered: dict[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    """Say of scopes what was asked for: some clients ask at once for all that they are told."""
    scope, settings = asked.get("scope"), get_settings()
    wanted = scope.split() if isinstance(scope, str) else []
    given = [each for each in settings.scopes if each in wanted]
    return {**registered, "scope": " ".join(given or settings.base_scopes or settings.scopes)}


def _invalid(description: str) -> JsonResponse:
    return JsonResponse(
        {"error": "invalid_client_metadata", "error_description": description}, status=400
    )
