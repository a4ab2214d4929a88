"""Where the official SDK's OAuth providers keep a login, so that it outlives the process.

The SDK asks for a storage of tokens and of the client's registration. That is not enough to go on
with a login: the server that the tokens are for, the time at which they end, and the authorization
server that renews them have to be known as well. Here all of it is one value, bound to one server.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from importlib import import_module
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from . import user_functions

log = logging.getLogger("django_mcp.client")

Login = Mapping[str, Any]
Load = Callable[[], Login | Awaitable[Login | None] | None]
"""Returns what was saved, if anything was; plain or a coroutine function."""
Save = Callable[[dict[str, Any]], Any]
"""Saves a login, in place of the one before; plain or a coroutine function."""

METADATA: Final = {
    "oauth_metadata": "OAuthMetadata",
    "protected_resource_metadata": "ProtectedResourceMetadata",
}
"""What a provider has found out of its servers: by its attribute, the model of the SDK."""


class LoginStorage:
    """Keeps the login of a provider of the official SDK (``mcp``) by two functions.

    ``load`` returns what ``save`` was given, a dictionary that JSON can hold, or ``None``. It holds
    secrets. Both run where the client's other functions do: plain ones in the thread that waits for
    the call. What was saved for another server is not used. The client that is given the provider
    ties the storage to it.
    """

    def __init__(self, load: Load, save: Save) -> None:
        self._load = load
        self._save = save
        self._provider: Any = None

    def attach(self, context: Any) -> None:
        """Keep the login of the provider with this ``OAuthContext``."""
        self._provider = context

    async def get_tokens(self) -> Any:
        """Return the tokens, and tell the provider when they end and who renews them."""
        login = await self._read()
        tokens = _model("OAuthToken", login.get("tokens"))
        if tokens is None:
            return None
        self._provider.token_expiry_time = login.get("expires_at")
        for name, kind in METADATA.items():
            setattr(self._provider, name, _model(kind, login.get(name)))
        return tokens

    async def set_tokens(self, tokens: BaseModel) -> None:
        """Save the tokens, with when they end and who renews them."""
        login = await self._read()
        login["tokens"] = _data(tokens)
        login["expires_at"] = self._provider.token_expiry_time
        for name in METADATA:
            login[name] = _data(getattr(self._provider, name))
        await self._write(login)

    async def get_client_info(self) -> Any:
        """Return the client's registration."""
        return _model("OAuthClientInformationFull", (await self._read()).get("client"))

    async def set_client_info(self, client_info: BaseModel) -> None:
        """Save the client's registration; tokens that it has not brought are forgotten.

        2026-07-28, basic/authorization/client-registration, "Authorization Server Binding": what
        one authorization server has issued goes to no other.
        """
        await self._write({"client": _data(client_info)})

    async def _read(self) -> dict[str, Any]:
        if self._provider is None:
            raise RuntimeError(
                "This storage belongs to no provider yet: give an OAuthClientProvider that has it"
                " to a client, as auth."
            )
        login = dict(await user_functions.run(self._load) or {})
        if login and login.get("server") != self._provider.server_url:
            log.warning("The stored login is for another server, and not used")
            return {}
        return login

    async def _write(self, login: dict[str, Any]) -> None:
        await user_functions.run(self._save, {**login, "server": self._provider.server_url})


def _data(model: BaseModel | None) -> dict[str, Any] | None:
    return None if model is None else model.model_dump(mode="json", exclude_none=True)


def _model(kind: str, data: Any) -> Any:
    if data is None:
        return None
    try:
        return getattr(import_module("mcp.shared.auth"), kind).model_validate(data)
    except ValidationError:
        # The text of the error would show the secrets.
        log.warning("The stored login cannot be read, and is not used")
        return None
