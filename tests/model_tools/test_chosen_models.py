"""Which models of an admin site patterns mean, and which none means by accident."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import Group, User
from django.contrib.sessions.models import Session

from django_mcp import RegistrationError
from django_mcp.contrib.tokens.models import Token
from django_mcp.model_tools.generic.chosen_models import allowed_of, choose, holds_credentials
from django_mcp.models import Session as MCPSession

from .desk.models import Customer, Ticket

REGISTERED = [User, Group, Session, Token, MCPSession, Ticket, Customer]


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        (["desk.*"], [Ticket, Customer]),
        (["desk.Customer"], [Customer]),
        (["DESK.customer", "desk.*"], [Customer, Ticket]),
        (["auth.Group", "desk.Ticket"], [Group, Ticket]),
        (["*"], [User, Group, Ticket, Customer]),
        (["sessions.Session", "desk.Ticket"], [Session, Ticket]),
    ],
)
def test_patterns_mean_models(patterns, expected):
    assert choose(REGISTERED, patterns) == expected


def test_some_are_excluded():
    assert choose(REGISTERED, ["*"], ["auth.*", "desk.Ticket"]) == [Customer]
    with pytest.raises(RegistrationError, match="exclude= leaves none"):
        choose(REGISTERED, ["desk.*"], ["desk.*"])


@pytest.mark.parametrize("pattern", ["desk.Nothing", "nothing.*", "Ticket", "desk", "desk.Tag"])
def test_a_pattern_that_means_nothing_is_a_mistake(pattern):
    message = f"models= has {pattern!r}, which is no model here"
    with pytest.raises(RegistrationError, match=re.escape(message)):
        choose(REGISTERED, ["desk.Ticket", pattern])
    with pytest.raises(RegistrationError, match="exclude= has"):
        choose(REGISTERED, ["desk.*"], [pattern])


@pytest.mark.parametrize("models", ["desk.*", [], ()])
def test_several_patterns_are_taken(models):
    with pytest.raises(RegistrationError, match="take several"):
        choose(REGISTERED, models)


def test_what_holds_sessions_or_credentials_is_meant_by_its_full_name_alone():
    assert holds_credentials(Token)
    assert holds_credentials(MCPSession)
    assert not holds_credentials(User)
    for pattern in ("sessions.*", "django_mcp_tokens.*"):
        with pytest.raises(RegistrationError, match="name each in full"):
            choose(REGISTERED, [pattern])
    full = Token._meta.label
    assert choose(REGISTERED, [full]) == [Token]


def test_what_is_allowed_is_said_of_all_or_by_patterns():
    models = [Ticket, Customer]
    assert allowed_of(Ticket, models, ["update"], "write=") == ["update"]
    given = {"desk.*": ["update"], "desk.Ticket": ["update", "delete"]}
    assert allowed_of(Ticket, models, given, "write=") == ["update", "delete"]
    assert allowed_of(Customer, models, given, "write=") == ["update"]
    with pytest.raises(RegistrationError, match=r"write= has 'desk\.Tag'"):
        allowed_of(Customer, models, {"desk.Tag": ["update"]}, "write=")
    with pytest.raises(RegistrationError, match=r"actions= takes several, as in \['close'\]"):
        allowed_of(Customer, models, "close", "actions=")
