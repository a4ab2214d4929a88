"""``manage.py mcp <command>``: what operators of MCP servers need; apps may add commands to it."""

from __future__ import annotations

import argparse
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from django.apps import apps
from django.core.management.base import BaseCommand, CommandError, CommandParser

from ...partitions import enter_partition, partitions
from ..doctor import add_doctor
from ..extensions import command_modules
from ..listing import add_list
from ..prune import add_prune

# Commands of sub-apps that a site may not have installed, so that we can say how to get them.
OPTIONAL = {"token": "django_mcp.contrib.tokens", "oauth-setup": "django_mcp.contrib.oauth"}


# Of Django's options those that people are used to write last: flags, and such as take a value.
FLAGS = ("--traceback", "--no-color", "--force-color", "--skip-checks")
VALUES = ("--settings", "--pythonpath")
PARTITION = "--partition"


class Subparser(CommandParser):
    """The parser of a command, and of the commands below it, that knows Django's options too."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        # Suppressed, so that silence here does not undo what stood further left.
        unless_given: Any = {"default": argparse.SUPPRESS, "help": argparse.SUPPRESS}
        self.add_argument("-v", "--verbosity", type=int, choices=range(4), **unless_given)
        for option in FLAGS:
            self.add_argument(option, action="store_true", **unless_given)
        for option in (*VALUES, PARTITION):
            self.add_argument(option, **unless_given)


class Command(BaseCommand):
    """Runs one of the commands ``list``, ``prune`` and ``doctor``, and of those that apps add."""

    help = "Operates the MCP servers of this site."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add our own commands and those of all installed apps."""
        parser.add_argument(
            PARTITION, metavar="NAME", help="The tenant to work for, where PARTITION is set."
        )
        subcommands: argparse._SubParsersAction[CommandParser] = parser.add_subparsers(
            title="commands", metavar="command", required=True, parser_class=Subparser
        )
        add_list(subcommands)
        add_prune(subcommands)
        add_doctor(subcommands)
        for module in command_modules():
            module.add_commands(subcommands)
        for name, app in OPTIONAL.items():
            if not apps.is_installed(app):
                _add_missing(subcommands, name=name, app=app)

    def handle(self, *args: Any, **options: Any) -> None:
        """Run what the chosen command has set as ``run``, in the partition that is named."""
        with _entered(options.get("partition")):
            options["run"](self, options)


def _entered(name: str | None) -> AbstractContextManager[None]:
    if name is None:
        return nullcontext()
    kind = partitions()
    if kind is None:
        raise CommandError('There are no partitions: set DJANGO_MCP["PARTITION"], or leave it out.')
    if name not in (known := list(kind.all())):
        raise CommandError(f"There is no partition {name!r} among these: {', '.join(known)}.")
    return enter_partition(name)


def _add_missing(
    subcommands: argparse._SubParsersAction[CommandParser], *, name: str, app: str
) -> None:
    def refuse(command: BaseCommand, options: dict[str, Any]) -> None:
        raise CommandError(
            f'"mcp {name}" belongs to an app that is not installed. Add this line to '
            f'INSTALLED_APPS and run "manage.py migrate":\n    "{app}",'
        )

    parser = subcommands.add_parser(name, help=f"(add {app} to INSTALLED_APPS)", add_help=False)
    # Whatever follows the name is beside the point, a cry for help included.
    parser.add_argument("-h", "--help", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("rest", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    parser.set_defaults(run=refuse)
