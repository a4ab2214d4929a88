"""Confirmations: a person says yes to what is shown, or, where nobody can be asked, the model does.

A client that can show a form asks its user. For others the tool answers with what would be done,
and a word that is good for that alone; the model is to show it, and to call again with the word.
"""

from __future__ import annotations

import hmac
import json
from typing import Any, Final

from pydantic_core import to_jsonable_python

from ...server.context import Context
from ...server.errors import QuestionUnsupported, ToolError
from ...server.paging import keys
from ..tool_functions import Arguments

CONFIRM: Final = "confirm"
ARGUMENTS: Final[Arguments] = {CONFIRM: (str | None, None)}
WORD_CHARACTERS: Final = 12
MAX_NAMED: Final = 10
"""Rows that a question names; of others it says how many they are."""


def confirm(ctx: Context, message: str, about: Any, given: str | None) -> None:
    """Have ``message`` confirmed, or raise a :class:`ToolError`.

    ``about`` is all that the confirmation counts for, and has JSON. ``given`` is the word that the
    model sends, if it does. Not to be called in a transaction.
    """
    word = _word(ctx, [message, about])
    try:
        # Who has confirmed something else, has not confirmed this, though it be in the same words.
        ctx.elicit(message, key=f"confirm-{word}")
    except QuestionUnsupported:
        if not hmac.compare_digest((given or "").encode(), word.encode()):
            raise ToolError(
                f"{message}\nNothing has been done yet. Show this to your user, and call again "
                f'with confirm="{word}" if they agree.'
            ) from None


def named(rows: list[Any]) -> str:
    """Return what rows are called, as many as a person reads."""
    texts = [str(row) for row in rows[:MAX_NAMED]]
    more = [f"and {len(rows) - MAX_NAMED} more"] if len(rows) > MAX_NAMED else []
    return ", ".join(texts + more)


def _word(ctx: Context, about: Any) -> str:
    told = json.dumps([str(ctx.user.pk), to_jsonable_python(about)])
    return hmac.digest(keys("model_tools.confirm")[0], told.encode(), "sha256").hex()[
        :WORD_CHARACTERS
    ]
