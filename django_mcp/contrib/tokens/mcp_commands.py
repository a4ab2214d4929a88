"""``manage.py mcp token``: create, list, revoke and rotate bearer tokens."""

from __future__ import annotations

import argparse
import datetime as dt
import difflib
from collections.abc import Iterable
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser

from ...conf import MAX_TOKEN_DAYS, get_settings
from ...management.users import find_user
from ...store.cleanup import CleanupRule, CleanupStep
from .choices import known_scopes, known_servers
from .deletion import delete_expired
from .models import Token
from .secret import PREFIX_LENGTH, SCHEME, digest_of, is_well_formed, prefix_of


def add_commands(subcommands: argparse._SubParsersAction[CommandParser]) -> None:
    """Add ``token`` and its verbs."""
    parser = subcommands.add_parser("token", help="Issue, list, revoke and rotate bearer tokens.")
    verbs = parser.add_subparsers(metavar="verb", required=True)
    _add_create(verbs.add_parser("create", help="Issue a token and print its secret, once."))
    _add_list(verbs.add_parser("list", help="List the tokens."))
    for verb, run, description in (
        ("revoke", revoke, "End a token for good."),
        ("rotate", rotate, "Replace a token's secret and print the new one, once."),
    ):
        named = verbs.add_parser(verb, help=description)
        named.add_argument("token", help="Its id, its prefix, or a secret that came to light.")
        named.set_defaults(run=run)


def prunable() -> list[CleanupRule]:
    """Let ``mcp prune`` remove tokens that ended as long ago as sessions that it removes."""
    kept = dt.timedelta(seconds=get_settings().retention_seconds)

    def forget(limit: int) -> CleanupStep:
        return CleanupStep(delete_expired(kept, batch_size=limit), more=False)

    return [CleanupRule("tokens that have ended", lambda: Token.objects.ended(before=kept), forget)]


def _add_create(parser: CommandParser) -> None:
    parser.add_argument("username")
    parser.add_argument("--name", default="", help="What it is for, to recognise it by.")
    parser.add_argument("--expires-days", type=_days, metavar="N", help="Default: it never does.")
    parser.add_argument(
        "--server",
        dest="servers",
        action="append",
        default=[],
        metavar="NAME",
        help="A server that it opens; may be given more than once. Default: all of them.",
    )
    parser.add_argument(
        "--scope",
        dest="scopes",
        action="append",
        metavar="NAME",
        help="A scope that it has; may be given more than once. Default: no scopes limit it.",
    )
    parser.add_argument(
        "--read-only", action="store_true", help="It opens only what changes nothing."
    )
    parser.set_defaults(run=create)


def _add_list(parser: CommandParser) -> None:
    parser.add_argument("--user", metavar="USERNAME", help="Only the tokens of this user.")
    parser.set_defaults(run=list_tokens)


def create(command: BaseCommand, options: dict[str, Any]) -> None:
    """Print the secret alone to stdout, for a pipe, and what people should know to stderr."""
    user = find_user(options["username"])
    if not getattr(user, "is_active", True):
        raise CommandError(f"{user} is inactive, so the token would be refused: activate them.")
    days, scopes = options["expires_days"], options["scopes"]
    _check_scopes(scopes or ())
    _doubt_servers(command, options["servers"])
    try:
        token, secret = Token.objects.issue(
            user,
            name=options["name"],
            expires=dt.timedelta(days=days) if days else None,
            servers=options["servers"],
            scopes=scopes,
            read_only=options["read_only"],
        )
    except ValidationError as error:
        raise CommandError(" ".join(error.messages)) from error
    _explain(command, f"Token {token.pk} of {user}. Keep its secret now, it is not shown again:")
    command.stdout.write(secret)


def _check_scopes(scopes: Iterable[str]) -> None:
    known = known_scopes()
    for scope in scopes:
        if scope not in known:
            near = difflib.get_close_matches(scope, known, n=1)
            cure = f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(known) or 'none'}."
            raise CommandError(
                f'Nothing needs the scope {scope!r}, and DJANGO_MCP["SCOPES"] has it not. {cure}'
            )


def _doubt_servers(command: BaseCommand, names: Iterable[str]) -> None:
    """Say which names are no server's: but other processes of a site may have others."""
    known = [server.name for server in known_servers()]
    for name in names:
        if name and known and name not in known:
            those = ", ".join(known)
            _explain(command, f"No server at a URL is called {name!r}; these are: {those}.")


def rotate(command: BaseCommand, options: dict[str, Any]) -> None:
    """Print the new secret, as ``create`` does."""
    token = _token(options["token"])
    try:
        secret = token.rotate()
    except Token.DoesNotExist as error:
        raise CommandError(f"{error} A token that has ended stays so: create one.") from error
    _explain(command, f"The old secret of token {token.pk} is refused from now on. The new one:")
    command.stdout.write(secret)


def revoke(command: BaseCommand, options: dict[str, Any]) -> None:
    """Revoke a token; doing so again is no error."""
    token = _token(options["token"])
    outcome = "is revoked" if token.revoke() else "had been revoked before"
    command.stdout.write(f"Token {token.pk} of {token.user} {outcome}.")


def list_tokens(command: BaseCommand, options: dict[str, Any]) -> None:
    """Print a table of the tokens, newest first."""
    tokens = Token.objects.with_state().select_related("user")
    if options["user"]:
        tokens = tokens.filter(user_id=find_user(options["user"]).pk)
    limits = ("servers", "scopes", "read-only")
    head = ("id", "prefix", "user", "name", *limits, "state", "expires", "last used")
    rows = [_row(token) for token in tokens]
    if not rows:
        _explain(command, 'There are no tokens. "manage.py mcp token create" issues one.')
        return
    for line in _aligned([head, *rows]):
        command.stdout.write(line)


def _row(token: Token) -> tuple[str, ...]:
    names, scopes = token.server_names, token.granted_scopes
    limits = (
        "none" if names is None else ",".join(names) or "all",
        "all" if scopes is None else ",".join(sorted(scopes)) or "none",
        "yes" if token.read_only else "no",
    )
    times = (_time(token.expires, none="never"), _time(token.last_used, none="never"))
    about = (str(token.pk), token.prefix, str(token.user), token.name)
    return (*about, *limits, token.state, *times)


def _time(moment: dt.datetime | None, *, none: str) -> str:
    return moment.isoformat(" ", "minutes") if moment else none


def _aligned(rows: list[tuple[str, ...]]) -> Iterable[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join(cells).rstrip()


def _token(reference: str) -> Token:
    found = _candidates(reference)
    if len(found) > 1:
        ids = ", ".join(str(token.pk) for token in found)
        raise CommandError(f"That fits several tokens: give one of the ids {ids}.")
    if not found:
        raise CommandError(
            f'No token fits "{prefix_of(reference)}". "manage.py mcp token list" shows ids and '
            f"prefixes; a prefix has {PREFIX_LENGTH} characters."
        )
    return found[0]


def _candidates(reference: str) -> list[Token]:
    tokens = Token.objects.select_related("user")
    if is_well_formed(reference):
        return list(tokens.filter(digest=digest_of(reference)))
    if reference.isascii() and reference.isdigit():
        return list(tokens.filter(pk=reference))
    if not reference.startswith(SCHEME) or reference == SCHEME:
        return []
    # Not every database compares text by case, and secrets differ by it.
    similar = tokens.filter(prefix__startswith=reference)
    return [token for token in similar if token.prefix.startswith(reference)]


def _days(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= MAX_TOKEN_DAYS):
        raise argparse.ArgumentTypeError(f"give a number of days from 1 to {MAX_TOKEN_DAYS}")
    return int(text)


def _explain(command: BaseCommand, sentence: str) -> None:
    command.stderr.write(sentence, command.style.NOTICE)
