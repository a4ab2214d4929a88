"""Scopes, servers and reading alone, in the admin."""

from __future__ import annotations

import re

import pytest
from django.db.models import JSONField, Value
from django.urls import reverse

from django_mcp.contrib.tokens.models import Token

from .shop import SCOPES, open_shop

LIST = "admin:django_mcp_tokens_token_changelist"
ADD = "admin:django_mcp_tokens_token_add"
CHANGE = "admin:django_mcp_tokens_token_change"


@pytest.fixture(autouse=True)
def site(settings) -> None:
    open_shop(settings)


def issue(client, user, **fields):
    data = {"user": user.pk, "name": "x", "servers": "", "expires_0": "", "expires_1": ""}
    return client.post(reverse(ADD), {**data, **fields})


def test_the_form_offers_the_scopes_of_the_servers(admin_client, anna):
    page = admin_client.get(reverse(ADD)).content.decode()
    assert re.findall('name="scopes" value="(.*?)"', page) == SCOPES
    assert "See and ship orders (orders:write)" in page
    issue(admin_client, anna, scopes=["orders:read", "back-office"], read_only="on")
    token = Token.objects.get()
    assert (token.scopes, token.read_only) == (["orders:read", "back-office"], True)


def test_without_a_choice_no_scopes_limit_a_token(admin_client, anna):
    issue(admin_client, anna)
    token = Token.objects.get()
    assert (token.scopes, token.read_only) == (None, False)


def test_other_scopes_are_refused(admin_client, anna):
    response = issue(admin_client, anna, scopes=["orders:delete"])
    assert "scopes" in response.context["adminform"].form.errors
    assert not Token.objects.exists()


def test_where_no_scopes_are_known_none_are_asked_for(admin_client, anna, settings):
    settings.ROOT_URLCONF = "tests.site.urls"
    settings.DJANGO_MCP = {"AUTH": "django_mcp.auth.public"}
    assert 'name="scopes"' not in admin_client.get(reverse(ADD)).content.decode()
    assert "By scopes" not in admin_client.get(reverse(LIST)).content.decode()
    issue(admin_client, anna)
    assert Token.objects.get().scopes is None


@pytest.mark.parametrize(
    ("scopes", "read_only", "shown"),
    [
        (None, False, "not limited"),
        (None, True, "not limited for reading only"),
        (["b", "a"], False, "a, b"),
        ([], False, "none"),
        ("a", False, "none"),
        ({"a": 1}, True, "none for reading only"),
    ],
)
def test_list_and_page_show_the_limits(admin_client, token, scopes, read_only, shown):
    value = None if scopes is None else Value(scopes, JSONField())
    Token.objects.update(scopes=value, read_only=read_only)
    page = admin_client.get(reverse(LIST)).content.decode()
    [cell] = re.findall('<td class="field-limits">(.*?)</td>', page)
    assert " ".join(re.sub("<[^>]+>", " ", cell).split()) == shown
    page = admin_client.get(reverse(CHANGE, args=[token.pk])).content.decode()
    assert shown.removesuffix(" for reading only") in page
    assert 'name="read_only"' not in page


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"scope": "-"}, ["free"]),
        ({"scope": "orders:read"}, ["both", "reader"]),
        ({"scope": "orders:write"}, ["both"]),
        ({"scope": "orders"}, []),
        ({"scope": "%"}, []),
        ({"read_only__exact": "1"}, ["reader"]),
        ({"server": "shop"}, ["both", "free", "reader"]),
        ({"server": "staff"}, ["free", "nothing", "reader"]),
        ({"server": "staff", "scope": "orders:read"}, ["reader"]),
    ],
)
def test_the_list_is_filtered_by_them(admin_client, anna, query, found):
    Token.objects.issue(anna, name="free")
    Token.objects.issue(
        anna, name="reader", scopes=["orders:read"], servers=["staff", "shop"], read_only=True
    )
    Token.objects.issue(anna, name="both", scopes=["orders:read", "orders:write"], servers=["shop"])
    Token.objects.issue(anna, name="nothing", scopes=[], servers=["staff"])
    response = admin_client.get(reverse(LIST), query)
    assert sorted(each.name for each in response.context["cl"].queryset) == found


def test_a_name_of_other_letters_is_found(admin_client, anna):
    Token.objects.issue(anna, name="mine", servers=['Bür"o'])
    Token.objects.issue(anna, name="other", servers=["Büro"])
    response = admin_client.get(reverse(LIST), {"server": 'Bür"o'})
    assert [each.name for each in response.context["cl"].queryset] == ["mine"]
