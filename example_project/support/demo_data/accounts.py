"""Groups, and a user for each role: admin, agents and customers."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass

from django.conf import settings
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import Group, Permission, User

AGENTS_GROUP = "Support agents"
CUSTOMERS_GROUP = "Customers"

AGENT_PERMISSIONS = [
    "view_customer", "add_customer", "change_customer",
    "view_ticket", "add_ticket", "change_ticket",
    "view_all_tickets", "assign_ticket", "view_statistics",
    "view_comment", "add_comment", "add_internal_comment",
    "view_refund", "add_refund",
    "view_article", "add_article", "change_article",
]  # fmt: skip
CUSTOMER_PERMISSIONS = ["view_ticket", "view_comment", "add_comment", "view_article"]

ADMIN_NAME = "admin"
AGENT_NAMES = ["agent", "agent2", "agent3"]
CUSTOMER_NAMES = ["customer", "customer2"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounts:
    """The demo users; `password` is empty when all of them were there before."""

    admin: User
    agents: list[User]
    customers: list[User]
    password: str


def demo_password() -> str:
    """A fixed password on a developer's machine; elsewhere one that nobody can guess."""
    chosen = os.environ.get("DEMO_PASSWORD", "")
    return chosen or ("demo" if settings.DEBUG else secrets.token_urlsafe(12))


def ensure_accounts() -> Accounts:
    """Create the groups and users that are missing; leave those that exist as they are."""
    agents = _ensure_group(AGENTS_GROUP, AGENT_PERMISSIONS)
    customers = _ensure_group(CUSTOMERS_GROUP, CUSTOMER_PERMISSIONS)
    missing = {ADMIN_NAME, *AGENT_NAMES, *CUSTOMER_NAMES} - set(
        User.objects.values_list("username", flat=True)
    )
    password = demo_password() if missing else ""
    # Hashing is slow on purpose, and these users share a password anyway: hash it once.
    hashed = make_password(password) if missing else ""
    return Accounts(
        admin=_ensure_user(ADMIN_NAME, hashed, is_staff=True, is_superuser=True),
        agents=[_ensure_user(name, hashed, group=agents, is_staff=True) for name in AGENT_NAMES],
        customers=[_ensure_user(name, hashed, group=customers) for name in CUSTOMER_NAMES],
        password=password,
    )


def _ensure_group(name: str, codenames: list[str]) -> Group:
    group, created = Group.objects.get_or_create(name=name)
    if created:
        group.permissions.set(
            Permission.objects.filter(content_type__app_label="support", codename__in=codenames)
        )
    return group


def _ensure_user(
    name: str,
    hashed: str,
    *,
    group: Group | None = None,
    is_staff: bool = False,
    is_superuser: bool = False,
) -> User:
    user, created = User.objects.get_or_create(
        username=name,
        defaults={
            "email": f"{name}@example.com",
            "password": hashed,
            "is_staff": is_staff,
            "is_superuser": is_superuser,
        },
    )
    if created and group is not None:
        user.groups.add(group)
    return user
