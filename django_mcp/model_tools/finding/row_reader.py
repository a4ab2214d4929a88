"""What those who change rows need of whoever reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from ...server.context import Context
from ..fields.row_fields import RowFields
from ..tool_functions import Arguments


class RowReader(Protocol):
    """How rows are found by what names them, and shown."""

    @property
    def lookup(self) -> str:
        """The argument that names a row, and the field that is asked for it."""

    @property
    def fields(self) -> RowFields:
        """What is shown of a row."""

    @property
    def get_arguments(self) -> Arguments:
        """What names one row."""

    def row(self, ctx: Context, key: Any) -> Any:
        """Return the row of a key; raises ``Http404`` if the caller does not see one."""

    def written(self, ctx: Context, key: Any, alias: str) -> Any:
        """Return the row of a primary key in a database; nothing where the caller sees none."""

    def show(self, ctx: Context, row: Any) -> Mapping[str, Any]:
        """Return what is shown of one row."""

    def may_see(self, ctx: Context, row: Any) -> bool:
        """Return whether a row is not hidden from the caller by permissions of its own."""
