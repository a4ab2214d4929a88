"""The pages of a list, put together within bounds."""

from __future__ import annotations

from typing import Any

from mcp_types import PaginatedResult

from ..protocol.messages import encode
from ..protocol.values import count_values
from .errors import MessageTooLarge, UnexpectedAnswer
from .limits import Limits
from .server import read


class Pages:
    """What has been read of a list, and what to ask for next."""

    def __init__(
        self, method: str, model: type[PaginatedResult], attribute: str, limits: Limits
    ) -> None:
        self.method = method
        self.params: dict[str, Any] = {}
        self.items: list[Any] = []
        self.has_more = True
        self._model = model
        self._attribute = attribute
        self._limits = limits
        self._cursors: set[str] = set()
        self._bytes = self._values = 0

    def add(self, result: dict[str, Any]) -> None:
        """Take a page; raises :class:`UnexpectedAnswer` where the list leads nowhere."""
        self._weigh(encode(result))
        page = read(self._model, result)
        self.items += getattr(page, self._attribute)
        self.has_more = page.next_cursor is not None
        if page.next_cursor is not None:
            self._turn_to(page.next_cursor)

    def _weigh(self, page: bytes) -> None:
        self._bytes += len(page)
        self._values += count_values(page)
        if self._bytes > self._limits.list_bytes:
            raise MessageTooLarge(f"{self.method} has more than {self._limits.list_bytes} bytes")
        if self._values > self._limits.list_values:
            raise MessageTooLarge(f"{self.method} has more than {self._limits.list_values} values")

    def _turn_to(self, cursor: str) -> None:
        if cursor in self._cursors:
            raise UnexpectedAnswer(
                f"{self.method} does not end: the server's cursors lead in a circle"
            )
        self._cursors.add(cursor)
        if len(self._cursors) >= self._limits.pages:
            raise UnexpectedAnswer(f"{self.method} has more than {self._limits.pages} pages")
        self.params = {"cursor": cursor}
