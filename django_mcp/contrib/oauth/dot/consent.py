"""The page on which people agree that a client may act for them, and for what."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from django.core.exceptions import DisallowedRedirect
from django.http import HttpRequest, HttpResponse, QueryDict
from django.middleware.csrf import CsrfViewMiddleware
from django.utils.decorators import method_decorator
from django.views.decorators.csrf import csrf_protect
from oauth2_provider.compat import login_not_required
from oauth2_provider.exceptions import FatalClientError, OAuthToolkitError
from oauth2_provider.views import AuthorizationView as DOTAuthorizationView
from oauthlib.oauth2.rfc6749.errors import CustomOAuth2Error, OAuth2Error

from ....conf import get_settings
from ..client_documents import leads_to_own_machine
from .documents import fetching
from .guarding import Guarded
from .models import Application
from .problems import FORBIDDEN_PLACE, FORGED, Problem, problem_named, problem_of
from .redirects import place_of
from .site import issuer, sentences, target_at
from .views import WithValidator


@method_decorator(csrf_protect, name="get")  # also where a site has no middleware for it
class AuthorizationView(Guarded, WithValidator, DOTAuthorizationView):  # type: ignore[misc]
    """Asks somebody who is logged in; never takes an answer for granted.

    An answer is a POST to the URL of the page. What was asked is taken from that URL alone, and
    looked at again.
    """

    template_name = "django_mcp/oauth/authorize.html"
    resources: Sequence[str] = ()
    """What a token is asked for, once that has been checked."""

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Let nobody frame the page or keep it, whatever it says."""
        # Nobody can make an account on the way.
        prompt = [each for each in _prompt(request) if each != "create"]
        request.GET = _changed(request.GET, prompt=[" ".join(prompt)])
        response = super().dispatch(request, *args, **kwargs)
        response.headers["X-Frame-Options"] = "DENY"
        response.headers["Cache-Control"] = "no-store"
        response.headers["Referrer-Policy"] = "same-origin"
        return response

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Ask. What a client, or a setting, says of earlier answers is not listened to."""
        request.GET = _changed(request.GET, approval_prompt=["force"])
        if "none" not in _prompt(request):
            return super().get(request, *args, **kwargs)
        try:
            _, credentials = self.validate_authorization_request(request)
        except OAuthToolkitError as error:
            return self.error_response(error, application=None)
        refusal = CustomOAuth2Error("consent_required", state=credentials.get("state"))
        return self.error_response(
            OAuthToolkitError(refusal, redirect_uri=credentials["redirect_uri"]),
            application=credentials["request"].client,
        )

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Take the answer: yes where the form has ``allow``."""
        if _is_forged(request):
            return self.stop(403, FORGED)
        is_agreed, application = bool(request.POST.get("allow")), None
        request.POST = QueryDict()  # in which DOT would look for what was asked
        try:
            scopes, credentials = self.validate_authorization_request(request)
            application = credentials["request"].client
            uri, *_ = self.create_authorization_response(
                request=request,
                scopes=" ".join(scopes),
                credentials={**credentials, "resource": self.resources},
                allow=is_agreed,
            )
        except OAuthToolkitError as error:
            return self.error_response(error, application)
        return self.redirect(uri, application)

    def validate_authorization_request(self, request: HttpRequest) -> tuple[list[str], Any]:
        """Check who asks, and for which endpoint, before anybody is asked."""
        # A client's document is fetched for people alone.
        is_person = request.user.is_authenticated and "none" not in _prompt(request)
        with fetching(request.user) if is_person else nullcontext():
            scopes, credentials = super().validate_authorization_request(request)
        asked = credentials["request"]
        asked.resource = request.GET.getlist("resource")
        try:
            self.resources = self.get_validator_class()().resources_of(asked)
        except OAuth2Error as error:
            raise OAuthToolkitError(error, redirect_uri=credentials["redirect_uri"]) from error
        request.GET = _changed(request.GET, resource=self.resources)
        return scopes, credentials

    def error_response(self, error: OAuthToolkitError, application: Any, **kwargs: Any) -> Any:
        """Tell the client; where nobody knows who that is, tell the person alone."""
        if isinstance(error, FatalClientError):
            cause = error.oauthlib_error
            return self.stop(cause.status_code, problem_of(cause))
        return super().error_response(error, application, **kwargs)

    def redirect(self, redirect_to: str, application: Any) -> Any:
        """Send people back, with the issuer's name (RFC 9207), whatever the answer is.

        Where they have not answered, and nobody of the site has registered the client, they are
        told where it would send them: else any page could be opened by a link to this site (RFC
        9700, section 4.11.2).
        """
        target = _with_issuer(redirect_to)
        is_answer = self.request.method not in ("GET", "HEAD")
        if not (is_answer or leads_to_own_machine(target) or self._is_vouched_for(application)):
            given = dict(parse_qsl(urlsplit(target).query))
            problem = problem_named(given.get("error", ""), given.get("error_description", ""))
            return self.stop(400, problem, back=target, place=place_of(target))
        try:
            return super().redirect(target, application)
        except DisallowedRedirect:
            return self.stop(400, FORBIDDEN_PLACE)

    def _is_vouched_for(self, application: Any) -> bool:
        if application is None:
            client_id = self.request.GET.get("client_id", "")
            application = Application.objects.filter(client_id=client_id).first()
        if application is None:
            return False
        return bool(application.registration_source == "manual" or application.skip_authorization)

    def refuse(self, status: int, error: str, description: str) -> HttpResponse:
        """Tell the person."""
        return self.stop(status, problem_named(error, description))

    def stop(self, status: int, problem: Problem, **more: str) -> HttpResponse:
        """Show why the login stops."""
        context = {"problem": problem, "again": self.request.get_full_path(), **more}
        response: HttpResponse = self.render_to_response(context, status=status)
        return response

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Say who asks, where the answer goes, and what it is about."""
        context: dict[str, Any] = super().get_context_data(**kwargs)
        application, uri = context.get("application"), context.get("redirect_uri")
        if application is None or not uri:
            return context
        host = _host_of(application.client_id)
        return {
            **context,
            "client": application.name or host or application.client_id,
            "client_host": host,
            "is_vouched_for": application.registration_source == "manual",
            "place": place_of(uri),
            "leads_to_own_machine": leads_to_own_machine(uri),
            "target": next(filter(None, map(target_at, self.resources)), None),
            **_grouped(context["scopes"]),
        }


def _changed(query: QueryDict, **lists: Sequence[str]) -> Any:
    """Return the query with other values for some names; none takes the name away."""
    changed = query.copy()
    for name, values in lists.items():
        changed.setlist(name, list(values))
        if not values:
            del changed[name]
    return changed


def _prompt(request: HttpRequest) -> Sequence[str]:
    return request.GET.get("prompt", "").split()


def _is_forged(request: HttpRequest) -> bool:
    """Return whether a form is another than the one that was shown to this browser."""
    check = CsrfViewMiddleware(lambda request: HttpResponse())
    check.process_request(request)
    return check.process_view(request, AuthorizationView.post, (), {}) is not None


def _host_of(client_id: str) -> str:
    """Return the host that vouches for a client; empty where none does."""
    return urlsplit(client_id).hostname or "" if client_id.startswith("https://") else ""


def _grouped(scopes: Iterable[str]) -> dict[str, list[str]]:
    """Return what scopes allow, as people read it: what only reads, and the rest."""
    texts, reading = sentences(), get_settings().read_only_scopes
    asked = list(dict.fromkeys(scopes))
    return {
        "reading": [str(texts.get(each, each)) for each in asked if each in reading],
        "changing": [str(texts.get(each, each)) for each in asked if each not in reading],
    }


def _with_issuer(uri: str) -> str:
    parts = urlsplit(uri)
    query = [pair for pair in parse_qsl(parts.query, keep_blank_values=True) if pair[0] != "iss"]
    return parts._replace(query=urlencode([*query, ("iss", issuer())])).geturl()


@login_not_required  # type: ignore[untyped-decorator]  # DOT has no type hints
def stylesheet(request: HttpRequest) -> HttpResponse:
    """Show the page's style, so that a site needs to serve no files for it."""
    response = HttpResponse(_style(), content_type="text/css")
    response.headers["Cache-Control"] = "public, max-age=86400"
    return response


@cache
def _style() -> str:
    return Path(__file__).with_name("consent.css").read_text(encoding="utf-8")
