"""``manage.py mcp doctor``: find out why clients cannot connect to a server."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser

from ..doctor.findings import Finding, Level
from ..doctor.known_clients import CLIENT_DOCUMENT, INSPECTOR_ORIGIN

if TYPE_CHECKING:
    from ..doctor.examination import Report

MARKS: Final = {
    Level.GOOD: "ok",
    Level.NOTE: "note",
    Level.WARNING: "warning",
    Level.BROKEN: "BROKEN",
}
TOKEN_BYTES: Final = 64 * 1024
LONGEST_SECONDS: Final = 600.0
_TOKEN: Final = re.compile(r"[A-Za-z0-9\-._~+/]+=*")


def add_doctor(subcommands: argparse._SubParsersAction[CommandParser]) -> None:
    """Add ``doctor``."""
    parser = subcommands.add_parser(
        "doctor", help="Find out why clients cannot connect to a server."
    )
    parser.add_argument("url", help="The URL that people give their clients.")
    parser.add_argument(
        "--token-file", metavar="FILE", help='A file with a token; "-" is standard input.'
    )
    parser.add_argument(
        "--token-env", metavar="NAME", help="A variable of the environment with a token."
    )
    parser.add_argument(
        "--origin",
        default=INSPECTOR_ORIGIN,
        help="The origin of a page that is to use the server; by default that of the Inspector.",
    )
    parser.add_argument(
        "--client-document",
        metavar="URL",
        default=CLIENT_DOCUMENT,
        help="A client's document, which this host tries to fetch; empty for none.",
    )
    parser.add_argument(
        "--timeout", type=_seconds, default=10.0, help="Seconds for each request; 10 by default."
    )
    parser.add_argument(
        "--watch",
        type=_seconds,
        default=5.0,
        help="Seconds for which an open stream is watched; 5 by default.",
    )
    parser.add_argument(
        "--max-seconds", type=_seconds, default=180.0, help="Seconds for all; 180 by default."
    )
    parser.add_argument("--json", action="store_true", help="Print the findings as JSON.")
    parser.set_defaults(run=examine)


def examine(command: BaseCommand, options: dict[str, Any]) -> None:
    """Look at the server, print what was found out, and fail if something is broken."""
    try:
        from ..doctor import examination, visit  # noqa: PLC0415
    except ImportError as error:
        raise CommandError(
            '"mcp doctor" needs httpx. Install it: pip install "django-mcp-endpoints[client]"'
        ) from error
    wanted = visit.Options(
        token=_token(options),
        origin=options["origin"],
        timeout=options["timeout"],
        watch=options["watch"],
        max_seconds=options["max_seconds"],
        client_document=options["client_document"],
    )
    try:
        report = asyncio.run(examination.examine(options["url"], wanted))
    except ValueError as error:
        raise CommandError(str(error)) from error
    if options["json"]:
        command.stdout.write(json.dumps(_as_json(report), indent=2, ensure_ascii=False))
    else:
        _print(command, report, options["verbosity"])
    if number := report.count(Level.BROKEN):
        raise CommandError(f"{number} {'thing is' if number == 1 else 'things are'} broken.")


def _token(options: dict[str, Any]) -> str | None:
    """Return the token, which is on no command line: others would see it there."""
    file, name = options["token_file"], options["token_env"]
    if file and name:
        raise CommandError("Give --token-file or --token-env, not both.")
    if name:
        if name not in os.environ:
            raise CommandError(f"There is no variable {name} in the environment.")
        text = os.environ[name]
    elif file:
        text = _read(file)
    else:
        return None
    if not _TOKEN.fullmatch(text.strip()):
        raise CommandError("What is there is no token: it is empty, or has characters none may.")
    return text.strip()


def _read(file: str) -> str:
    try:
        with sys.stdin.buffer if file == "-" else Path(file).open("rb") as source:
            return source.read(TOKEN_BYTES).decode("ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"No token can be read from {file}: {error}") from error


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.1 <= seconds <= LONGEST_SECONDS:
        raise argparse.ArgumentTypeError(f"give seconds from 0.1 to {LONGEST_SECONDS:g}")
    return seconds


def _as_json(report: Report) -> dict[str, Any]:
    return {
        "url": report.url,
        "broken": report.count(Level.BROKEN),
        "warnings": report.count(Level.WARNING),
        "findings": [
            {
                "section": section.title,
                "level": finding.level.value,
                "name": finding.name,
                "message": finding.message,
                "cure": finding.cure,
            }
            for section in report.sections
            for finding in section.findings
        ],
    }


def _print(command: BaseCommand, report: Report, verbosity: int) -> None:
    command.stdout.write(report.url)
    for section in report.sections:
        shown = [each for each in section.findings if verbosity or each.level is Level.BROKEN]
        if shown:
            command.stdout.write("")
            command.stdout.write(command.style.MIGRATE_HEADING(section.title))
        for finding in shown:
            _print_finding(command, finding)
    broken, warnings = report.count(Level.BROKEN), report.count(Level.WARNING)
    command.stdout.write("")
    command.stdout.write(f"{broken} broken, {warnings} warnings.")


def _print_finding(command: BaseCommand, finding: Finding) -> None:
    style = {
        Level.GOOD: command.style.SUCCESS,
        Level.NOTE: command.style.HTTP_INFO,
        Level.WARNING: command.style.WARNING,
        Level.BROKEN: command.style.ERROR,
    }[finding.level]
    command.stdout.write(f"  {style(f'{MARKS[finding.level]:<7}')} {finding.message}")
    if finding.cure:
        command.stdout.write(f"          {finding.cure}")
