"""From a decorated function and its options to a frozen primitive."""

from __future__ import annotations

import enum
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from types import NoneType, UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin

import mcp_types
from django.utils.functional import Promise
from mcp_types import Annotations, Icon, ToolAnnotations
from pydantic import BaseModel, ValidationError

from .. import content
from ..protocol.uri_template import URITemplate
from .arguments import ArgumentError
from .checked_options import (
    check_asks_nothing,
    check_once,
    check_timeout,
    checked_invalidated,
    checked_name,
    checked_permission,
    checked_rate,
    checked_scopes,
    checked_template,
    checked_toolsets,
)
from .context import provided_parameter
from .errors import RegistrationError
from .files import is_file_type
from .functions import bare, check, hints_of, is_async, is_kind, name_of, parameters_of
from .input_schema import input_schema_of, schema_without_asking_of
from .primitives import Completion, LazyText, Permission, Prompt, Resource, Tool
from .result_types import tool_function
from .results import dump
from .signature import Signature
from .structured_output import output_of, output_schema_of, text_of
from .ui_extension import ui_of_tool

ALWAYS_LOAD: Final = "anthropic/alwaysLoad"
"""Asks Claude Code, where models search for tools, to show them this one at once."""


def build_tool(
    function: Callable[..., Any],
    *,
    name: str | None = None,
    title: LazyText | None = None,
    description: LazyText | None = None,
    read_only: bool | None = None,
    destructive: bool | None = None,
    idempotent: bool | None = None,
    open_world: bool | None = None,
    icons: Sequence[Icon] = (),
    meta: Mapping[str, Any] | None = None,
    permission: Permission | None = None,
    scopes: Sequence[str] = (),
    input_schema: dict[str, Any] | None = None,
    output_schema: dict[str, Any] | Literal[False] | None = None,
    timeout: float | None = None,
    rate_limit: str | None = None,
    atomic: bool = True,
    once: bool = False,
    strict: bool | None = None,
    invalidates: Sequence[str] = (),
    toolset: str = "",
    tags: Collection[str] = (),
    always_load: bool = False,
    app: str | None = None,
    visibility: Collection[str] = (),
) -> Tool:
    """Return the tool that ``function`` makes; options as in :meth:`MCPServer.tool`."""
    signature = Signature(tool_function(function))
    check_timeout(timeout, signature)
    check_once(once, signature)
    output = None if output_schema is False else output_of(signature)
    schema, headers = input_schema_of(input_schema, signature)
    other_schema, other_headers = schema_without_asking_of(input_schema, signature)
    annotations = ToolAnnotations(
        read_only_hint=read_only,
        destructive_hint=destructive,
        idempotent_hint=idempotent,
        open_world_hint=open_world,
    )
    described = _described(
        signature.label,
        mcp_types.Tool,
        name=checked_name("tool", name or name_of(function)),
        title=title,
        description=_description(description, signature),
        input_schema=schema,
        output_schema=output_schema_of(output_schema, output, signature),
        annotations=annotations if dump(annotations) else None,
        icons=list(icons) or None,
        _meta={**({ALWAYS_LOAD: True} if always_load else {}), **(meta or {})} or None,
    )
    return Tool(
        key=described["name"],
        description=described,
        translated=_translated(title=title, description=description),
        permission=checked_permission(permission, signature),
        scopes=checked_scopes(scopes, signature.label),
        reads_only=read_only is True,
        signature=signature,
        follows_signature=input_schema is None,
        schema_without_asking=other_schema,
        output=output,
        text=None if output_schema is False else text_of(signature),
        headers=headers | other_headers,
        toolsets=checked_toolsets(toolset, tags, signature),
        timeout=timeout,
        rate=checked_rate(rate_limit, signature),
        atomic=atomic,
        once=once,
        strict=strict,
        invalidates=checked_invalidated(invalidates, signature),
        ui=ui_of_tool(app, visibility, meta, signature.label),
    )


def build_resource(
    function: Callable[..., Any],
    *,
    uri: str,
    name: str | None,
    title: LazyText | None,
    description: LazyText | None,
    mime_type: str | None,
    size: int | None,
    annotations: Annotations | None,
    icons: Sequence[Icon],
    meta: Mapping[str, Any] | None,
    permission: Permission | None,
    scopes: Sequence[str],
    listing: Callable[..., Any] | None,
    ttl: float,
    atomic: bool,
    model: Any,
    is_app: bool = False,
) -> Resource:
    """Return the resource that ``function`` makes; options as in :meth:`MCPServer.resource`."""
    signature, template = Signature(function), checked_template(uri)
    check_asks_nothing(signature)
    _check_variables(signature, template)
    if ttl < 0:
        # 2026-07-28, server/utilities/caching, "Time-to-Live (TTL) Field".
        raise RegistrationError(f"{signature.label}: ttl= must not be negative.")
    mime_type = mime_type or _mime_type(signature.return_type)
    common: dict[str, Any] = {
        "name": name or name_of(function),
        "title": title,
        "description": _description(description, signature),
        "mime_type": mime_type,
        "annotations": annotations,
        "icons": list(icons) or None,
        "_meta": dict(meta) if meta else None,
    }
    if template.variables:
        kind: type[BaseModel] = mcp_types.ResourceTemplate
        common["uri_template"] = uri
    else:
        kind = mcp_types.Resource
        common |= {"uri": uri, "size": size}
    return Resource(
        key=uri,
        description=_described(signature.label, kind, **common),
        translated=_translated(title=title, description=description),
        permission=checked_permission(permission, signature),
        scopes=checked_scopes(scopes, signature.label),
        signature=signature,
        template=template,
        mime_type=mime_type,
        ttl_ms=int(ttl * 1000),
        listing=_listing(listing),
        atomic=atomic,
        model=model,
        is_app=is_app,
    )


def build_prompt(
    function: Callable[..., Any],
    *,
    name: str | None = None,
    title: LazyText | None = None,
    description: LazyText | None = None,
    icons: Sequence[Icon] = (),
    meta: Mapping[str, Any] | None = None,
    permission: Permission | None = None,
    scopes: Sequence[str] = (),
    atomic: bool = True,
) -> tuple[Prompt, dict[str, Completion]]:
    """Return the prompt that ``function`` makes, and the completions its types imply."""
    signature = Signature(function)
    check_asks_nothing(signature)
    properties = signature.schema["properties"]
    arguments = [
        mcp_types.PromptArgument(
            name=parameter,
            title=properties[parameter].get("title"),
            description=properties[parameter].get("description"),
            required=parameter in signature.required,
        )
        for parameter in signature.names
    ]
    described = _described(
        signature.label,
        mcp_types.Prompt,
        name=checked_name("prompt", name or name_of(function)),
        title=title,
        description=_description(description, signature),
        arguments=arguments or None,
        icons=list(icons) or None,
        _meta=dict(meta) if meta else None,
    )
    choices = {name: _choices_of(signature.annotation(name)) for name in signature.names}
    prompt = Prompt(
        key=described["name"],
        description=described,
        translated=_translated(title=title, description=description),
        permission=checked_permission(permission, signature),
        scopes=checked_scopes(scopes, signature.label),
        signature=signature,
        atomic=atomic,
    )
    return prompt, {name: _completion_of(values) for name, values in choices.items() if values}


def build_completion(function: Callable[..., Any]) -> Completion:
    """Return the completion that ``function`` makes."""
    check(function)
    parameters = [parameter.name for parameter in parameters_of(function)]
    provided = provided_parameter(hints_of(function), parameters)
    taken = ("arguments",) if provided is None else (provided.name, "arguments")
    others = [name for name in parameters if name not in taken]
    if others != ["value"]:
        raise RegistrationError(
            f"{name_of(function)}: a completion takes `value: str` and, if it wants them, "
            "`arguments: dict[str, str]` and a Context or an HttpRequest; not "
            f"{', '.join(others) or 'nothing'}."
        )
    return Completion(
        function=function,
        is_async=is_async(function),
        provided=provided,
        takes_arguments="arguments" in parameters,
    )


def _described(label: str, kind: type[BaseModel], **fields: Any) -> dict[str, Any]:
    texts = {name: str(each) if _is_lazy(each) else each for name, each in fields.items()}
    try:
        described = dump(kind(**texts))
        json.dumps(described, allow_nan=False)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise RegistrationError(f"{label}: {where}: {first['msg']}.") from error
    except ValueError as error:
        raise RegistrationError(f"{label}: its description is not JSON ({error}).") from error
    return described


def _translated(**texts: Any) -> dict[str, Any]:
    return {name: text for name, text in texts.items() if _is_lazy(text)}


def _is_lazy(text: Any) -> bool:
    """Return whether a text is a lazy translation, in the language of whoever looks."""
    return isinstance(text, Promise)


def _description(given: LazyText | None, signature: Signature) -> LazyText | None:
    return given or signature.docstring.text or None


def _check_variables(signature: Signature, template: URITemplate) -> None:
    unknown = set(template.variables) - set(signature.names)
    missing = set(signature.required) - set(template.variables)
    if unknown or missing:
        raise RegistrationError(
            f"{signature.label}: the variables of {template.template!r} "
            f"({', '.join(template.variables) or 'none'}) and the function's parameters "
            f"({', '.join(signature.names) or 'none'}) must have the same names."
        )


def _listing(function: Callable[..., Any] | None) -> Signature | None:
    if function is None:
        return None
    signature = Signature(function)
    if not set(signature.names) <= {"after"} or signature.asked or not _can_begin(signature):
        raise RegistrationError(
            f"{signature.label}: a function that lists resources takes a Context or an "
            "HttpRequest, and `after: str | None`, the URI after which the page begins, or neither."
        )
    return signature


def _can_begin(listing: Signature) -> bool:
    # The first page begins after nothing.
    try:
        listing.bind(dict.fromkeys(listing.required))
    except ArgumentError:
        return False
    return True


def _mime_type(annotation: Any) -> str | None:
    """Return what every value of the type is, or ``None`` if that depends on the value."""
    annotation = bare(annotation)
    if get_origin(annotation) in (Union, UnionType):
        kinds = {_mime_type(part) for part in get_args(annotation) if part is not NoneType}
        return kinds.pop() if len(kinds) == 1 else None
    is_open = annotation in (Signature.empty, Any, object) or is_file_type(annotation)
    if is_open or _is_contents(annotation):
        return None
    if isinstance(annotation, type) and issubclass(annotation, str):
        return content.TEXT
    return content.BINARY if annotation in content.BYTES else content.JSON


def _is_contents(annotation: Any) -> bool:
    kinds = (mcp_types.ReadResourceResult, mcp_types.ResourceContents)
    return any(is_kind(part, kinds) for part in (annotation, *get_args(annotation)))


def _choices_of(annotation: Any) -> tuple[str, ...]:
    """Return the values that a type allows, as text; none if it does not count them."""
    annotation = bare(annotation)
    if get_origin(annotation) is Literal:
        return tuple(_choice(value) for value in get_args(annotation) if value is not None)
    if get_origin(annotation) in (Union, UnionType):
        return tuple(choice for part in get_args(annotation) for choice in _choices_of(part))
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return tuple(_choice(member) for member in annotation)
    return ()


def _completion_of(choices: tuple[str, ...]) -> Completion:
    """Return the completion that offers ``choices``."""

    def complete(value: str) -> list[str]:
        return [choice for choice in choices if choice.lower().startswith(value.lower())]

    return build_completion(complete)


def _choice(value: Any) -> str:
    value = value.value if isinstance(value, enum.Enum) else value
    return json.dumps(value) if isinstance(value, bool) else str(value)
