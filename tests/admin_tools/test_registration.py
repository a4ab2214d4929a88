"""Which admin is meant, where it is found, and admins that others wrote."""

from __future__ import annotations

import subprocess
import sys

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, User
from django.contrib.sessions.models import Session
from django.db import connection, models

from django_mcp import MCPServer, RegistrationError
from django_mcp.model_tools.admin import admin_requests
from django_mcp.model_tools.fields.secret_names import looks_secret
from django_mcp.models import Session as OwnSession
from django_mcp.server import site_offers
from django_mcp.testing import MCPClient
from tests.model_tools.desk.models import Comment, Device, Ticket
from tests.model_tools.support import MODERN, counted, found, ticket

from .support import PlainAdmin, boss, client_for, site_with


def tools(server):
    return sorted(tool.key for tool in server.tools)


def offered(given, **options):
    server = MCPServer("desk")
    server.admin(given, **options)
    return tools(server)


def test_an_admin_is_named_by_itself_its_class_or_its_model():
    site = site_with((Ticket, PlainAdmin), name="here")
    wanted = ["find_tickets", "get_ticket"]
    assert offered(PlainAdmin, site=site) == wanted
    assert offered(Ticket, site=site) == wanted
    assert offered(site.get_model_admin(Ticket)) == wanted
    assert offered(OwnSession) == ["find_sessions", "get_session"], "the default site has it"


def test_names_and_options_of_tools():
    site = site_with((Ticket, PlainAdmin))
    options = {"actions": ["close"], "write": "delete", "title": "By the desk"}
    server = MCPServer("desk")
    server.admin(Ticket, site=site, name="case", plural="cases", tags={"desk"}, **options)
    assert tools(server) == ["close", "delete_cases", "find_cases", "get_case"]
    assert {tool.description["title"] for tool in server.tools} == {"By the desk"}
    assert {tool.toolsets for tool in server.tools} == {frozenset({"desk"})}
    server = MCPServer("desk")
    server.admin(Ticket, site=site, name="case")
    assert tools(server) == ["find_cases", "get_case"]


def test_what_is_no_admin_is_refused():
    one, two = (site_with((Ticket, PlainAdmin), name=name) for name in ("one", "two"))
    with pytest.raises(RegistrationError, match=r"registered several times .*one: desk\.Ticket"):
        offered(PlainAdmin)
    with pytest.raises(RegistrationError, match="Device is registered with no admin site called"):
        offered(Device, site=two)
    with pytest.raises(RegistrationError, match="takes a ModelAdmin or a model"):
        offered("support.TicketAdmin", site=one)
    with pytest.raises(RegistrationError, match="takes a ModelAdmin or a model"):
        offered(admin.AdminSite)


def test_without_the_app_nothing_is_made(monkeypatch):
    monkeypatch.setattr(site_offers, "_makers", {})
    with pytest.raises(RegistrationError, match='needs "django_mcp" in INSTALLED_APPS'):
        offered(OwnSession)


def test_rows_named_by_secrets_are_refused():
    class SessionAdmin(admin.ModelAdmin):
        pass

    site = site_with((Session, SessionAdmin))
    with pytest.raises(RegistrationError, match="named by 'session_key', which looks as if"):
        offered(Session, site=site)
    assert offered(Session, site=site, allow_secret=["session_key"])


def test_a_key_of_a_token_is_a_secret_by_the_name_of_its_model():
    class AuthToken(models.Model):
        key = models.CharField(max_length=40)
        created = models.DateTimeField()

        class Meta:
            app_label = "desk"
            managed = False

        def __str__(self) -> str:
            return self.key

    class TokenAdmin(admin.ModelAdmin):
        list_display = ["key", "created"]
        search_fields = ["key"]

    server = MCPServer("desk")
    server.admin(AuthToken, site=site_with((AuthToken, TokenAdmin)))
    find, get = server.tools
    assert find.key.startswith("find")
    described = find.description["inputSchema"]["properties"]
    assert "search" not in described
    assert "key" not in described["ordering"]["enum"]
    assert get.description["outputSchema"]["properties"].keys() == {"id", "created"}


@pytest.mark.django_db
def test_registering_asks_no_database():
    """It may not be there yet, or not as the models say: ``migrate`` registers tools, too."""

    class Asking(PlainAdmin):
        def get_list_display(self, request):
            return ["number", *[each.name for each in Group.objects.all()]]

        def get_fieldsets(self, request, obj=None):
            Group.objects.exists()
            return super().get_fieldsets(request, obj)

    reached = []

    def note(execute, sql, *args):
        answer = execute(sql, *args)
        reached.append(sql)
        return answer

    with connection.execute_wrapper(note):
        wanted = ["close", "find_tickets", "get_ticket"]
        assert offered(Ticket, site=site_with((Ticket, Asking)), actions=["close"]) == wanted
    assert reached == []


@pytest.mark.django_db
def test_users_of_a_model_of_the_sites_own_need_not_be_as_djangos(monkeypatch):
    class Person:
        """As in Django's own example of such a model."""

        _meta = User._meta
        is_active = is_admin = True
        is_staff = property(lambda self: self.is_admin)

        def has_perm(self, permission, obj=None):
            return self.is_admin

    monkeypatch.setattr(admin_requests, "get_user_model", lambda: Person)
    client = client_for(PlainAdmin, boss(), write=["update"], actions=["by_permission"])
    assert len(client.list_tools()) == 4


@pytest.mark.django_db
def test_methods_that_asked_are_asked_with_each_call():
    class Asking(PlainAdmin):
        def get_list_display(self, request):
            return ["number", *[each.name for each in Group.objects.all()]]

    one = ticket()
    Group.objects.create(name="subject")
    client = client_for(Asking, boss())
    assert found(client)["items"] == [{"id": one.pk, "number": "T-1", "subject": "Subject 1"}]


def everything():
    return [each for each in admin.site._registry.values() if each.model not in (User, Session)]


@pytest.mark.django_db
@pytest.mark.parametrize("model_admin", everything(), ids=lambda each: each.opts.label)
def test_admins_that_are_there_can_be_read(model_admin):
    """Those of Django and of this package, as they are: no error, no secret, no change."""
    server = MCPServer("all")
    server.admin(model_admin, name="thing", plural="things")
    client = MCPClient(server, revision=MODERN).as_user(boss())
    assert [each["name"] for each in client.list_tools()] == ["find_things", "get_thing"]
    page = found(client, "find_things")
    assert page == {"items": []} or page["items"]
    properties = client.list_tools()[1]["outputSchema"]["properties"]
    assert not [name for name in properties if looks_secret(name)]


@pytest.mark.django_db
def test_the_log_of_the_admin_can_be_read_and_not_written():
    class LogAdmin(admin.ModelAdmin):
        list_display = ["__str__", "user", "object_repr"]
        list_filter = ["action_flag"]

        def has_change_permission(self, request, obj=None):
            return False

    one = ticket()
    site = site_with((LogEntry, LogAdmin), (Ticket, PlainAdmin), (Comment, None))
    server = MCPServer("desk")
    server.admin(Ticket, site=site, write=["update"])
    server.admin(LogEntry, site=site, write=["update"], name="entry")
    client = MCPClient(server, revision=MODERN).as_user(boss())
    client.tool("update_ticket", id=one.pk, subject="New").assert_ok()
    (entry,) = found(client, "find_entries", action_flag=2)["items"]
    assert entry["user"]["text"] == "boss"
    client.tool("update_entry", id=entry["id"], object_repr="x").assert_error(-32602, "Unknown")


@pytest.mark.django_db
def test_the_sites_own_admin_is_not_changed():
    site = site_with((Ticket, PlainAdmin))
    own = site.get_model_admin(Ticket)
    before = dict(vars(own)), dict(vars(PlainAdmin))
    one = ticket()
    server = MCPServer("desk")
    server.admin(own, write=["create", "update", "delete"], actions=["close"], confirm=False)
    client = MCPClient(server, revision=MODERN).as_user(boss())
    for tool, arguments in (
        ("find_tickets", {"search": "x"}),
        ("update_ticket", {"id": one.pk, "subject": "s"}),
        ("close", {"ids": [one.pk]}),
    ):
        client.tool(tool, **arguments).assert_ok()
    after = dict(vars(own)), dict(vars(PlainAdmin))
    for now, then in zip(after, before, strict=True):
        # Python notes with a class what copy() found.
        assert {k for k, v in now.items() if then.get(k) is not v} <= {"__slotnames__"}


@pytest.mark.django_db
def test_a_page_costs_what_its_rows_do_not_add_to():
    ticket()
    client = client_for(PlainAdmin, boss())
    client.tool("find_tickets")
    with counted() as statements:
        client.tool("find_tickets").assert_ok()
    rows = [each for each in statements if 'FROM "desk_' in each or "FROM `desk_" in each]
    assert len(rows) == 1, rows


PROGRAM = """
import sys, django
from django.conf import settings
settings.configure(INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes",
    "django_mcp"], DATABASES={}, DJANGO_MCP={"AUTH": "django_mcp.auth.public"}, SECRET_KEY="x")
django.setup()
print([name for name in sys.modules if name.startswith(("django.contrib.admin",
    "django_mcp.model_tools"))])
"""


def test_who_offers_no_admin_does_not_import_it():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout.strip() == "[]", done.stdout + done.stderr
