"""What installed apps add to ``manage.py mcp``, the sub-apps of this package included.

Their modules ``mcp_commands`` have a function that speaks plain ``argparse``:

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

Such a module may also have a function ``prunable()``. It returns what ``mcp prune`` removes of the
app's rows, as a list of :class:`django_mcp.store.cleanup.CleanupRule`.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Final

from django.apps import apps
from django.utils.module_loading import module_has_submodule

MODULE: Final = "mcp_commands"


def command_modules() -> Iterator[ModuleType]:
    """Yield the modules in which installed apps have their commands."""
    for config in apps.get_app_configs():
        if config.module and module_has_submodule(config.module, MODULE):
            yield import_module(f"{config.name}.{MODULE}")
