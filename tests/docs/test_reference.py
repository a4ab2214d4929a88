"""The reference and the code agree: nothing is undocumented, and nothing documented is invented."""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import re
import typing
from collections.abc import Callable
from types import NoneType
from typing import Any

import pytest
from django.dispatch import Signal

import django_mcp
from django_mcp import FileLink, MCPServer, auth, conf, content, routing, signals, testing
from django_mcp.contrib.oauth import (
    client_documents,
    fetching,
    introspection,
    issuers,
    tokens,
    users,
)
from django_mcp.contrib.oauth.allauth import clients
from django_mcp.contrib.otel import conventions
from django_mcp.contrib.sentry import call_scope
from django_mcp.contrib.tokens import views
from django_mcp.http.views import MCPView
from django_mcp.management import prune
from django_mcp.management.commands import mcp as command
from django_mcp.model_tools.changing import chosen_rows, confirming
from django_mcp.model_tools.fields import row_fields
from django_mcp.model_tools.finding import lookups
from django_mcp.model_tools.finding import pages as row_pages
from django_mcp.model_tools.generic import offered_models
from django_mcp.model_tools.generic.changing import TAKEN
from django_mcp.model_tools.options import ModelOptions
from django_mcp.protocol import bounded, messages, uri_template
from django_mcp.protocol.errors import ErrorCode
from django_mcp.protocol.lifecycle import SessionInfo
from django_mcp.running import call_observers, worker_threads
from django_mcp.server import (
    api_requests,
    arguments,
    commands,
    exception_table,
    files,
    json_schema,
    uploads,
)
from django_mcp.server.context import Context
from django_mcp.server.fields import field_types, form_arguments
from django_mcp.server.methods import base_protocol, completion, subscriptions
from django_mcp.server.questions import asking, mrtr
from django_mcp.server.questions import fields as question_fields
from django_mcp.store import inbox
from django_mcp.store.access import rate_counters
from django_mcp.store.sessions import session_cache, session_rows
from tests.clients.environments import REQUIREMENTS
from tests.clients.isolated import ISOLATED

from .markdown import ROOT, pages, text_of
from .tables import code, first_column, literal, rows, section

REFERENCE = "docs/reference"
SETTINGS = f"{REFERENCE}/settings.md"
DECORATORS = f"{REFERENCE}/decorators.md"
CONTEXT = f"{REFERENCE}/context.md"
MODEL_TOOLS = f"{REFERENCE}/model-tools.md"
TESTING = f"{REFERENCE}/testing.md"

EMPTY = inspect.Parameter.empty


def source() -> str:
    files = sorted((ROOT / "django_mcp").rglob("*.py"))
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


def public(kind: type) -> set[str]:
    own = {name for base in kind.__mro__ if base is not object for name in vars(base)}
    return {name for name in own if not name.startswith("_")}


def written(value: Any) -> str:
    """Return a default as the tables have it."""
    return "required" if value is EMPTY else "mcp" if value is django_mcp.mcp else repr(value)


def options(function: Callable[..., Any], *, without: tuple[str, ...] = ()) -> dict[str, str]:
    parameters = inspect.signature(function).parameters.values()
    return {
        each.name: written(each.default)
        for each in parameters
        if each.name not in ("self", "function", *without)
    }


def documented(page: str, heading: str) -> dict[str, str]:
    return {code(row[0]): code(row[1]) for row in rows(section(page, heading))}


# Signals

SIGNALS = f"{REFERENCE}/signals.md"


def test_every_signal_and_every_field_of_a_call_is_documented():
    own = {name for name, value in vars(signals).items() if isinstance(value, Signal)}
    assert {*first_column(text_of(SIGNALS).partition("## ")[0])} == own
    fields = [each.name for each in dataclasses.fields(signals.CallInfo)]
    assert first_column(section(SIGNALS, "## CallInfo")) == fields
    said = inspect.getsource(signals.CallInfo) + inspect.getsource(call_observers._kind)
    for outcome in first_column(section(SIGNALS, "## Outcomes")):
        assert outcome in said


def test_every_attribute_of_a_span_is_documented():
    named = {
        value
        for name, value in vars(conventions).items()
        if name.isupper() and isinstance(value, str) and "." in value
    }
    page = "docs/how-to/opentelemetry.md"
    cells = " ".join(" ".join(row[:1]) for row in rows(text_of(page)))
    assert set(re.findall(r"`([\w.]+)`", cells)) == named


def test_every_tag_of_an_event_is_documented():
    tags = set(re.findall(r'"(mcp\.\w+)"', inspect.getsource(call_scope._tags)))
    (row,) = (row for row in rows(text_of("docs/how-to/sentry.md")) if row[0] == "tags")
    assert set(re.findall(r"`([\w.]+)`", row[1])) == tags


# Settings


def test_every_setting_is_documented_with_type_and_default():
    tables = {
        code(row[0]): row for row in rows(text_of(SETTINGS)) if code(row[0]).isupper() and row[3:]
    }
    kinds = {name.upper(): kind for name, kind in typing.get_type_hints(conf.Settings).items()}
    assert tables.keys() == kinds.keys()
    for key, (_, kind, default, _meaning) in tables.items():
        expected = getattr(conf.Settings(), key.lower())
        if kinds[key] == tuple[str, ...]:  # sites write lists
            assert (code(kind), literal(default)) == ("list[str]", list(expected)), key
        else:
            assert literal(default) == expected, key
            assert key in ("AUTH", "CALL_CONTEXT", "OAUTH_USER") or code(kind) == type_in_words(
                kinds[key]
            ), key


def type_in_words(kind: Any) -> str:
    if typing.get_origin(kind) is dict:
        return "dict"
    kinds = typing.get_args(kind) or (kind,)
    return " | ".join("None" if each is NoneType else each.__name__ for each in kinds)


def test_every_old_name_of_a_setting_is_documented():
    table = rows(section(SETTINGS, "## Upgrade notes"))
    assert {code(old): code(new) for old, new in table} == conf.OLD_NAMES


LIMITS = {
    "Characters of a token of an authorization server": tokens.MAX_TOKEN_CHARACTERS,
    "Characters of the id of its client, which beyond is told by a digest": (
        tokens.MAX_CLIENT_CHARACTERS
    ),
    "Characters of a claim that names a user": users.MAX_CLAIM_CHARACTERS,
    "Keys of an authorization server": issuers.MAX_KEYS,
    "Bytes of a document of an authorization server": fetching.MAX_DOCUMENT_BYTES,
    "Seconds that fetching the document of a client may take": client_documents.MAX_SECONDS,
    "Bytes of the document of a client": client_documents.MAX_DOCUMENT_BYTES,
    "Characters of the URL of a client's document, and of a URL that it names": (
        client_documents.MAX_URL_CHARACTERS
    ),
    "Redirect URIs in the document of a client": client_documents.MAX_REDIRECT_URIS,
    "Characters of the name in it, which is cut": client_documents.MAX_NAME_CHARACTERS,
    "Addresses of its host that are tried": client_documents.MAX_ADDRESSES,
    "Answers about tokens that a process remembers, of those that hold, and of others": (
        introspection.MAX_CACHED
    ),
    "Bytes of a client's registration at django-allauth": clients.MAX_REGISTRATION_BYTES,
    "Times that a question is asked until its answer fits": asking.MAX_ATTEMPTS,
    "Times that one call may come back with questions": mrtr.MAX_ROUNDS,
    "Nesting of arrays and objects in a body": messages.MAX_DEPTH,
    "Digits of an integer in a body": messages.MAX_DIGITS,
    "Objects and alternatives of unions that are tried to make sense of the arguments of a call": (
        bounded.MAX_TRIALS
    ),
    "The same for a body of 1000 values or fewer": bounded.MAX_TRIALS_OF_FEW,
    "Objects in a list that the protocol defines, such as icons, in a larger body": (
        bounded.MAX_ITEMS
    ),
    "Different values with one hash in a set, or among keys other than text": (
        bounded.MAX_COLLISIONS
    ),
    "Characters of the texts in the arguments of a call that are read as JSON, together": (
        arguments.MAX_DECODED_CHARACTERS
    ),
    "Values in one of them": arguments.MAX_DECODED_VALUES,
    "Values that an answer to a question chooses, where there are fewer to choose from": (
        question_fields.MAX_CHOSEN
    ),
    "Characters in the id of a request": messages.MAX_ID_LENGTH,
    "Messages in a batch": messages.MAX_BATCH,
    "Characters of a server's name": conf.MAX_SERVER_NAME_LENGTH,
    "Characters of a URI that is matched with a template": uri_template.MAX_LENGTH,
    "Characters of the URIs of one `subscriptions/listen`, together": (
        subscriptions.MAX_URI_CHARACTERS
    ),
    "Times as large that a schema may become without definitions": json_schema.MAX_GROWTH,
    "Values of a call's arguments for which it is tried whether null was meant": (
        arguments.MAX_NULLS
    ),
    "Wrong arguments that one answer names": arguments.MAX_PROBLEMS,
    "Messages of one exception that are told": exception_table.MAX_MESSAGES,
    "Bytes of a file that a result holds": files.MAX_FILE_BYTES,
    "Rows of a list without pages of a REST framework view or a ninja operation": (
        api_requests.MAX_ROWS
    ),
    "Bytes of a file that an argument is, unless `Upload` or `mcp.form` says otherwise": (
        uploads.MAX_UPLOAD_BYTES
    ),
    "Characters of what a management command has written that a result holds": (
        commands.MAX_OUTPUT_CHARACTERS
    ),
    "Characters of a text that tools of models search or filter by": field_types.MAX_TEXT,
    "Digits of a decimal that tools of models and forms take, where its field names no number": (
        field_types.MAX_DIGITS
    ),
    "Choices of a field that their schemas name": field_types.MAX_CHOICES,
    "Values of a list that they filter by": lookups.MAX_VALUES,
    "Words that they search for": lookups.MAX_WORDS,
    "Rows of their pages, and of those of `Page`": row_pages.MAX_PAGE,
    "Rows that they look at for a page, where permissions may hide each": row_pages.MAX_LOOKED_AT,
    "Related rows that they show of one": row_fields.MAX_LISTED,
    "Rows that one of their calls changes": chosen_rows.MAX_ROWS,
    "Rows that their confirmations name": confirming.MAX_NAMED,
    "Values of several choices of a form that they take": form_arguments.MAX_CHOSEN,
    "Names that an error of the five tools for many models lists": offered_models.MAX_NAMED,
    "Values in an answer to `completion/complete`": completion.MAX_VALUES,
    "Bytes of `clientInfo` in `initialize`, icons that do not fit left out, and as many of "
    "`capabilities`": base_protocol.MAX_INFO_BYTES,
    "Levels to which either of them may be nested": base_protocol.MAX_SENDER_DEPTH,
    "Sessions that one `initialize` ends at most to make room": session_rows.EVICTED_AT_ONCE,
    "Cancellations that a session may leave for calls that are not known yet": inbox.MAX_EARLY,
    "Threads that wait for answers without keeping others from running": (
        worker_threads.MAX_IDLE_THREADS
    ),
    "Sessions that a process remembers at the same time": session_cache.MAX_SESSIONS,
    "Callers that a process counts for itself at the same time": rate_counters.MAX_COUNTS,
    "Rows that `mcp prune` removes at most in one statement": prune.MAX_BATCH_SIZE,
    "Days for which a token is issued, unless it never expires": conf.MAX_TOKEN_DAYS,
    "Active tokens of a person who makes another one": views.MAX_OWN_TOKENS,
}


def test_every_limit_is_documented():
    table = rows(section(SETTINGS, "## Limits that are not settings"))
    assert {row[0]: int(row[1]) for row in table} == LIMITS
    named = re.findall(r"^(?:MAX_\w+|EVICTED_AT_ONCE)(?:: \w+)? = ", source(), re.MULTILINE)
    assert len(named) == len(LIMITS), named


@pytest.mark.parametrize("page", pages())
def test_no_page_names_a_setting_that_does_not_exist(page: str):
    known = {field.name.upper() for field in dataclasses.fields(conf.Settings)}
    named = set(re.findall(r'DJANGO_MCP\["([A-Z_]+)"\]', text_of(page)))
    for block in re.findall(r"^DJANGO_MCP = \{(.*?)\}$", text_of(page), re.MULTILINE | re.DOTALL):
        named |= set(re.findall(r'"([A-Z_]+)":', block))
    assert named <= known


# Python


def test_every_exported_name_is_documented():
    assert set(first_column(section(DECORATORS, "## Names"))) == set(django_mcp.__all__)


@pytest.mark.parametrize("kind", ["tool", "prompt"])
def test_every_option_of_a_decorator_is_documented(kind: str):
    with_options = typing.get_overloads(getattr(MCPServer, kind))[-1]
    assert documented(DECORATORS, f"## mcp.{kind}") == options(with_options)


@pytest.mark.parametrize(
    ("heading", "function"),
    [
        ("## mcp.app", MCPServer.app),
        ("## mcp.resource", MCPServer.resource),
        ("## mcp.completion", MCPServer.completion),
        ("## MCPServer", MCPServer),
        ("## endpoint", routing.endpoint),
        ("## FileLink", FileLink),
    ],
)
def test_every_option_is_documented(heading: str, function: Callable[..., Any]):
    assert documented(DECORATORS, heading) == options(function)


def test_every_option_of_forms_is_documented():
    table = documented(DECORATORS, "## mcp.form")
    table.pop("others")  # of mcp.tool
    assert table == options(MCPServer.form, without=("options",))


def test_every_option_of_an_upload_is_documented():
    table = text_of("docs/how-to/return-querysets.md").partition("### Files that come in")[2]
    assert {code(row[0]): code(row[1]) for row in rows(table)} == options(django_mcp.Upload)


def test_every_option_of_an_admin_site_is_documented():
    table = [row for row in rows(section(DECORATORS, "## mcp.admin_site")) if code(row[1])]
    said = {code(row[0]): code(row[1]) for row in table if row[0] != "others"}
    own = options(MCPServer.admin_site, without=("site", "options"))
    assert {name: said[name] for name in own} == own
    assert said.keys() - own == TAKEN.keys()


def test_every_option_of_tools_of_models_is_documented():
    attributes = {
        name: written(getattr(ModelOptions, name)) for name in inspect.get_annotations(ModelOptions)
    }
    table = [row for row in rows(section(MODEL_TOOLS, "## Options")) if len(row) == 3]
    assert {code(row[0]): code(row[1]) for row in table} == attributes


def test_every_method_of_tools_of_models_is_documented():
    own = {
        f"{name}{bare(member)}"
        for name, member in vars(ModelOptions).items()
        if inspect.isfunction(member) and name.startswith(("get_", "save_", "delete_", "has_"))
    }
    assert set(first_column(section(MODEL_TOOLS, "## Methods"))) == own


def test_every_way_to_announce_a_change_is_documented():
    methods = {name for name in vars(MCPServer) if name.startswith("notify_")}
    assert set(first_column(section(DECORATORS, "## Announcing changes"))) == methods


def test_every_option_of_the_view_is_documented():
    attributes = {
        name: written(getattr(MCPView, name)) for name in inspect.get_annotations(MCPView)
    }
    assert documented(DECORATORS, "## MCPView") == attributes


def test_every_content_function_is_documented():
    own = {
        name: function
        for name, function in vars(content).items()
        if inspect.isfunction(function) and not name.startswith("_")
    }
    table = {
        row[0].partition("(")[0].strip("`"): code(row[0])
        for row in rows(text_of(f"{REFERENCE}/content.md"))
    }
    assert table == {name: f"{name}{bare(function)}" for name, function in own.items()}
    assert set(content.__all__) == {*own, "ContentBlock"}
    assert "`ContentBlock`" in text_of(f"{REFERENCE}/content.md")


def bare(function: Callable[..., Any]) -> str:
    """Return a signature without annotations, nor what it is called on."""
    signature = inspect.signature(function)
    parameters = [
        each.replace(annotation=EMPTY)
        for each in signature.parameters.values()
        if each.name != "self"
    ]
    return str(signature.replace(parameters=parameters, return_annotation=EMPTY))


@pytest.mark.parametrize(
    ("heading", "members"),
    [
        ("## Context", public(Context)),
        (
            "## SessionInfo",
            {field.name for field in dataclasses.fields(SessionInfo)},
        ),
    ],
)
def test_every_attribute_of_the_context_is_documented(heading: str, members: set[str]):
    assert set(first_column(section(CONTEXT, heading))) == members


@pytest.mark.parametrize("kind", [auth.Principal, auth.Refusal])
def test_every_field_of_what_auth_returns_is_documented(kind: type):
    fields = {field.name: written(default_of(field)) for field in dataclasses.fields(kind)}
    assert documented(CONTEXT, f"## {kind.__name__}") == fields


def default_of(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return EMPTY if field.default is dataclasses.MISSING else field.default


def test_the_ready_made_callables_are_documented():
    names = first_column(section(CONTEXT, "## Ready-made callables"))
    own = {name for name in auth.__all__ if inspect.isfunction(getattr(auth, name))}
    own -= {"any_of", "nonblocking", "without_oauth"}  # which take such callables
    assert names == [
        *(f"django_mcp.auth.{name}" for name in sorted(own, reverse=True)),
        "django_mcp.contrib.tokens.auth.token_auth",
        "django_mcp.contrib.oauth.jwt_auth",
        "django_mcp.contrib.oauth.introspection_auth",
        "django_mcp.contrib.oauth.dot_auth",
        "django_mcp.contrib.oauth.allauth_auth",
    ]


@pytest.mark.parametrize("kind", [testing.MCPClient, testing.Answer])
def test_every_member_of_the_test_client_is_documented(kind: type):
    table = section(TESTING, f"## {kind.__name__}")
    methods = {
        name: f"{name}{bare(member)}"
        for name, member in vars(kind).items()
        if inspect.isfunction(member) and not name.startswith("_")
    }
    named = {code(row[0]) for row in rows(table) if len(row) == 2}
    assert {name for name in named if "(" in name} == set(methods.values())


def test_every_attribute_of_an_answer_is_documented():
    named = {name for name in first_column(section(TESTING, "## Answer")) if "(" not in name}
    properties = {
        name for name, member in vars(testing.Answer).items() if isinstance(member, property)
    }
    assert named == properties | {"message", "http", "said"}


def test_every_option_of_the_test_client_is_documented():
    table = [row for row in rows(section(TESTING, "## MCPClient")) if len(row) == 3]
    assert {code(row[0]): code(row[1]) for row in table} == options(testing.MCPClient)


# Checks, codes, commands


def test_every_system_check_is_documented():
    documented = first_column(text_of(f"{REFERENCE}/checks.md"))
    assert documented == sorted(set(re.findall(r'id="(django_mcp[\w.]*\.[EW]\d+)"', source())))


@pytest.mark.parametrize("page", pages())
def test_no_page_names_a_check_that_does_not_exist(page: str):
    named = set(re.findall(r"django_mcp\.[EW]\d+", text_of(page)))
    assert named <= set(first_column(text_of(f"{REFERENCE}/checks.md")))


def test_clients_are_as_the_tests_have_them():
    table = rows(section(f"{REFERENCE}/clients.md", "## What each can do"))
    asked_for = ("resource", "prompt", "progress", "logs", "question", "resumption", "cancellation")
    expected = []
    for each in ISOLATED:
        if each.door == "mount":
            installed = (REQUIREMENTS / f"{each.environment}.txt").read_text().split("\n")[0]
            package, version = re.sub(r"\[.*\]", "", installed).split("==")
            can = ["no" if step in each.lacks else "yes" for step in asked_for]
            expected.append([f"`{each.name}`", f"`{package}` {version}", each.revision, *can])
    assert table == expected


def test_every_error_code_is_documented():
    table = rows(section(f"{REFERENCE}/errors.md", "## Codes"))
    assert {code(row[1]): int(code(row[0])) for row in table} == {
        each.name: each.value for each in ErrorCode
    }


def test_every_logger_is_documented():
    named = set(first_column(section("docs/how-to/deploy.md", "## Logging")))
    given = set(re.findall(r'getLogger\("([\w.]+)"\)', source()))
    by_module = {
        file.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
        for file in (ROOT / "django_mcp").rglob("*.py")
        if "getLogger(__name__)" in file.read_text(encoding="utf-8")
    }
    assert named == given | by_module


def commands(parser: argparse.ArgumentParser, above: str) -> dict[str, argparse.ArgumentParser]:
    """Return all commands below a parser, by their full names."""
    found = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, below in action.choices.items():
                full = f"{above} {name}"
                found |= {full: below, **commands(below, full)}
    return found


def arguments(parser: argparse.ArgumentParser) -> set[str]:
    return {
        (action.option_strings or [action.dest])[-1]
        for action in parser._actions
        if action.help != argparse.SUPPRESS
        and not isinstance(action, (argparse._SubParsersAction, argparse._HelpAction))
    }


def test_every_command_and_its_arguments_are_documented():
    parser = command.Command().create_parser("manage.py", "mcp")
    page = f"{REFERENCE}/commands.md"
    known = commands(parser, "mcp")
    headings = re.findall(r"^#{2,3} (mcp .+)$", text_of(page), re.MULTILINE)
    assert set(headings) == set(known)
    for name, below in known.items():
        depth = "#" * name.count(" ") + "#"
        own = section(page, f"{depth} {name}").partition("\n### ")[0]
        assert set(first_column(own)) == arguments(below), name
