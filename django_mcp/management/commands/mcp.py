"""``manage.py mcp <command>``: the door to what apps offer to operators of MCP servers.

The commands themselves live in the ``mcp_commands`` module of any installed app, the sub-apps of
this package included. Such a module has one function, which speaks plain ``argparse``:

    # shop/mcp_commands.py
    def add_commands(subcommands):
        parser = subcommands.add_parser("restock", help="Restock the shelves.")
        parser.add_argument("--dry-run", action="store_true")
        parser.set_defaults(run=restock)

    def restock(command, options):
        command.stdout.write("Done.")

``run`` is called with the management command, for its ``stdout``, ``stderr`` and ``style``, and
with the options as a dictionary. It raises ``CommandError``, with the cure in its message, when it
fails. A command may have commands of its own, by ``parser.add_subparsers()``. Django's options,
such as ``--settings``, are understood anywhere on the line.

A module may also have a function ``prunable()``. It returns what ``mcp prune`` removes of the app's
rows, as a list of :class:`django_mcp.store.cleanup.Kind`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

from django.apps import apps
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.module_loading import module_has_submodule

MODULE = "mcp_commands"

# Commands of sub-apps that a site may not have installed, so that we can say how to get them.
OPTIONAL = {"token": "django_mcp.contrib.tokens"}


# Of Django's options those that people are used to write last: flags, and such as take a value.
FLAGS = ("--traceback", "--no-color", "--force-color", "--skip-checks")
VALUES = ("--settings", "--pythonpath")


def command_modules() -> Iterator[ModuleType]:
    """Yield the modules in which installed apps have their commands."""
    for config in apps.get_app_configs():
        if config.module and module_has_submodule(config.module, MODULE):
            yield import_module(f"{config.name}.{MODULE}")


class Subparser(CommandParser):
    """The parser of a command, and of the commands below it, that knows Django's options too."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        # Suppressed, so that silence here does not undo what stood further left.
        unless_given: Any = {"default": argparse.SUPPRESS, "help": argparse.SUPPRESS}
        self.add_argument("-v", "--verbosity", type=int, choices=range(4), **unless_given)
        for option in FLAGS:
            self.add_argument(option, action="store_true", **unless_given)
        for option in VALUES:
            self.add_argument(option, **unless_given)


class Command(BaseCommand):
    """Finds the commands that apps offer, and runs the one that is asked for."""

    help = "Operates the MCP servers of this site."

    def add_arguments(self, parser: CommandParser) -> None:
        """Collect the commands of all installed apps."""
        subcommands = parser.add_subparsers(
            title="commands", metavar="command", required=True, parser_class=Subparser
        )
        for module in command_modules():
            module.add_commands(subcommands)
        for name, app in OPTIONAL.items():
            if not apps.is_installed(app):
                _add_missing(subcommands, name=name, app=app)

    def handle(self, *args: Any, **options: Any) -> None:
        """Run what the chosen command has set as ``run``."""
        options["run"](self, options)


def _add_missing(
    subcommands: argparse._SubParsersAction[Subparser], *, name: str, app: str
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
