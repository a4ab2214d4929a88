"""From a decorated function and its options to a frozen primitive."""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Callable, Mapping, Sequence
from types import NoneType, UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin

import mcp_types
from django.utils.functional import Promise
from mcp_types import Annotations, Icon, ToolAnnotations
from pydantic import BaseModel, ValidationError

from .. import content
from ..protocol.scopes import check_scope
from ..protocol.uri_template import InvalidURITemplate, URITemplate
from ..rates import Rate
from .arguments import ArgumentError
from .context import provided_parameter
from .errors import RegistrationError
from .functions import bare, check, hints_of, is_async, is_kind, name_of, parameters_of
from .input_schema import input_schema_of, schema_without_asking_of
from .primitives import Completion, LazyText, Permission, Prompt, Resource, Tool
from .results import dump
from .signature import Signature
from .structured_output import output_of, output_schema_of, text_of

# 2025-11-25, server/tools, "Tool Names", allows more of tools; the interfaces of models do not, and
# one name that they refuse ends the session for all tools.
_NAMES: Final = {
    "tool": (
        re.compile(r"[A-Za-z0-9_\-]{1,64}"),
        "1 to 64 letters, digits, underscores and hyphens, as models take them",
    ),
    "prompt": (
        re.compile(r"[A-Za-z0-9_.\-]{1,128}"),
        "1 to 128 letters, digits, underscores, hyphens and dots",
    ),
}

# Without the label of its app, a name would be a permission that nobody but superusers has.
_PERMISSION: Final = re.compile(r"[^.\s]+(\.[^.\s]+)+")


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
    invalidates: Sequence[str] = (),
) -> Tool:
    """Return the tool that ``function`` makes; options as in :meth:`MCPServer.tool`."""
    signature = Signature(function)
    _check_timeout(timeout, signature)
    _check_once(once, signature)
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
        name=_checked_name("tool", name or name_of(function)),
        title=title,
        description=_description(description, signature),
        input_schema=schema,
        output_schema=output_schema_of(output_schema, output, signature),
        annotations=annotations if dump(annotations) else None,
        icons=list(icons) or None,
        _meta=dict(meta) if meta else None,
    )
    return Tool(
        key=described["name"],
        description=described,
        translated=_translated(title=title, description=description),
        permission=_checked_permission(permission, signature),
        scopes=checked_scopes(scopes, signature.label),
        reads_only=read_only is True,
        signature=signature,
        follows_signature=input_schema is None,
        schema_without_asking=other_schema,
        output=output,
        text=None if output_schema is False else text_of(signature),
        headers=headers | other_headers,
        timeout=timeout,
        rate=_rate(rate_limit, signature),
        atomic=atomic,
        once=once,
        invalidates=_invalidated(invalidates, signature),
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
) -> Resource:
    """Return the resource that ``function`` makes; options as in :meth:`MCPServer.resource`."""
    signature, template = Signature(function), _template(uri)
    _check_questions(signature)
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
        permission=_checked_permission(permission, signature),
        scopes=checked_scopes(scopes, signature.label),
        signature=signature,
        template=template,
        mime_type=mime_type,
        ttl_ms=int(ttl * 1000),
        listing=_listing(listing),
        atomic=atomic,
        model=model,
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
    _check_questions(signature)
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
        name=_checked_name("prompt", name or name_of(function)),
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
        permission=_checked_permission(permission, signature),
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


def _checked_name(kind: str, name: str) -> str:
    pattern, allowed = _NAMES[kind]
    if not pattern.fullmatch(name):
        raise RegistrationError(f"{kind} name {name!r}: use {allowed}.")
    return name


def _checked_permission(permission: Any, signature: Signature) -> Permission | None:
    if permission is None or (isinstance(permission, str) and _PERMISSION.fullmatch(permission)):
        return permission
    if callable(permission) and not is_async(permission):
        checked: Permission = permission
        return checked
    # An asynchronous function would let everybody in: a coroutine is true.
    raise RegistrationError(
        f"{signature.label}: permission= takes a Django permission, written "
        '"app_label.codename" as in "shop.view_order", or a synchronous function of the user; '
        f"not {permission!r}."
    )


def checked_scopes(scopes: Sequence[str], label: str) -> tuple[str, ...]:
    """Return what ``scopes=`` says of what is called ``label``, each once."""
    if isinstance(scopes, str):
        raise RegistrationError(f'{label}: scopes= takes several, as in ["{scopes}"].')
    try:
        return tuple(dict.fromkeys(map(check_scope, scopes)))
    except ValueError as error:
        raise RegistrationError(f"{label}: scopes=: {error}.") from None


def _check_timeout(timeout: float | None, signature: Signature) -> None:
    if timeout is not None and timeout <= 0:
        raise RegistrationError(f"{signature.label}: timeout= must be more than 0 seconds.")


def _check_once(once: bool, signature: Signature) -> None:
    if once and not signature.sends_messages:
        raise RegistrationError(
            f"{signature.label}: once= is for what the client answers, and this function cannot "
            "ask it anything. Let it take a Context, or a parameter with Ask."
        )


def _rate(given: str | None, signature: Signature) -> Rate | None:
    if not given:
        return None
    try:
        return Rate.parse(given)
    except (TypeError, ValueError) as error:
        raise RegistrationError(f"{signature.label}: rate_limit=: {error}.") from error


def _template(uri: str) -> URITemplate:
    try:
        return URITemplate(uri)
    except InvalidURITemplate as error:
        raise RegistrationError(str(error)) from None


def _invalidated(uris: Sequence[str], signature: Signature) -> tuple[URITemplate, ...]:
    if isinstance(uris, str):
        raise RegistrationError(
            f'{signature.label}: invalidates= takes several URIs, as in ("{uris}",).'
        )
    templates = tuple(map(_template, uris))
    for template in templates:
        unknown = [name for name in template.variables if name not in signature.names]
        if unknown:
            raise RegistrationError(
                f"{signature.label}: invalidates= names {template.template!r}, and {unknown[0]!r} "
                f"is none of its parameters ({', '.join(signature.names) or 'none'})."
            )
    return templates


def _check_questions(signature: Signature) -> None:
    if signature.without_asking is not None:
        raise RegistrationError(f"{signature.label}: or_argument= is for parameters of tools.")


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
    if annotation in (Signature.empty, Any, object) or _is_contents(annotation):
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
