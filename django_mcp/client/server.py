"""What is known of the server at the other end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from mcp_types import SERVER_INFO_META_KEY as INFO
from mcp_types import Implementation, ServerCapabilities
from pydantic import BaseModel, ValidationError

from ..protocol.bounded import validate
from ..protocol.versions import Revision
from .errors import UnexpectedAnswer

Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Server:
    """What a server has said of itself, and the revision that both sides speak."""

    revision: Revision
    capabilities: ServerCapabilities
    info: Implementation | None = None
    instructions: str | None = None


def read(model: type[Model], value: Any) -> Model:
    """Return what a server has sent as the object that it must be."""
    try:
        return validate(model, value)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UnexpectedAnswer(
            f"The server sent no valid {model.__name__}: {where}: {first['msg']}"
        ) from None


def stamped_info(result: Mapping[str, Any]) -> Implementation | None:
    """Return what a server of revision 2026-07-28 says of itself in ``_meta``."""
    meta = result.get("_meta")
    stamp = meta.get(INFO) if isinstance(meta, dict) else None
    return None if stamp is None else read(Implementation, stamp)
