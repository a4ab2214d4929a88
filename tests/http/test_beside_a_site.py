"""The mount beside a real site: it takes what the URLconf gives it and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from channels.routing import ProtocolTypeRouter
from django.conf import settings as django_settings
from django.contrib.auth import get_user_model
from django.contrib.staticfiles.handlers import ASGIStaticFilesHandler
from django.core.asgi import get_asgi_application
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import include, path, resolve
from django.utils.translation import get_language

from django_mcp import Context, MCPServer, endpoint
from django_mcp.asgi import find_endpoint, mount
from django_mcp.auth import public
from django_mcp.running import shutdown
from tests.support.asgi import call, post, request, scope_of
from tests.support.messages import modern
from tests.support.sites import run, urlconf

pytestmark = pytest.mark.django_db(transaction=True)
DJANGO_WAS_HERE = "x-seen-by-django"


class MarkingMiddleware:
    """Marks what went through Django, where the mount has no part in it."""

    def __init__(self, get_response: Any) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        response[DJANGO_WAS_HERE] = get_language()
        return response


class TenantMiddleware:
    """Gives every request a URLconf of its tenant's."""

    def __init__(self, get_response: Any) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        request.urlconf = "tests.http.urls_tenant"
        return self.get_response(request)


@pytest.fixture(autouse=True)
def site(settings):
    settings.ROOT_URLCONF = "tests.http.urls"
    settings.MIDDLEWARE = [f"{__name__}.MarkingMiddleware", *settings.MIDDLEWARE]


def application() -> Any:
    return mount(get_asgi_application())


@pytest.mark.parametrize("path", ["/mcp", "/mcp/", "/nested/deep/mcp", "/nested/deep/mcp/"])
def test_the_mount_answers_its_endpoints_without_django(path):
    response = run(call(application(), "add", path, arguments={"a": 2, "b": 3}))
    assert response.status == 200
    assert response.json()["result"]["structuredContent"] == 5
    assert DJANGO_WAS_HERE not in response.headers
    assert response.headers["content-length"] == str(len(response.body))


@pytest.mark.parametrize(
    ("path", "status"), [("/page", 200), ("/mcpx", 404), ("/xmcp", 404), ("/mcp/x", 404)]
)
def test_everything_else_goes_to_django(path, status):
    response = run(
        request(application(), scope_of(path, method="GET", headers=[("Host", "localhost")]))
    )
    assert response.status == status
    assert DJANGO_WAS_HERE in response.headers


def test_a_decorated_view_keeps_its_decorator():
    response = run(call(application(), "add", "/locked/mcp", arguments={"a": 2, "b": 3}))
    assert (response.status, response.body) == (423, b"locked")


def test_an_earlier_pattern_wins_as_it_does_in_django(settings):
    settings.ROOT_URLCONF = "tests.http.urls_shadowed"
    response = run(call(application(), "add", arguments={"a": 2, "b": 3}))
    assert response.body == b"a page"


def test_a_path_that_depends_on_the_language_meets_the_view(settings):
    settings.ROOT_URLCONF = "tests.http.urls_languages"
    settings.MIDDLEWARE = [
        "django.middleware.locale.LocaleMiddleware",
        *settings.MIDDLEWARE,
    ]
    response = run(call(application(), "add", "/de/mcp", arguments={"a": 2, "b": 3}))
    assert response.json()["result"]["structuredContent"] == 5
    assert response.headers[DJANGO_WAS_HERE] == "de"


def test_a_urlconf_per_request_meets_the_view(settings):
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, f"{__name__}.TenantMiddleware"]
    response = run(call(application(), "add", "/tenant/mcp", arguments={"a": 2, "b": 3}))
    assert response.json()["result"]["structuredContent"] == 5
    assert DJANGO_WAS_HERE in response.headers


@pytest.mark.parametrize(
    ("root", "path", "found"),
    [
        ("/app", "/app/mcp", True),
        ("/app/", "/app/mcp/", True),
        ("/app", "/apple/mcp", False),
        ("", "/app/mcp", False),
    ],
)
def test_a_script_prefix_ends_at_a_slash(root, path, found):
    arguments = {"a": 2, "b": 3}
    response = run(call(application(), "add", path, arguments=arguments, root_path=root))
    assert (response.status == 200) is found
    assert (DJANGO_WAS_HERE in response.headers) is not found


def test_static_files_in_development(settings):
    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, "django.contrib.staticfiles"]
    settings.STATIC_URL = "/static/"
    settings.DEBUG = True
    served = ASGIStaticFilesHandler(application())
    css = run(request(served, scope_of("/static/admin/css/base.css", method="GET")))
    assert css.status == 200
    assert b"body" in css.body
    tool = run(call(served, "add", arguments={"a": 2, "b": 3}))
    assert tool.json()["result"]["structuredContent"] == 5


@pytest.mark.parametrize("outside", [True, False], ids=["mount outside", "mount inside"])
def test_websockets_pass_by(outside):
    seen = []

    async def elsewhere(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["type"])

    django = get_asgi_application()
    if outside:
        served = mount(ProtocolTypeRouter({"http": django, "websocket": elsewhere}))
    else:
        served = ProtocolTypeRouter({"http": mount(django), "websocket": elsewhere})
    run(served({"type": "websocket", "path": "/mcp", "headers": []}, None, None))
    assert seen == ["websocket"]
    assert run(call(served, "add", arguments={"a": 2, "b": 3})).status == 200


@pytest.mark.parametrize(("http_version", "last"), [("1.1", "close"), ("2", None)])
def test_a_process_that_is_asked_to_stop_says_that_a_response_is_the_last(
    monkeypatch, http_version, last
):
    monkeypatch.setattr(shutdown, "_is_closing", True)
    given = {"http_version": http_version}
    responses = [
        run(call(application(), "add", arguments={"a": 2, "b": 3}, **given)),
        run(call(get_asgi_application(), "add", arguments={"a": 2, "b": 3}, **given)),
        run(request(application(), scope_of("/", method="GET", **given))),
    ]
    assert [each.status for each in responses] == [200, 200, 404]
    for each in responses:
        headers = {name.lower(): text for name, text in each.headers.items()}
        assert headers.get("connection") == last


def test_two_servers_have_their_own_tools_and_their_own_entrance():
    message, headers = modern("tools/list")
    everybody = run(post(application(), message, headers=headers))
    names = [tool["name"] for tool in everybody.json()["result"]["tools"]]
    assert "add" in names
    assert "secret" not in names
    refused = run(post(application(), message, "/staff/mcp", headers=headers))
    assert refused.status == 401
    assert refused.headers["www-authenticate"].startswith("Session")


def test_a_login_session_of_django_opens_the_mount():
    user = get_user_model().objects.create_user("ann", password="p")
    browser = Client()
    browser.force_login(user)
    cookie = browser.cookies[django_settings.SESSION_COOKIE_NAME].value
    headers = {"Cookie": f"{django_settings.SESSION_COOKIE_NAME}={cookie}"}
    response = run(call(application(), "secret", "/staff/mcp", headers=headers))
    assert response.json()["result"]["content"][0]["text"] == "for the staff"
    get_user_model().objects.filter(pk=user.pk).update(is_active=False)
    assert run(call(application(), "secret", "/staff/mcp", headers=headers)).status == 401


def test_changing_the_urlconf_changes_the_mount(settings):
    assert find_endpoint("/mcp") is not None
    settings.ROOT_URLCONF = "tests.http.urls_shadowed"
    assert find_endpoint("/mcp") is None


def test_other_pages_cost_a_few_pattern_matches_only(monkeypatch):
    # The site's own patterns, perhaps hundreds, are not walked for a page that is none of ours.
    asked = []
    original = type(find_endpoint.__globals__["get_resolver"]()).resolve
    monkeypatch.setattr(
        "django.urls.resolvers.URLResolver.resolve",
        lambda self, path: asked.append(path) or original(self, path),
    )
    assert find_endpoint("/products/17/") is None
    assert asked == []


def test_https_is_required_where_django_would_redirect(settings):
    settings.SECURE_SSL_REDIRECT = True
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    arguments = {"a": 2, "b": 3}
    plain = run(call(application(), "add", arguments=arguments))
    assert plain.status == 403
    assert "HTTPS" in plain.json()["error"]["message"]
    proxied = {"X-Forwarded-Proto": "https"}
    assert run(call(application(), "add", arguments=arguments, headers=proxied)).status == 200
    settings.SECURE_PROXY_SSL_HEADER = None
    assert run(call(application(), "add", arguments=arguments, headers=proxied)).status == 403
    assert run(call(application(), "add", arguments=arguments, scheme="https")).status == 200


def test_a_proxy_names_the_host_only_where_it_is_trusted(settings):
    forwarded = {"X-Forwarded-Host": "elsewhere.example"}
    arguments = {"a": 2, "b": 3}
    assert run(call(application(), "add", arguments=arguments, headers=forwarded)).status == 200
    settings.USE_X_FORWARDED_HOST = True
    assert run(call(application(), "add", arguments=arguments, headers=forwarded)).status == 400


def ask_both_entrances(look: Any, headers: dict[str, str], **extra: Any) -> list[Any]:
    """Return what ``look`` makes of a request at the mount, and at the view under ASGI."""
    return [
        run(call(entrance, look.__name__, "/looking/7/mcp", headers=headers, **extra)).json()[
            "result"
        ]
        for entrance in (application(), get_asgi_application())
    ]


@pytest.fixture
def looking(settings) -> MCPServer:
    """A server whose tools look at their request."""
    server = MCPServer("looking", version="1", auth=public)
    nested = ([endpoint("mcp", server=server, name="tools")], "shop")
    settings.ROOT_URLCONF = urlconf(path("looking/<int:shop>/", include(nested, namespace="tea")))
    return server


@pytest.mark.parametrize("whole", [False, True])
def test_names_with_an_underscore_are_no_headers_at_either_entrance(looking, whole):
    """Proxies and WSGI servers drop them: with a hyphen they would be somebody else's."""
    names = ("X_Real_IP", "Mcp_Session_Id", "Authorization")

    @looking.tool
    def look(ctx: Context) -> dict[str, Any]:
        request = ctx.request
        if whole:
            assert request.META["REMOTE_ADDR"]
        spelt = {*names, *(name.replace("_", "-") for name in names)}
        variables = ("HTTP_" + name.upper().replace("-", "_") for name in spelt)
        return {
            "headers": {name: request.headers.get(name) for name in sorted(spelt)},
            "META": {name: request.META.get(name) for name in sorted(variables)} if whole else {},
        }

    headers = {"X_Real_IP": "192.0.2.1", "Mcp_Session_Id": "x", "Authorization": "Bearer y"}
    mount_, view = ask_both_entrances(look, headers)
    assert mount_ == view
    seen = mount_["structuredContent"]
    assert {name for name, value in seen["headers"].items() if value} == {"Authorization"}
    assert {name for name, value in seen["META"].items() if value} <= {"HTTP_AUTHORIZATION"}
    both = {"X_Real_IP": "192.0.2.1", "X-Real-IP": "198.51.100.7"}
    for answer in ask_both_entrances(look, both):
        assert answer["structuredContent"]["headers"]["X-Real-IP"] == "198.51.100.7"


def test_where_the_request_was_resolved_to_is_known_at_either_entrance(looking):
    @looking.tool
    def look(ctx: Context) -> dict[str, Any]:
        match = ctx.request.resolver_match
        return {
            "view_name": match.view_name,
            "namespaces": match.namespaces,
            "kwargs": match.kwargs,
            "route": match.route,
            "again": resolve(ctx.request.path_info).view_name,
        }

    mount_, view = ask_both_entrances(look, {})
    assert mount_ == view
    seen = mount_["structuredContent"]
    assert seen["view_name"] == seen["again"] == "tea:tools"
    assert seen["kwargs"] == {"shop": 7}


def test_what_middleware_would_have_set_is_missed_with_the_reason(looking):
    @looking.tool
    def look(ctx: Context) -> str:
        assert not hasattr(ctx.request, "basket")
        try:
            return str(ctx.request.basket)
        except AttributeError as error:
            return str(error)

    mount_, view = (answer["content"][0]["text"] for answer in ask_both_entrances(look, {}))
    assert view == "'ASGIRequest' object has no attribute 'basket'"
    assert mount_.startswith("'LightRequest' object has no attribute 'basket': ")
    assert "no middleware has run at the mount" in mount_


def test_tools_get_the_request_with_the_caller_as_its_user(settings):
    server = MCPServer("looking", version="1")
    seen = {}

    @server.tool
    def look(ctx: Context) -> str:
        request = ctx.request
        seen.update(
            user=str(request.user),
            path=request.path,
            header=request.headers["Mcp-Name"],
            meta=request.META["REMOTE_ADDR"],
            method=request.method,
            session=request.session.get("nothing", "no session data"),
            body=request.body[:1],
        )
        return "seen"

    settings.ROOT_URLCONF = urlconf(endpoint("look", server=server))
    assert run(call(application(), "look", "/look")).status == 200
    assert seen == {
        "user": "AnonymousUser",
        "path": "/look",
        "header": "look",
        "meta": "127.0.0.1",
        "method": "POST",
        "session": "no session data",
        "body": b"{",
    }
