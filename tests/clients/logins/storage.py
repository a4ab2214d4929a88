"""Keeps a login in memory, as the providers of the Python SDKs want it."""

from __future__ import annotations

from typing import Any


class Storage:
    """Tokens and client of one server."""

    def __init__(self) -> None:
        self.tokens: Any = None
        self.client: Any = None

    async def get_tokens(self) -> Any:
        return self.tokens

    async def set_tokens(self, tokens: Any) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> Any:
        return self.client

    async def set_client_info(self, client_info: Any) -> None:
        self.client = client_info
