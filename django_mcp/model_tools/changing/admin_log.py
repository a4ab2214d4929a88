"""Entries in the admin's log of what tools have written, in the name of their caller."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from django.apps import apps
from django.contrib.auth import get_user_model

from ...server.context import Context

CLIENT_CHARACTERS: Final = 60
"""Characters of the name that a client gives itself."""


def log_addition(ctx: Context, row: Any, form: Any) -> None:
    """Note that a row was added."""
    if _is_kept(ctx):
        from django.contrib.admin.models import ADDITION  # noqa: PLC0415

        _log(ctx, [row], ADDITION, _message_of(form, add=True))


def log_change(ctx: Context, row: Any, form: Any) -> None:
    """Note which fields of a row were changed by a form."""
    if _is_kept(ctx):
        from django.contrib.admin.models import CHANGE  # noqa: PLC0415

        _log(ctx, [row], CHANGE, _message_of(form, add=False))


def log_action(ctx: Context, rows: Sequence[Any], name: str) -> None:
    """Note that an action was applied to rows."""
    if _is_kept(ctx):
        from django.contrib.admin.models import CHANGE  # noqa: PLC0415

        _log(ctx, rows, CHANGE, f"{name}.")


def log_deletions(ctx: Context, rows: Sequence[Any]) -> None:
    """Note that rows are deleted, as long as they are there."""
    if _is_kept(ctx):
        from django.contrib.admin.models import DELETION  # noqa: PLC0415

        _log(ctx, rows, DELETION, "Deleted.")


def via_mcp(ctx: Context, message: str) -> str:
    """Return what the log says of something, with how it was done."""
    return f"{message} (via MCP, client {client_of(ctx)})"


def message_of(said: Any) -> str:
    """Return in words what the admin has constructed of a change."""
    from django.contrib.admin.models import LogEntry  # noqa: PLC0415

    # It keeps what was done as JSON, which has no place for how.
    entry = LogEntry(change_message=said if isinstance(said, str) else json.dumps(said))
    return str(entry.get_change_message())


def client_of(ctx: Context) -> str:
    """Return what the client calls itself, or whose credentials it has."""
    said = ctx.client_info.get("name") or ctx.client_id or "unknown"
    return str(said)[:CLIENT_CHARACTERS]


def _is_kept(ctx: Context) -> bool:
    """Return whether there is a log, and a user for it."""
    is_kept = apps.is_installed("django.contrib.admin")
    return is_kept and isinstance(ctx.user, get_user_model()) and ctx.user.pk is not None


def _log(ctx: Context, rows: Sequence[Any], flag: int, message: str) -> None:
    from django.contrib.admin.models import LogEntry  # noqa: PLC0415

    said = via_mcp(ctx, message)
    LogEntry.objects.log_actions(
        user_id=ctx.user.pk, queryset=rows, action_flag=flag, change_message=said
    )


def _message_of(form: Any, *, add: bool) -> str:
    from django.contrib.admin.utils import construct_change_message  # noqa: PLC0415

    return message_of(construct_change_message(form, [], add))
