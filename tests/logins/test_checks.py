"""Settings by which logins would be unsafe, or not work, are found before anybody logs in."""

from __future__ import annotations

import os
import subprocess
import sys
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.urls import include, path
from django.utils import timezone

from django_mcp import endpoint
from django_mcp.checks.oauth import check_tokens
from django_mcp.contrib.oauth.dot.checks import check_provider, check_urls
from django_mcp.contrib.oauth.dot.leftovers import OLD, UNUSED
from django_mcp.contrib.oauth.dot.models import Application
from django_mcp.contrib.oauth.models import ScopeChallenge
from tests.logins.shop import shop
from tests.support.sites import urlconf


def found(*checks):
    checks = checks or (check_provider, check_urls, check_tokens)
    return [message.id.removeprefix("django_mcp.") for check in checks for message in check()]


def test_the_settings_that_are_printed_have_no_problem():
    assert found() == []


STOCK = "oauth2_provider.oauth2_validators.OAuth2Validator"
TRAPS = {
    "validator": ({"OAUTH2_VALIDATOR_CLASS": STOCK}, "E011"),
    "scopes": ({"SCOPES_BACKEND_CLASS": "oauth2_provider.scopes.SettingsScopes"}, "E012"),
    "anybody fetches": (
        {
            "CIMD_REGISTRATION_PERMISSION_CLASSES": [
                "oauth2_provider.cimd.AllowAllCIMDPermission",
            ]
        },
        "E013",
    ),
    "fetcher": ({"CIMD_METADATA_FETCHER": "oauth2_provider.cimd.SafeMetadataFetcher"}, "E013"),
    "wildcards": ({"ALLOW_URI_WILDCARDS": True}, "E014"),
    "schemes": ({"ALLOWED_REDIRECT_URI_SCHEMES": ["https", "http", "javascript"]}, "E014"),
    "plain tokens": ({"COMPLIANT_BCP_RFC9700_TOKEN_STORAGE": False}, "W022"),
    "reuse": ({"REFRESH_TOKEN_REUSE_PROTECTION": False}, "W022"),
    "for ever": ({"REFRESH_TOKEN_EXPIRE_SECONDS": None}, "W022"),
    "nobody": ({"DCR_ENABLED": False, "CIMD_ENABLED": False}, "W023"),
    "login": (
        {
            "DCR_REGISTRATION_PERMISSION_CLASSES": [
                "oauth2_provider.dcr.IsAuthenticatedDCRPermission",
            ]
        },
        "W023",
    ),
    "localhost": ({"ALLOW_LOCALHOST_LOOPBACK": False}, "W024"),
    "no http": ({"ALLOWED_REDIRECT_URI_SCHEMES": ["https"]}, "W024"),
    "two issuers": ({"OIDC_ISS_ENDPOINT": "https://other.example"}, "E017"),
    "slash": ({"OIDC_ISS_ENDPOINT": "http://localhost/"}, "E017"),
    "plain issuer": ({"OIDC_ISS_ENDPOINT": "http://shop.example.com"}, "E017"),
}


@pytest.mark.parametrize(("changed", "number"), TRAPS.values(), ids=TRAPS)
def test_each_trap_that_a_setting_can_cause_is_found(configure, changed, number):
    configure(changed)
    assert number in found()
    assert set(found(check_provider)) <= {number}


def test_a_site_that_cannot_be_told_from_others_is_found(configure):
    configure({"OIDC_ISS_ENDPOINT": ""}, BASE_URL=[])
    assert found(check_tokens) == ["E010", "E010", "E010", "E010"]
    configure(BASE_URL="http://localhost", AUTHORIZATION_SERVERS="https://id.example.com")
    assert found(check_tokens) == ["E010", "E010"]


def test_views_that_go_round_are_found(settings):
    settings.ROOT_URLCONF = urlconf(
        path("", include("tests.logins.urls")), path("oauth/", include("oauth2_provider.urls"))
    )
    messages = check_urls()
    assert {each.id for each in messages} == {"django_mcp.E015"}
    assert "DynamicClientRegistrationView" in str(messages)
    assert "/oauth/register/" in str(messages)


def test_urls_that_are_missing_are_found(settings):
    settings.ROOT_URLCONF = urlconf(endpoint("mcp", server=shop))
    assert found(check_urls) == ["E016", "W025"]
    settings.LOGIN_URL = "/nowhere/?next="
    settings.ROOT_URLCONF = "tests.logins.urls"
    assert found(check_urls) == ["W025"]
    settings.LOGIN_URL = "https://sso.example.com/"
    assert found(check_urls) == []


# The command


def run(*arguments):
    out, err = StringIO(), StringIO()
    call_command("mcp", "oauth-setup", *arguments, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def test_it_prints_the_settings_of_these_tests(settings):
    printed, said = run("http://localhost")
    names: dict = {}
    exec(printed.partition("# urls.py")[0], names)
    assert names["OAUTH2_PROVIDER"] == settings.OAUTH2_PROVIDER
    assert names["DJANGO_MCP"].items() <= settings.DJANGO_MCP.items()
    assert 'include("django_mcp.contrib.oauth.urls")' in printed
    assert "--no-internet" in said


def test_it_prints_them_where_the_checks_still_fail():
    """From a shell, where checks come first."""
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.logins.unset"}
    command = [sys.executable, "-m", "django", "mcp", "oauth-setup", "http://localhost"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "OAUTH2_PROVIDER = {" in done.stdout


def test_it_says_what_to_do_without_internet():
    printed, said = run("https://shop.example.com/", "--no-internet")
    assert '"CIMD_ENABLED": False,' in printed
    assert "SITE = 'https://shop.example.com'" in printed
    assert "--no-internet" not in said


def test_it_says_how_to_get_what_is_not_installed(settings):
    settings.INSTALLED_APPS = [app for app in settings.INSTALLED_APPS if app != "oauth2_provider"]
    with pytest.raises(CommandError, match="oauth-server"):
        run()
    settings.INSTALLED_APPS = [
        app for app in settings.INSTALLED_APPS if app != "django_mcp.contrib.oauth"
    ]
    with pytest.raises(CommandError, match=r"django_mcp\.contrib\.oauth"):
        run()


# Leftovers


@pytest.mark.django_db
def test_what_nobody_will_use_is_pruned(editor):
    editor.login()
    used = editor.client_id
    editor.register()
    unused = editor.client_id
    editor.register()
    Application.objects.filter(client_id__in=[used, unused]).update(created=timezone.now() - UNUSED)
    known = Application.objects.create(
        redirect_uris="https://a.example/",
        client_type="public",
        authorization_grant_type="authorization-code",
    )
    Application.objects.filter(pk=known.pk).update(created=timezone.now() - 2 * UNUSED)
    ScopeChallenge.objects.create(digest="old", moment=timezone.now() - 2 * OLD)
    ScopeChallenge.objects.create(digest="new", moment=timezone.now())
    out = StringIO()
    call_command("mcp", "prune", stdout=out)
    kept = set(Application.objects.values_list("client_id", flat=True))
    assert kept == {used, editor.client_id, known.client_id}
    assert ScopeChallenge.objects.get().digest == "new"
    assert "1 registered clients without a login" in out.getvalue()
