"""How often something may happen, as the settings and ``@mcp.tool(rate_limit=...)`` write it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_PERIODS: Final = {"s": 1, "m": 60, "h": 60 * 60, "d": 24 * 60 * 60}
_NAMES: Final = {"s": "second", "m": "minute", "h": "hour", "d": "day"}
_RATE: Final = re.compile(r"([1-9][0-9]{0,8})/([smhd])( per process)?")


@dataclass(frozen=True, slots=True)
class Rate:
    """So many calls in so many seconds."""

    number: int
    seconds: int
    per_process: bool = False
    """Whether each process counts for itself, which costs nothing, instead of all together."""
    text: str = ""
    """As people say it: ``10 in a minute``."""

    @classmethod
    def parse(cls, text: str) -> Rate:
        """Read ``"10/m"``: ten in a minute; periods are ``s``, ``m``, ``h`` and ``d``.

        ``"10/m per process"`` lets each process count for itself. Raises ``ValueError`` otherwise.
        """
        match = _RATE.fullmatch(text)
        if match is None:
            raise ValueError(
                f'{text!r} is no rate; write "10/m" for ten calls in a minute (s, m, h or d), or '
                '"10/m per process" to let each process count for itself'
            )
        number, period, own = match.groups()
        said = f"{number} in a {_NAMES[period]}".replace("a hour", "an hour")
        return cls(int(number), _PERIODS[period], per_process=bool(own), text=said)
