"""From a decorated function and its options to a frozen primitive."""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable, Mapping, Sequence
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import mcp_types
from mcp_types import Annotations, Icon, ToolAnnotations
from pydantic import BaseModel

from .errors import RegistrationError
from .header_parameters import extract_headers
from .primitives import Completion, Permission, Prompt, Resource, Tool
from .results import Output, dump, output_of
from .signature import Signature, is_async, is_context
from .uri_template import URITemplate


def build_tool(
    function: Callable[..., Any],
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    read_only: bool | None = None,
    destructive: bool | None = None,
    idempotent: bool | None = None,
    open_world: bool | None = None,
    icons: Sequence[Icon] = (),
    meta: Mapping[str, Any] | None = None,
    permission: Permission | None = None,
    input_schema: dict[str, Any] | None = None,
    output_schema: dict[str, Any] | Literal[False] | None = None,
    timeout: float | None = None,
    atomic: bool = True,
) -> Tool:
    """Return the tool that ``function`` makes; options as in :meth:`MCPServer.tool`."""
    signature = Signature(function)
    if timeout is not None and not signature.is_async:
        raise RegistrationError(
            f"{signature.label}: timeout= needs an `async def` function, since a thread that runs "
            "cannot be stopped. Bound the work inside the function instead."
        )
    output = None if output_schema is False else output_of(signature)
    headers = extract_headers(signature.schema, signature.label)
    annotations = ToolAnnotations(
        read_only_hint=read_only,
        destructive_hint=destructive,
        idempotent_hint=idempotent,
        open_world_hint=open_world,
    )
    described = mcp_types.Tool(
        name=name or _name(function),
        title=title,
        description=_description(description, signature),
        input_schema=input_schema or signature.schema,
        output_schema=_output_schema(output_schema, output, signature),
        annotations=annotations if annotations.model_fields_set and dump(annotations) else None,
        icons=list(icons) or None,
        _meta=dict(meta) if meta else None,
    )
    description_object = dump(described)
    if input_schema is None:
        # The very object, by which it is known that strictness may be added to it.
        description_object["inputSchema"] = signature.schema
    return Tool(
        key=described.name,
        description=description_object,
        permission=permission,
        signature=signature,
        output=output,
        headers=headers,
        timeout=timeout,
        atomic=atomic,
    )


def build_resource(
    function: Callable[..., Any],
    *,
    uri: str,
    name: str | None,
    title: str | None,
    description: str | None,
    mime_type: str | None,
    size: int | None,
    annotations: Annotations | None,
    icons: Sequence[Icon],
    meta: Mapping[str, Any] | None,
    permission: Permission | None,
    listing: Callable[..., Any] | None,
    ttl: float,
) -> Resource:
    """Return the resource that ``function`` makes; options as in :meth:`MCPServer.resource`."""
    signature, template = Signature(function), URITemplate(uri)
    _check_variables(signature, template)
    mime_type = mime_type or _mime_type(signature.return_type)
    common: dict[str, Any] = {
        "name": name or _name(function),
        "title": title,
        "description": _description(description, signature),
        "mime_type": mime_type,
        "annotations": annotations,
        "icons": list(icons) or None,
        "meta": dict(meta) if meta else None,
    }
    described: BaseModel
    if template.variables:
        described = mcp_types.ResourceTemplate(uri_template=uri, **common)
    else:
        described = mcp_types.Resource(uri=uri, size=size, **common)
    return Resource(
        key=uri,
        description=dump(described),
        permission=permission,
        signature=signature,
        template=template,
        mime_type=mime_type,
        ttl_ms=int(ttl * 1000),
        listing=_listing(listing),
    )


def build_prompt(
    function: Callable[..., Any],
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    icons: Sequence[Icon] = (),
    meta: Mapping[str, Any] | None = None,
    permission: Permission | None = None,
) -> tuple[Prompt, dict[str, Completion]]:
    """Return the prompt that ``function`` makes, and the completions its types imply."""
    signature = Signature(function)
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
    described = mcp_types.Prompt(
        name=name or _name(function),
        title=title,
        description=_description(description, signature),
        arguments=arguments or None,
        icons=list(icons) or None,
        _meta=dict(meta) if meta else None,
    )
    choices = {name: _choices(signature.annotation(name)) for name in signature.names}
    prompt = Prompt(
        key=described.name,
        description=dump(described),
        permission=permission,
        signature=signature,
    )
    return prompt, {name: _completion_of(values) for name, values in choices.items() if values}


def build_completion(function: Callable[..., Any]) -> Completion:
    """Return the completion that ``function`` makes."""
    parameters = list(inspect.signature(function).parameters)
    hints = get_type_hints(function)
    context = next((name for name in parameters if is_context(hints.get(name))), None)
    others = [name for name in parameters if name not in (context, "arguments")]
    if others != ["value"]:
        raise RegistrationError(
            f"{_name(function)}: a completion takes `value: str` and, if it wants them, "
            f"`arguments: dict[str, str]` and a Context; not {', '.join(others) or 'nothing'}."
        )
    return Completion(
        function=function,
        is_async=is_async(function),
        context_parameter=context,
        takes_arguments="arguments" in parameters,
    )


def _name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _description(given: str | None, signature: Signature) -> str | None:
    return given or signature.docstring.text or None


def _output_schema(
    given: dict[str, Any] | Literal[False] | None, output: Output | None, signature: Signature
) -> dict[str, Any] | None:
    if not given:
        return output.schema if output else None
    if output is None:
        raise RegistrationError(
            f"{signature.label}: output_schema= needs a return annotation whose values are "
            "structured, for example `-> dict[str, Any]`."
        )
    return given


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
    if not set(signature.names) <= {"after"}:
        raise RegistrationError(
            f"{signature.label}: a function that lists resources takes a Context and "
            "`after: str | None`, the URI after which the page begins, or neither."
        )
    return signature


def _mime_type(annotation: Any) -> str:
    if annotation in (str, Signature.empty):
        return "text/plain"
    return "application/octet-stream" if annotation is bytes else "application/json"


def _choices(annotation: Any) -> tuple[str, ...]:
    if get_origin(annotation) is Literal:
        return tuple(str(value) for value in get_args(annotation))
    if get_origin(annotation) in (Union, UnionType):
        return tuple(choice for part in get_args(annotation) for choice in _choices(part))
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return tuple(str(member.value) for member in annotation)
    return ()


def _completion_of(choices: tuple[str, ...]) -> Completion:
    def complete(value: str) -> list[str]:
        return [choice for choice in choices if choice.lower().startswith(value.lower())]

    return build_completion(complete)
