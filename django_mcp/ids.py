"""Keys that are known before their rows exist, and sort by age."""

from __future__ import annotations

import secrets
import time
import uuid
from typing import Any


class NewId:
    """An attribute that becomes a :func:`new_id` when it is first asked for, by whatever thread.

    Most calls end before anybody asks.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type | None = None) -> uuid.UUID:
        # One of those who ask at the same time wins, and from then on nobody comes here.
        key: uuid.UUID = vars(instance).setdefault(self._name, new_id())
        return key


def new_id() -> uuid.UUID:
    """Return a key that is known before its row exists and that sorts by age.

    RFC 9562, sections 5.7 and 6.2 (UUID version 7, method 3): milliseconds, then a 4,096th of one,
    then chance. New rows are neighbours in the index, and those of one process are in order.
    """
    milliseconds, nanoseconds = divmod(time.time_ns(), 1_000_000)
    fraction = nanoseconds * 4096 // 1_000_000
    high = (milliseconds & (1 << 48) - 1) << 16 | 7 << 12 | fraction
    return uuid.UUID(int=high << 64 | 2 << 62 | secrets.randbits(62))
