"""How states, moments and JSON look."""

from __future__ import annotations

import datetime as dt
import json
from enum import StrEnum
from typing import Any

from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timesince import timesince
from django.utils.timezone import is_aware, localtime
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

LONGEST = 4_000
"""Characters shown of what a client has sent, which may be megabytes."""

MINUTE = dt.timedelta(minutes=1)


class Tone(StrEnum):
    """What a badge's colour says; the style sheet has the colours."""

    GOOD = "good"
    NEW = "new"
    OFF = "off"
    WARNING = "warning"
    BAD = "bad"


def badge(label: str | Promise, tone: Tone) -> SafeString:
    """Return a state as a coloured word."""
    return format_html('<span class="mcp-badge mcp-{}">{}</span>', tone.value, label)


def relative(moment: dt.datetime | None, *, now: dt.datetime) -> SafeString:
    """Return how long ago, or in how long, ``moment`` is. The exact time is its title."""
    if moment is None:
        return SafeString("-")
    local = localtime(moment) if is_aware(moment) else moment
    exact = local.isoformat(sep=" ", timespec="seconds")
    return format_html(
        '<time datetime="{}" title="{}">{}</time>', moment.isoformat(), exact, _span(moment, now)
    )


def lasting(begin: dt.datetime, end: dt.datetime | None) -> str:
    """Return how long something took, as precisely as that is of use."""
    if end is None:
        return "-"
    seconds = max(0.0, (end - begin).total_seconds())
    if seconds >= MINUTE.total_seconds():
        return timesince(begin, end, depth=1)
    return _("%(seconds)s\xa0s") % {
        "seconds": f"{seconds:.0f}" if seconds >= 10 else f"{seconds:.1f}"
    }


def pretty(value: Any) -> SafeString:
    """Return JSON, indented."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    text = text.encode(errors="replace").decode()  # JSON may hold half a surrogate pair
    cut = text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
    return format_html('<pre class="mcp-json">{}</pre>', cut)


def short_id(key: Any) -> SafeString:
    """Return the beginning of a session's public key, enough to tell it from its neighbours."""
    return format_html("<code>{}</code>", str(key)[:8])


def principal(row: Any) -> SafeString:
    """Return who a session or a request belongs to: the user, and the client that acts for it."""
    return two_lines(row.user.get_username() if row.user else _("anonymous"), row.client_id)


def two_lines(first: str | Promise, second: str | Promise) -> SafeString:
    """Return one fact with a lesser one below it, if there is one."""
    if not second:
        return format_html("{}", first)
    return format_html('{}<br><span class="small quiet mcp-below">{}</span>', first, second)


def _span(moment: dt.datetime, now: dt.datetime) -> str:
    if moment > now:
        return _remaining(moment, now)
    if now - moment < MINUTE:
        return _("just now")
    return _("%(time)s ago") % {"time": timesince(moment, now, depth=1)}


def _remaining(moment: dt.datetime, now: dt.datetime) -> str:
    """Return a span that is never longer than what is left, and never nothing."""
    if moment - now >= MINUTE:
        return _("in %(time)s") % {"time": timesince(now, moment, depth=1)}
    if seconds := int((moment - now).total_seconds()):
        return ngettext("in %d\xa0second", "in %d\xa0seconds", seconds) % seconds
    return _("in a moment")
