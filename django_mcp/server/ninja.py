"""Operations of django-ninja as tools. Imported only where a site registers some."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from ninja.operation import AsyncOperation

from .api_requests import (
    JSON,
    api_request,
    as_json_schema,
    check_length,
    given,
    parameter,
    plain_answer,
    raise_refused,
    take_signature,
)
from .errors import RegistrationError, ToolError
from .exception_table import listed
from .json_schema import inlined, without_nulls, without_titles
from .primitives import Permission

_COMPONENTS = "#/components/schemas/"


@dataclass(frozen=True, slots=True, kw_only=True)
class NinjaOperation:
    """An operation of an API, and how OpenAPI describes it."""

    name: str
    operation: Any
    method: str
    details: Mapping[str, Any]
    components: Mapping[str, Any]

    @property
    def asks_who_it_is(self) -> bool:
        """Whether the API itself would ask for credentials."""
        return bool(self.operation.auth_callbacks)


def tools_of(
    api: Any, operations: Collection[str], tags: Collection[str], permission: Permission | None
) -> Iterator[tuple[Callable[..., Any], dict[str, Any]]]:
    """Yield the tools of an API, as functions, with their options.

    Raises :class:`RegistrationError` for an operation that asks who calls, and nothing else does.
    """
    for each in chosen(api, operations, tags):
        if each.asks_who_it_is and permission is None:
            raise RegistrationError(
                f"The operation {each.name!r} asks who calls it, which the endpoint has done. "
                "Say by permission= who may, for example "
                "`permission=lambda user: user.is_authenticated`."
            )
        yield (
            function_of(each),
            {
                "name": each.name,
                "read_only": each.method == "get",
                "destructive": each.method == "delete",
                "permission": permission,
                # What is ignored would be a filter, and the answer that of another question.
                "strict": True,
            },
        )


def chosen(
    api: Any, operations: Collection[str], tags: Collection[str]
) -> Iterator[NinjaOperation]:
    """Yield the operations of an API that are named, by operation id or function, or by a tag.

    Raises :class:`RegistrationError` for a name that there is not, and where nothing is named.
    """
    if not operations and not tags:
        raise RegistrationError(
            "Say which operations are offered: `mcp.ninja(api, operations=[...])` or "
            "`mcp.ninja(api, tags=[...])`. A whole API is too much for a model."
        )
    found, known = set(), set()
    for each in _all(api):
        function = each.operation.view_func.__name__
        names = {each.name, function, str(each.details.get("operationId"))}
        own_tags = set(each.details.get("tags") or ())
        known |= {function} | own_tags
        found |= names & {*operations} | own_tags & {*tags}
        if names & {*operations} or own_tags & {*tags}:
            yield each
    if missing := {*operations, *tags} - found:
        raise RegistrationError(
            f"The API {api.title!r} has neither an operation nor a tag {min(missing)!r}. It has: "
            f"{', '.join(sorted(known))}."
        )


def function_of(operation: NinjaOperation) -> Callable[..., Any]:
    """Return the function that runs an operation; raises :class:`RegistrationError`."""
    places = _Places(operation)
    called = operation.operation.clone()
    called.api = operation.operation.api
    # The endpoint has found out who it is, and the site says by a permission who may.
    called.auth_callbacks = []

    def asked_by(request: HttpRequest, values: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        path, query, body = places.sorted(given(values))
        asked = api_request(request, operation.method, query=query, body=body)
        if operation.asks_who_it_is:
            asked.auth = asked.user
        return asked, path

    def run(request: HttpRequest, **values: Any) -> Any:
        asked, path = asked_by(request, values)
        return _result(called.run(asked, **path), places)

    async def arun(request: HttpRequest, **values: Any) -> Any:
        asked, path = asked_by(request, values)
        return _result(await called.run(asked, **path), places)

    function: Any = arun if isinstance(called, AsyncOperation) else run
    function.__name__ = operation.name
    function.__qualname__ = called.view_func.__qualname__
    function.__module__ = called.view_func.__module__
    function.__doc__ = called.description or called.summary
    take_signature(function, places.parameters, dict[str, Any])
    return function  # type: ignore[no-any-return]


class _Places:
    """Where each argument of an operation goes: one flat object becomes path, query and body."""

    def __init__(self, operation: NinjaOperation) -> None:
        self._where: dict[str, str] = {}
        self._body_name = ""
        self._has_body = False
        self._operation = operation
        self.parameters = [*self._of_url(), *self._of_body()]
        # Those without a default come first, as in a function.
        self.parameters.sort(key=lambda each: each.default is not each.empty)

    def sorted(self, values: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any], Any]:
        """Return what goes into the path, the query and the body."""
        parts: dict[str, dict[str, Any]] = {"path": {}, "query": {}, "body": {}}
        for name, value in values.items():
            parts[self._where[name]][name] = value
        body: Any = parts["body"] if self._has_body else None
        if self._body_name:
            body = parts["body"].get(self._body_name)
        return parts["path"], parts["query"], body

    def argument(self, place: Sequence[Any]) -> Sequence[Any]:
        """Return the argument in which an error is, with what leads to the value in it.

        A place is that of the request: where it is, then the parameter of the function, of which a
        caller knows nothing if its fields are the arguments.
        """
        names = place[1:]
        if not names or names[0] in self._where:
            return names
        return [self._body_name, *names[1:]] if self._body_name else names[1:] or names

    def _of_url(self) -> Iterator[Any]:
        for each in self._operation.details.get("parameters", ()):
            name, place, required = each["name"], each["in"], bool(each.get("required"))
            if place in ("path", "query"):
                yield self._add(name, place, each["schema"], required)
            elif required:
                raise self._refuse(f"it needs the {place} {name!r}, which a tool has not")

    def _of_body(self) -> Iterator[Any]:
        body = self._operation.details.get("requestBody")
        if body is None:
            return
        if JSON not in body["content"]:
            raise self._refuse(f"it takes {' or '.join(body['content'])}, and tools have JSON")
        self._has_body = True
        schema = self._resolved(body["content"][JSON]["schema"])
        if schema.get("type") != "object" or "properties" not in schema:
            self._body_name = "body"
            yield self._add("body", "body", schema, bool(body.get("required")))
            return
        needed = schema.get("required", ())
        for name, each in schema["properties"].items():
            yield self._add(name, "body", each, name in needed)

    def _add(self, name: str, place: str, schema: Any, required: bool) -> Any:
        if name in self._where:
            raise self._refuse(
                f"it has {name!r} in its {self._where[name]} and in its {place}, and a tool has "
                "one argument of a name"
            )
        if not name.isidentifier():
            raise self._refuse(f"{name!r} is no name of an argument")
        self._where[name] = place
        resolved = self._resolved(schema, name)
        if place == "query" or self._operation.method == "post":
            # Elsewhere null may be a value to set, and what is left out stays as it is. OpenAPI as
            # ninja writes it has all defaults but None.
            resolved = {"default": None, **resolved}
            whole = {"properties": {name: resolved}, "required": [name] if required else []}
            resolved = without_nulls(whole)["properties"][name]
        return parameter(name, resolved, required=required)

    def _resolved(self, schema: Mapping[str, Any], name: str = "") -> dict[str, Any]:
        """Return the schema of what has a name, with what it refers to."""
        whole = json.dumps({**schema, "$defs": self._operation.components})
        plain = without_titles(json.loads(whole.replace(_COMPONENTS, "#/$defs/")), name)
        reference = plain.pop("$ref", None)
        if reference is not None:
            plain = {**plain["$defs"][reference.rpartition("/")[2]], **plain}
        found: dict[str, Any] = as_json_schema(inlined(plain))
        return found

    def _refuse(self, reason: str) -> RegistrationError:
        return RegistrationError(
            f"The operation {self._operation.name!r} cannot be a tool: {reason}. Write a function "
            "that does the same."
        )


def _all(api: Any) -> Iterator[NinjaOperation]:
    described = api.get_openapi_schema(path_prefix="")
    details = {
        found.get("operationId"): found
        for methods in described["paths"].values()
        for found in methods.values()
    }
    components = described.get("components", {}).get("schemas", {})
    for router in api._get_bound_routers():
        for path_view in router.path_operations.values():
            for operation in path_view.operations:
                name = operation.operation_id or api.get_openapi_operation_id(operation)
                if name in details:
                    yield NinjaOperation(
                        name=operation.view_func.__name__,
                        operation=operation,
                        method=operation.methods[0].lower(),
                        details=details[name],
                        components=components,
                    )


def _result(response: Any, places: _Places) -> dict[str, Any]:
    """Return what an operation has answered; raises what a tool raises where it is an error."""
    data = plain_answer(response)
    detail = data.get("detail", data) if isinstance(data, dict) else data
    raise_refused(response.status_code, detail if isinstance(detail, str) else "")
    if response.status_code >= 500:
        raise RuntimeError(f"The API has answered with {response.status_code}: {detail}")
    if response.status_code >= 400:
        raise ToolError(_problems(detail, places))
    if isinstance(data, list):
        check_length(data, "The site has to give it @paginate.")
    return data if isinstance(data, dict) else {"result": data}


def _problems(detail: Any, places: _Places) -> str:
    """Return what did not fit, each with its place."""
    if not isinstance(detail, list):
        return listed(detail)
    return "\n".join(
        f"{'.'.join(map(str, places.argument(each.get('loc', ()))))}: {each.get('msg', '')}"
        if isinstance(each, dict)
        else str(each)
        for each in detail
    )
