from __future__ import annotations

from io import StringIO

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db.models import JSONField, Value

from django_mcp.contrib.tokens.models import Token
from django_mcp.contrib.tokens.secret import is_well_formed

from .shop import open_shop

APP = "django_mcp.contrib.tokens"


def run(*arguments: str, **options: object) -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    call_command("mcp", *arguments, stdout=out, stderr=err, no_color=True, **options)
    return out.getvalue(), err.getvalue()


# Create


def test_create_prints_the_secret_alone_to_stdout(anna):
    out, err = run("token", "create", "anna", "--name", "laptop")
    secret = out.removesuffix("\n")
    assert is_well_formed(secret)
    assert Token.objects.presented(secret).name == "laptop"
    assert "anna" in err
    assert secret not in err


def test_create_takes_servers_and_days(anna):
    arguments = ("--server", "shop", "--server", "staff", "--expires-days", "30")
    run("token", "create", "anna", *arguments)
    token = Token.objects.get()
    assert token.servers == ["shop", "staff"]
    assert (token.expires - token.created).total_seconds() == pytest.approx(30 * 86_400, abs=1)


def test_create_makes_unlimited_tokens_by_default(anna):
    run("token", "create", "anna")
    run("token", "create", "anna")
    assert list(Token.objects.values_list("servers", "expires")) == [([], None)] * 2


@pytest.mark.parametrize("days", ["0", "-1", "1.5", "soon", "36501", "²"])
def test_create_refuses_days_that_are_none(anna, days):
    with pytest.raises(CommandError, match="from 1 to 36500"):
        run("token", "create", "anna", f"--expires-days={days}")


def test_create_says_what_to_do_about_an_unknown_user(db):
    with pytest.raises(CommandError, match=r'no user "bob".*createsuperuser'):
        run("token", "create", "bob")


def test_create_refuses_an_inactive_user(anna):
    anna.is_active = False
    anna.save()
    with pytest.raises(CommandError, match="activate"):
        run("token", "create", "anna")


def test_create_refuses_an_empty_server_name(anna):
    with pytest.raises(CommandError, match="server names"):
        run("token", "create", "anna", "--server", "")


def test_create_takes_scopes_and_reading_alone(anna, settings):
    open_shop(settings)
    out, err = run(
        *("token", "create", "anna", "--scope", "orders:read", "--scope", "back-office"),
        *("--read-only", "--server", "staff"),
    )
    token = Token.objects.get()
    assert (token.scopes, token.read_only) == (["orders:read", "back-office"], True)
    assert is_well_formed(out.removesuffix("\n"))
    assert "No server" not in err


@pytest.mark.parametrize(
    ("scope", "cure"),
    [
        ("order:read", "Did you mean 'orders:read'?"),
        ("", "Known: orders:write, orders:read, back-office, stock:write."),
    ],
)
def test_create_refuses_a_scope_that_nothing_needs(anna, settings, scope, cure):
    open_shop(settings)
    with pytest.raises(CommandError) as caught:
        run("token", "create", "anna", "--scope", scope)
    assert cure in str(caught.value)
    assert not Token.objects.exists()


def test_create_says_that_no_scopes_are_known(anna):
    with pytest.raises(CommandError, match="Known: none"):
        run("token", "create", "anna", "--scope", "orders:read")


def test_create_doubts_a_server_that_is_not_there(anna, settings):
    """It may be another process's, which has other URLs."""
    open_shop(settings)
    out, err = run("token", "create", "anna", "--server", "shpo", "--server", "shop")
    assert "No server at a URL is called 'shpo'; these are: open, shop, staff." in err
    assert "'shop'" not in err
    assert is_well_formed(out.removesuffix("\n"))
    assert Token.objects.get().servers == ["shpo", "shop"]


# List


def test_list_shows_tokens_and_no_secrets(anna, secret, token):
    out, _ = run("token", "list")
    head, row = out.splitlines()
    limits = "servers scopes read-only"
    assert " ".join(head.split()) == f"id prefix user name {limits} state expires last used"
    shown = f"{token.pk} {token.prefix} anna laptop all all no active never never"
    assert " ".join(row.split()) == shown
    assert secret not in out


def test_list_may_be_limited_to_a_user(token, django_user_model):
    bob = django_user_model.objects.create_user("bob")
    other, _ = Token.objects.issue(bob, servers=["staff"])
    out, _ = run("token", "list", "--user", "bob")
    assert other.prefix in out
    assert token.prefix not in out


@pytest.mark.parametrize(
    ("servers", "shown"), [("staff", "none"), (["shop", "staff"], "shop,staff")]
)
def test_list_names_the_servers(token, servers, shown):
    Token.objects.filter(pk=token.pk).update(servers=Value(servers, JSONField()))
    out, _ = run("token", "list")
    assert f" {shown} " in out.splitlines()[1]


@pytest.mark.parametrize(
    ("scopes", "shown"), [([], "none no"), ("a", "none no"), (["b", "a"], "a,b no"), (None, "all")]
)
def test_list_names_the_scopes(token, scopes, shown):
    value = None if scopes is None else Value(scopes, JSONField())
    Token.objects.filter(pk=token.pk).update(scopes=value)
    out, _ = run("token", "list")
    assert f" all {shown} " in " ".join(out.splitlines()[1].split())


def test_list_says_which_tokens_only_read(token):
    Token.objects.update(read_only=True)
    out, _ = run("token", "list")
    assert " all all yes active " in " ".join(out.splitlines()[1].split())


def test_list_costs_one_query(anna, django_assert_num_queries):
    for _ in range(5):
        Token.objects.issue(anna)
    with django_assert_num_queries(1):
        run("token", "list")


def test_an_empty_list_says_how_to_issue_one(db):
    out, err = run("token", "list")
    assert out == ""
    assert "mcp token create" in err


# Revoke and rotate


def by_id(token, secret):
    return str(token.pk)


def by_prefix(token, secret):
    return token.prefix


def by_part_of_the_prefix(token, secret):
    return token.prefix[:8]


def by_secret(token, secret):
    return secret


@pytest.mark.parametrize("refer", [by_id, by_prefix, by_part_of_the_prefix, by_secret])
def test_a_token_is_revoked_however_it_is_referred_to(token, secret, refer):
    out, _ = run("token", "revoke", refer(token, secret))
    assert out == f"Token {token.pk} of anna is revoked.\n"
    assert Token.objects.get().revoked is not None


def test_revoking_twice_is_no_error(token):
    run("token", "revoke", token.prefix)
    out, _ = run("token", "revoke", token.prefix)
    assert "before" in out


@pytest.mark.parametrize("reference", ["0", "9" * 30, "mcp_", "mcp_none", "none", "%", "²", ""])
def test_revoke_says_where_to_find_the_reference(token, reference):
    with pytest.raises(CommandError, match="mcp token list"):
        run("token", "revoke", reference)
    assert Token.objects.get().revoked is None


def test_an_error_does_not_repeat_a_secret(db):
    secret = "mcp_" + "0" * 49
    with pytest.raises(CommandError) as caught:
        run("token", "revoke", secret)
    assert secret not in str(caught.value)


def test_an_ambiguous_prefix_is_refused_with_the_ids(anna):
    tokens = [Token.objects.issue(anna)[0] for _ in range(2)]
    Token.objects.update(prefix="mcp_aaaaaaaa")
    with pytest.raises(CommandError) as caught:
        run("token", "revoke", "mcp_aaaaaaaa")
    assert all(str(token.pk) in str(caught.value) for token in tokens)
    assert Token.objects.filter(revoked__isnull=True).count() == 2


def test_prefixes_differ_by_case(anna):
    lower, upper = (Token.objects.issue(anna)[0] for _ in range(2))
    Token.objects.filter(pk=lower.pk).update(prefix="mcp_aaaaaaaa")
    Token.objects.filter(pk=upper.pk).update(prefix="mcp_AAAAAAAA")
    run("token", "revoke", "mcp_aaaaaaaa")
    assert Token.objects.get(revoked__isnull=False) == lower


def test_rotate_prints_the_new_secret_alone(token, secret):
    out, err = run("token", "rotate", token.prefix)
    fresh = out.removesuffix("\n")
    assert Token.objects.presented(fresh) == token
    assert Token.objects.presented(secret) is None
    assert fresh not in err


def test_what_has_ended_is_not_rotated(token):
    token.revoke()
    with pytest.raises(CommandError, match="create one"):
        run("token", "rotate", token.prefix)


# The command itself


def test_without_the_app_the_line_to_add_is_named(settings):
    settings.INSTALLED_APPS = [app for app in settings.INSTALLED_APPS if app != APP]
    for arguments in (["list"], ["create", "anna", "--name", "x"], ["--help"], []):
        with pytest.raises(CommandError, match=rf'INSTALLED_APPS.*\n    "{APP}",'):
            run("token", *arguments)


@pytest.mark.parametrize("arguments", [[], ["token"], ["nonsense"], ["token", "nonsense"]])
def test_a_command_is_required(arguments):
    with pytest.raises(CommandError, match=r"required|invalid choice"):
        run(*arguments)


def test_options_of_django_may_stand_last(anna, token):
    module = settings.SETTINGS_MODULE
    out, _ = run("token", "list", "--settings", module, "--traceback", "--verbosity", "0")
    assert token.prefix in out


def test_any_app_may_add_commands(settings, tmp_path, monkeypatch):
    package = tmp_path / "mcp_test_shop"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "mcp_commands.py").write_text(
        "def add_commands(subcommands):\n"
        "    parser = subcommands.add_parser('restock')\n"
        "    parser.add_argument('--shelf', type=int)\n"
        "    parser.set_defaults(run=restock)\n"
        "def restock(command, options):\n"
        "    command.stdout.write(f'shelf {options[\"shelf\"]}')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, "mcp_test_shop"]
    assert run("restock", "--shelf", "3") == ("shelf 3\n", "")


def test_the_token_app_is_installed_here():
    assert APP in settings.INSTALLED_APPS
