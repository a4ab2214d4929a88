"""Functions with a signature that is worked out, for ``mcp.tool`` to read as any other's."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final

from ..server.context import Context

Arguments = dict[str, tuple[Any, Any]]
"""Annotation and default by name; without a default, ``REQUIRED``."""

REQUIRED: Final = inspect.Parameter.empty
CONTEXT: Final = "ctx_"
"""The parameter that takes the context. No field of a model is called so: Django refuses a name
that ends with an underscore."""


def tool_function(
    name: str,
    run: Callable[[Context, dict[str, Any]], Any],
    arguments: Arguments,
    *,
    of: type,
    returns: Any,
    description: str,
    kind: type[Context] = Context,
) -> Callable[..., Any]:
    """Return a function that takes ``arguments`` and a context, and does as ``run``.

    ``run`` gets those that were given: what is null was not. ``of`` is the site's class from which
    it comes, which messages and lists name. ``kind`` is the class of the context.
    """

    def function(**values: Any) -> Any:
        ctx = values.pop(CONTEXT)
        return run(ctx, {name: value for name, value in values.items() if value is not None})

    annotations = {name: annotation for name, (annotation, _) in arguments.items()}
    parameters = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
        for name, (_, default) in arguments.items()
    ]
    context = inspect.Parameter(CONTEXT, inspect.Parameter.KEYWORD_ONLY)
    function.__module__, function.__name__ = of.__module__, name
    function.__qualname__ = f"{of.__qualname__}.{name}"
    function.__doc__ = description
    function.__annotations__ = {**annotations, CONTEXT: kind, "return": returns}
    function.__signature__ = inspect.Signature([context, *parameters])  # type: ignore[attr-defined]
    return function
