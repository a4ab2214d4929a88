"""What a client can be asked: a form to fill in, a page to visit, its roots; see also sampling."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from enum import Enum
from typing import Any, ClassVar, Final, TypeVar
from urllib.parse import urlsplit

from mcp_types import ListRootsResult, Root
from pydantic import BaseModel, ValidationError

from ...protocol.bounded import MAX_ITEMS, Validator
from ...protocol.values import MANY_VALUES, holds_more
from ...protocol.versions import NEWEST, Revision, fit
from ..errors import QuestionCancelled, QuestionDeclined
from .django_forms import form_of
from .fields import Confirmation, Form, InvalidAnswer, requested_schema
from .input_requests import FORM, URL, InputRequest, declares, fills_in_forms, revision_of_urls
from .type_forms import TypeForm

M = TypeVar("M", bound=BaseModel)


class Unset(Enum):
    """Stands for an argument that was not given."""

    UNSET = "unset"


UNSET: Final = Unset.UNSET


@dataclass(frozen=True, slots=True)
class ClientProfile:
    """As much of a client as a question is fitted to."""

    revision: Revision
    capabilities: Mapping[str, Any]

    def can(self, required: Mapping[str, Any]) -> bool:
        """Return whether the client has declared what is ``required``."""
        return declares(self.capabilities, self.revision, required)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What all questions have in common.

    ``key`` names it among the input requests of the modern era; by default its kind and its place.
    ``timeout`` is in seconds, and for revisions in which the call waits. ``fallback`` is the answer
    where the client cannot be asked.
    """

    kind: ClassVar[str]
    key: str | None = None
    timeout: float | None = None
    fallback: Any = UNSET

    def prepare(self, client: ClientProfile) -> InputRequest:
        """Return the request that asks ``client``."""
        raise NotImplementedError


def as_json_text(value: Any) -> str:
    """Return a JSON value as text for people and models."""
    return json.dumps(value, ensure_ascii=False)


def validated(validator: Validator[M], result: Any) -> M:
    """Return a client's result as its type; raises :class:`InvalidAnswer`."""
    try:
        return validator.validate(result, many=holds_more(result, MANY_VALUES))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InvalidAnswer([f"{where}: {first['msg']}."]) from None


@dataclass(frozen=True, slots=True)
class Elicit(Question):
    """Ask the user to fill in a form.

    ``schema`` is what to ask for: a pydantic model of flat fields, a type such as ``bool`` or
    ``Literal["a", "b"]``, or a form class of Django's. Without it the user confirms or not.
    """

    kind: ClassVar[str] = "elicit"
    message: str
    schema: Any = None

    def prepare(self, client: ClientProfile) -> InputRequest:
        """Return the request that asks ``client``."""
        form = self._form()
        message = str(self.message)  # a translation may be lazy
        params = {"mode": "form", "message": message}
        schema = requested_schema(form.fields, client.revision)
        return InputRequest(
            method="elicitation/create",
            params=fit(
                "ElicitRequestFormParams", {**params, "requestedSchema": schema}, client.revision
            ),
            identity=[message, _without_defaults(schema)],
            name=message,
            describe=lambda: f"{message} {as_json_text(requested_schema(form.fields, NEWEST))}",
            required=dict(FORM),
            is_supported=fills_in_forms(client.capabilities, client.revision),
            read=lambda result: form.read(_content(result, message)),
        )

    def _form(self) -> Form:
        if self.schema is None or self.schema is type(None):
            return Confirmation()
        return form_of(self.schema) or TypeForm(self.schema)


@dataclass(frozen=True, slots=True)
class ElicitURL(Question):
    """Ask the user to visit a page, for what must not pass through the client.

    That they accept says that they were sent there, not that they have done anything.
    """

    kind: ClassVar[str] = "elicit-url"
    message: str
    url: str
    _: KW_ONLY
    elicitation_id: str = field(default_factory=lambda: str(uuid.uuid4()))

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise ValueError(
                f"{self.url!r} is no URL that a client can open; build one with "
                "ctx.request.build_absolute_uri(...)"
            )

    def prepare(self, client: ClientProfile) -> InputRequest:
        """Return the request that asks ``client``."""
        message = str(self.message)
        known = revision_of_urls(client.capabilities, client.revision)
        revision = known or client.revision
        params = {"mode": "url", "message": message, "url": self.url}
        params = fit("ElicitRequestURLParams", params, revision)
        if revision.elicitation_ids:
            params["elicitationId"] = self.elicitation_id
        return InputRequest(
            method="elicitation/create",
            params=params,
            identity=[message, self.url],
            name=message,
            describe=lambda: f"{message} {self.url}",
            required=dict(URL),
            is_supported=known is not None,
            read=self._read,
            alternative="Have the user open the page, and call again when they are done there",
        )

    def _read(self, result: Any) -> str:
        _content(result, self.message)
        return self.elicitation_id


@dataclass(frozen=True, slots=True)
class Roots(Question):
    """Ask which directories the client works in. Deprecated since revision 2026-07-28."""

    kind: ClassVar[str] = "roots"

    def prepare(self, client: ClientProfile) -> InputRequest:
        """Return the request that asks ``client``."""
        required: dict[str, Any] = {"roots": {}}
        return InputRequest(
            method="roots/list",
            params=None,
            identity=None,
            name="roots/list",
            describe=lambda: "Which roots does the client have?",
            required=required,
            is_supported=client.can(required),
            read=self._read,
        )

    def _read(self, result: Any) -> list[Root]:
        return validated(_ROOTS, result).roots


def _content(result: Any, message: str) -> Mapping[str, Any]:
    """Return what the user has filled in; raises where they have not accepted."""
    action = result.get("action") if isinstance(result, dict) else None
    if action == "decline":
        raise QuestionDeclined(f"The user has declined: {message}")
    if action == "cancel":
        raise QuestionCancelled(f"The user has dismissed the question: {message}")
    content = result.get("content") if action == "accept" else ""
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise InvalidAnswer(["The answer did not have the form that the protocol wants."])
    return content


_ROOTS: Final = Validator(ListRootsResult, max_items=MAX_ITEMS)


def _without_defaults(schema: dict[str, Any]) -> dict[str, Any]:
    # What a field begins with may be the time of day.
    properties = {
        name: {key: value for key, value in described.items() if key != "default"}
        for name, described in schema["properties"].items()
    }
    return {**schema, "properties": properties}
