"""Management commands as tools."""

from __future__ import annotations

import argparse
import inspect
import io
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final, Literal

from django.core.management import (
    BaseCommand,
    CommandError,
    call_command,
    get_commands,
    load_command_class,
)
from pydantic import Field

from .context import Context
from .errors import CallStopped, RegistrationError, ToolError

MAX_OUTPUT_CHARACTERS: Final = 20_000
"""How much of what a command has written the result holds: the end of it."""

_SWITCHES: Final = (
    argparse._StoreTrueAction,
    argparse._StoreFalseAction,
    argparse.BooleanOptionalAction,
)
_TYPED: Final = (argparse._StoreAction, argparse._AppendAction, argparse._CountAction)
_SEVERAL: Final = ("*", "+")
_ALL_HAVE: Final = frozenset(BaseCommand.base_stealth_options) | {
    "help",
    "version",
    "verbosity",
    "settings",
    "pythonpath",
    "traceback",
    "no_color",
    "force_color",
    "skip_checks",
}
"""Options that every command has; they are not for clients."""


def command_function(name: str, arguments: Sequence[str]) -> Callable[..., str]:
    """Return a function that runs the management command ``name``, with these of its arguments.

    They are named as on the command line, or as the command calls them. Raises
    :class:`RegistrationError`.
    """
    command = _command(name)
    parser = command.create_parser("manage.py", name)
    actions = [_action(parser, name, argument) for argument in arguments]
    _check_required(parser, name, actions)
    marks = f"{parser.prefix_chars}{parser.fromfile_prefix_chars or ''}"
    takes_interactive = any(each.dest == "interactive" for each in parser._actions)

    def run(ctx: Context, **values: Any) -> str:
        options: dict[str, Any] = {"interactive": False} if takes_interactive else {}
        positional: list[Any] = []
        for action in actions:
            value = values[action.dest]
            if value is None or (isinstance(action, _SWITCHES) and value == action.default):
                continue  # of switches that exclude each other, those that are off are not given
            if action.option_strings:
                options[action.dest] = _converted(action, value)
            else:
                positional += value if isinstance(value, list) else [value]
            if action.required or not action.option_strings:
                _check_is_no_option(action, value, marks)
        return _run(name, positional, options, ctx)

    run.__name__ = name.replace("-", "_")
    run.__qualname__ = f"the command {name}"
    run.__doc__ = str(command.help) or None
    parameters = [_parameter(action) for action in actions]
    own = inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=Context)
    run.__signature__ = inspect.Signature([own, *parameters])  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in (own, *parameters)}
    run.__annotations__["return"] = str
    return run


class _Output(io.TextIOBase):
    """What a command writes to: each line is a log message, and the end of all is kept."""

    def __init__(self, ctx: Context, level: str) -> None:
        self._ctx = ctx
        self._level = level
        self._line = ""
        self._kept = ""

    def write(self, text: str) -> int:
        # A command that has been told to stop ends here, at its next word.
        if self._ctx.cancelled:
            raise CallStopped
        self._kept = (self._kept + text)[-MAX_OUTPUT_CHARACTERS:]
        *lines, rest = (self._line + text).split("\n")
        self._line = rest[-MAX_OUTPUT_CHARACTERS:]
        for line in filter(None, map(str.rstrip, lines)):
            self._ctx.log(self._level, line)
        return len(text)

    def getvalue(self) -> str:
        """Return the end of what was written."""
        return self._kept.strip()


def _run(name: str, positional: Sequence[Any], options: dict[str, Any], ctx: Context) -> str:
    out, problems = _Output(ctx, "info"), _Output(ctx, "warning")
    try:
        # What a command returns it has written as well.
        call_command(name, *positional, stdout=out, stderr=problems, no_color=True, **options)
    except CommandError as error:
        raise ToolError(str(error)) from error
    except SystemExit as ended:
        if ended.code:
            said = ended.code if isinstance(ended.code, str) else problems.getvalue()
            raise ToolError(said or f"The command ended with {ended.code}.") from ended
    return "\n".join(filter(None, (out.getvalue(), problems.getvalue()))) or "Done."


def _converted(action: argparse.Action, value: Any) -> Any:
    """Return the value of an option as the command line would have made it."""
    convert = action.type
    if not callable(convert):
        return value
    try:
        return list(map(convert, value)) if isinstance(value, list) else convert(value)
    except (TypeError, ValueError, argparse.ArgumentTypeError) as error:
        raise ToolError(f"{action.dest}: {error}") from error


def _check_is_no_option(action: argparse.Action, value: Any, marks: str) -> None:
    # These go through the command's parser, which would take them for options, or read a file.
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, str) and each.startswith(tuple(marks)):
            mark = "a hyphen" if each[0] == "-" else each[0]
            raise ToolError(f"{action.dest}: a value must not begin with {mark}.")


def _command(name: str) -> BaseCommand:
    found = get_commands().get(name)
    if found is None:
        raise RegistrationError(
            f"There is no management command {name!r}; `manage.py help` shows those that there are."
        )
    return found if isinstance(found, BaseCommand) else load_command_class(found, name)


def _action(parser: argparse.ArgumentParser, command: str, argument: str) -> argparse.Action:
    actions = [each for each in parser._actions if each.dest not in _ALL_HAVE]
    for each in actions:
        if argument == each.dest or argument in each.option_strings:
            if not isinstance(each, (*_SWITCHES, *_TYPED)) or not each.dest.isidentifier():
                raise RegistrationError(
                    f"The argument {argument!r} of the command {command!r} is none that a tool "
                    "can have. Write a function that calls the command: `call_command(...)`."
                )
            return each
    known = ", ".join((each.option_strings or [each.dest])[-1] for each in actions) or "none"
    raise RegistrationError(
        f"The command {command!r} has no argument {argument!r} that clients can give. It has: "
        f"{known}."
    )


def _check_required(
    parser: argparse.ArgumentParser, command: str, actions: Sequence[argparse.Action]
) -> None:
    missing = [each for each in parser._actions if _is_required(each) and each not in actions]
    if missing:
        names = ", ".join((each.option_strings or [each.dest])[-1] for each in missing)
        raise RegistrationError(f"The command {command!r} does not run without: {names}.")


def _is_required(action: argparse.Action) -> bool:
    # argparse says so of all positional arguments.
    return action.required and action.nargs not in ("*", "?")


def _parameter(action: argparse.Action) -> inspect.Parameter:
    annotation: Any = _type(action)
    default: Any = inspect.Parameter.empty
    if not _is_required(action):
        default = action.default if isinstance(action, _SWITCHES) else None
        annotation = annotation if isinstance(action, _SWITCHES) else annotation | None
    if text := _description(action):
        annotation = Annotated[annotation, Field(description=text)]
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(action.dest, kind, default=default, annotation=annotation)


def _description(action: argparse.Action) -> str:
    is_told = action.help and action.help != argparse.SUPPRESS
    text = argparse.HelpFormatter("manage.py")._expand_help(action) if is_told else ""
    # Other defaults may be what no client needs to know: a path, or a value of the environment.
    is_harmless = action.choices is not None or type(action.default) in (int, float)
    is_none = action.default in (None, argparse.SUPPRESS) or isinstance(action, _SWITCHES)
    if is_none or not is_harmless or str(action.default) in text:
        return text
    return f"{text} By default {action.default}.".strip()


def _type(action: argparse.Action) -> Any:
    if isinstance(action, _SWITCHES):
        return bool
    if isinstance(action, argparse._CountAction):
        return int
    one: Any = action.type if action.type in (int, float) else str
    if action.choices is not None:
        one = Literal[tuple(action.choices)]
    is_list = action.nargs in _SEVERAL or isinstance(action.nargs, int)
    return list[one] if is_list or isinstance(action, argparse._AppendAction) else one
