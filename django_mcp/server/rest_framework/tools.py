"""Functions that call views of REST framework, and their options as tools."""

from __future__ import annotations

import inspect
import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest
from django.utils.translation import override
from rest_framework import exceptions
from rest_framework.renderers import JSONRenderer

from ..api_requests import (
    api_request,
    check_length,
    given,
    plain_answer,
    raise_refused,
    take_signature,
)
from ..errors import ToolError
from ..exception_table import listed
from ..primitives import Permission
from .arguments import arguments_of, keys_of
from .filters import orders
from .operations import Operation, model_of, operations

logger: Final = logging.getLogger("django_mcp.server")

_VERBS: Final = {
    "list": "list",
    "retrieve": "get",
    "create": "create",
    "update": "update",
    "partial_update": "update",
    "destroy": "delete",
}


def tools_of(
    view: Any,
    actions: Sequence[str],
    name: str,
    permission: Permission | None,
    kwargs: Mapping[str, Any],
    described_by: Mapping[str, Any],
) -> Iterator[tuple[Callable[..., Any], dict[str, Any]]]:
    """Yield the tools of a view, as functions, with their options.

    Raises :class:`RegistrationError` for an action that the view does not have.
    """
    for each in operations(view, actions, kwargs, described_by):
        yield (
            function_of(each, name_of(each, name)),
            {
                "read_only": each.method == "get",
                "destructive": each.method in ("delete", "put"),
                "permission": permission or may_call(each),
                # What is ignored would be a filter, and the answer that of another question.
                "strict": True,
            },
        )


def function_of(operation: Operation, name: str) -> Callable[..., dict[str, Any]]:
    """Return the function that calls the view, with the arguments that it takes."""
    view = operation.callable()
    keys, sent_as_query = keys_of(operation), operation.method == "get"
    names = {key.name for key in keys.values()}
    arguments = list(arguments_of(operation))
    # A field by which an object is found is one argument, and stays what it is.
    in_both = [each.name for each in arguments if each.name in names]
    parameters = [*keys.values(), *(each for each in arguments if each.name not in names)]
    known_orders = orders(operation.view()) if sent_as_query else {}

    def run(request: HttpRequest, **values: Any) -> dict[str, Any]:
        sent = given(values)
        repeated = {name: sent[name] for name in in_both}
        path = {name: _of_url(key.name, sent.pop(key.name)) for name, key in keys.items()}
        _check_orders(sent, known_orders)
        if sent_as_query:
            asked = api_request(request, operation.method, query=sent)
        else:
            asked = api_request(request, operation.method, body={**sent, **repeated})
        # The endpoint has found out who it is: the API's own authenticators are not asked.
        asked._force_auth_user, asked._force_auth_token = asked.user, None
        return _result(view(asked, **{**operation.fixed, **path}), sent)

    run.__name__, run.__qualname__ = name, f"{operation.kind.__qualname__}.{operation.action}"
    run.__module__ = operation.kind.__module__
    run.__doc__ = _description(operation)
    take_signature(run, parameters, dict[str, Any])
    return run


def may_call(operation: Operation) -> Callable[[Any], bool]:
    """Return what says whether a user may call a view at all, whatever the object.

    A permission that looks at more of the request than who sends it, and how, may say no here: then
    the site says by an option of the tool who sees it.
    """

    def allowed(user: Any) -> bool:
        request = HttpRequest()
        request.method = operation.method.upper()
        view = operation.view()
        request._force_auth_user, request._force_auth_token = user, None  # type: ignore[attr-defined]
        view.request = view.initialize_request(request)
        try:
            view.check_permissions(view.request)
        except (
            exceptions.NotAuthenticated,
            exceptions.PermissionDenied,
            PermissionDenied,
            Http404,
        ):
            return False
        except Exception:
            # It looks at what an empty request lacks. Nobody else's tools are to go with it.
            logger.exception(
                "Nobody sees the tool of %s, whose permissions cannot be asked without a request. "
                "Say by permission= who does",
                allowed.__qualname__,
            )
            return False
        return True

    allowed.__qualname__ = f"{operation.kind.__qualname__}.check_permissions"
    return allowed


def name_of(operation: Operation, noun: str) -> str:
    """Return what the tool is called, where the site calls its objects ``noun`` or nothing."""
    if operation.is_plain:
        return _name_of_plain(operation, noun)
    one, several = (noun, f"{noun}s") if noun else nouns_of(operation.kind)
    verb = _VERBS.get(operation.action) or operation.action
    is_many = operation.method == "get" and not operation.is_detail and verb == "list"
    return f"{verb}_{several if is_many else one}"


def _name_of_plain(operation: Operation, noun: str) -> str:
    # What such a view does is not known: its own name says it, where it does one thing.
    own = noun or nouns_of(operation.kind)[0]
    methods = {*operation.kind.http_method_names, "head", "options", "trace"}
    others = methods - {operation.method, "head", "options", "trace"}
    is_only = not any(hasattr(operation.kind, each) for each in others)
    return own if is_only else f"{operation.method}_{own}"


def nouns_of(kind: Any) -> tuple[str, str]:
    """Return what one and several of the objects of a view are called, as parts of names."""
    model = model_of(kind)
    if model is None:
        name = kind.__name__.removesuffix("ViewSet").removesuffix("APIView").removesuffix("View")
        name = "".join(f"_{each.lower()}" if each.isupper() else each for each in name).lstrip("_")
        return name, f"{name}s"
    options = model._meta
    with override(None):  # a name that clients call is the same in every language
        texts = str(options.verbose_name), str(options.verbose_name_plural)
    one, several = (text.lower().replace(" ", "_").replace("-", "_") for text in texts)
    return one, several


def _description(operation: Operation) -> str:
    own = inspect.getdoc(operation.function) if _is_the_sites(operation.function) else None
    if own:
        return own
    if operation.is_plain and operation.kind.__doc__ and _is_the_sites(operation.kind):
        return inspect.cleandoc(operation.kind.__doc__)
    if operation.is_plain:
        noun = nouns_of(operation.kind)[0].replace("_", " ")
        return f"{operation.method.upper()} {noun}."
    noun, plural = (text.replace("_", " ") for text in nouns_of(operation.kind))
    one = f"an {noun}" if noun[:1] in "aeiou" else f"a {noun}"
    sentences = {
        "list": f"List {plural}, a page at a time.",
        "retrieve": f"Show one {noun}.",
        "create": f"Create {one}.",
        "update": f"Replace {one}: what is not given is reset.",
        "partial_update": f"Change {one}. What is not given stays as it is.",
        "destroy": f"Delete {one}.",
    }
    name = operation.action.replace("_", " ").capitalize()
    return sentences.get(operation.action, f"{name} {one}.")


def _is_the_sites(thing: Any) -> bool:
    return not getattr(thing, "__module__", "").startswith("rest_framework.")


def _of_url(name: str, value: Any) -> Any:
    # What stands in the body or the query the API checks itself, and PostgreSQL refuses it.
    if isinstance(value, str) and "\x00" in value:
        raise ToolError(f"{name}: a text without NUL.")
    return value


def _check_orders(sent: Mapping[str, Any], known: Mapping[str, Sequence[str]]) -> None:
    for argument, names in known.items():
        for term in filter(None, map(str.strip, str(sent.get(argument, "")).split(","))):
            if term.removeprefix("-") not in names:
                raise ToolError(f"{argument}: {term[:100]} is none of {', '.join(names)}.")


def _result(response: Any, sent: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data of a response; raises what a tool raises where it is an error."""
    is_of_rest = hasattr(response, "data")
    data = response.data if is_of_rest else plain_answer(response)
    raise_refused(response.status_code, _detail(data))
    if response.status_code >= 400:
        raise ToolError(listed(data))
    if is_of_rest:
        data = json.loads(JSONRenderer().render(data)) if data is not None else {}
    if isinstance(data, list):
        check_length(data, "The site has to give it a pagination_class.")
        return {"results": data}
    if not isinstance(data, dict):
        return {"result": data}
    return {**data, **_links(data, sent)}


def _detail(data: Any) -> str:
    return str(data.get("detail") or "") if isinstance(data, dict) else ""


def _links(data: Mapping[str, Any], sent: Mapping[str, Any]) -> dict[str, Any]:
    """Return the links to other pages as the arguments with which they are asked for."""
    links = {}
    for name in ("next", "previous"):
        url = data.get(name)
        if isinstance(url, str) and "results" in data:
            query = parse_qs(urlsplit(url).query)
            links[name] = {
                key: values if isinstance(sent.get(key), list) else values[0]
                for key, values in query.items()
            }
    return links
