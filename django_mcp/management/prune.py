"""``manage.py mcp prune``: remove what nobody needs any more."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from ..partitions import enter_partition, here, partitions
from ..store import cleanup
from .extensions import command_modules

MAX_BATCH_SIZE = 1_000
"""Most rows in one statement: a larger one would be waited for."""


def add_prune(subcommands: argparse._SubParsersAction[CommandParser]) -> None:
    """Add ``prune``."""
    parser = subcommands.add_parser("prune", help="Remove what nobody needs any more.")
    parser.add_argument(
        "--dry-run", action="store_true", help="Say how much would go, and change nothing."
    )
    parser.add_argument(
        "--batch-size",
        type=_size,
        default=cleanup.BATCH_ROWS,
        metavar="N",
        help=f"Most rows in one statement, {cleanup.BATCH_ROWS} by default.",
    )
    parser.set_defaults(run=prune)


def prune(command: BaseCommand, options: dict[str, Any]) -> None:
    """Remove what is due, and say how much of each kind that was: in all partitions, or in the
    one in which it is run.

    It may be ended at any point, and run beside itself and everything else.
    """
    kind = partitions()
    if kind is None or here():
        _prune(command, options)
        return
    failed = []
    for name in kind.all():
        if options["verbosity"]:
            command.stdout.write(command.style.MIGRATE_HEADING(name))
        try:
            with enter_partition(name):
                _prune(command, options)
        except CommandError as error:
            # The others are not to wait until somebody has mended this one.
            command.stderr.write(str(error), command.style.ERROR)
            failed.append(name)
    if failed:
        raise CommandError(f"Not everything was removed in: {', '.join(failed)}.")


def _prune(command: BaseCommand, options: dict[str, Any]) -> None:
    found = False
    for kind in _kinds():
        number = _number(kind, options)
        if not number and options["verbosity"] < 2:
            continue
        found = True
        if options["verbosity"]:
            more = " or more" if options["dry_run"] and number == cleanup.COUNTED_ROWS else ""
            command.stdout.write(f"{number:>10} {kind.name}{more}")
    if not found and options["verbosity"]:
        command.stdout.write("There is nothing to remove.")


def _kinds() -> Iterator[cleanup.CleanupRule]:
    yield from cleanup.cleanup_rules()
    for module in command_modules():
        if hasattr(module, "prunable"):
            yield from module.prunable()


def _number(kind: cleanup.CleanupRule, options: dict[str, Any]) -> int:
    try:
        return kind.count() if options["dry_run"] else kind.forget_all(options["batch_size"])
    except DatabaseError as error:
        raise CommandError(
            f"The database did not let {kind.name} be removed: {error}. What had been removed by "
            "then stays removed; the next run goes on from there."
        ) from error


def _size(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= MAX_BATCH_SIZE):
        raise argparse.ArgumentTypeError(f"give a number of rows from 1 to {MAX_BATCH_SIZE}")
    return int(text)
