"""``SiteOffers``: what a site has already is offered as tools."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol, TypeVar

from django.core.checks import CheckMessage
from django.forms import BaseForm
from mcp_types import Icon

from . import toolsets
from .commands import command_function
from .errors import RegistrationError
from .form_tools import FormTool, check_form, form_tool, is_save
from .primitives import LazyText, Permission, Resource
from .uploads import MAX_UPLOAD_BYTES

C = TypeVar("C", bound=type)
T = TypeVar("T", bound=type[toolsets.Toolset])


ToolsOfAdmin = Callable[..., Iterable[tuple[Callable[..., Any], dict[str, Any]]]]
"""Makes tools of a ``ModelAdmin``; a layer above this does it."""


class ClassDecorator(Protocol):
    """Takes a class, registers what it says and returns it unchanged."""

    def __call__(self, options: C, /) -> C:
        """Register ``options``."""


class ToolsOfModels(Protocol):
    """What has been made of a model, or of many."""

    @property
    def model(self) -> Any:
        """The model, if it is one."""

    @property
    def tool_names(self) -> Collection[str]:
        """The tools that are about one model alone."""

    def check(self) -> Iterable[CheckMessage]:
        """Yield what a system check finds of them."""


@dataclass(frozen=True)
class OfferedTools:
    """The tools of one admin."""

    model: Any
    tool_names: Collection[str]

    def check(self) -> Iterable[CheckMessage]:
        """Yield nothing."""
        return ()


class AppPage(Protocol):
    """A page that clients show, with what tools return."""

    uri: str

    def html(self) -> str:
        """Return the document."""

    def check(self) -> Iterable[CheckMessage]:
        """Yield what a system check finds of it."""


class SiteOffers(ABC):
    """The ways to offer what a site has: models, views, commands, classes, templates.

    Most list functions, with the options that follow from what they have found.
    """

    def __init__(self) -> None:
        self.models: list[ToolsOfModels] = []
        """What has been made of models."""
        self.apps: list[AppPage] = []
        """The pages that clients show."""
        self.has_app_tools = False
        """Whether any tool says something of apps, to clients that show them."""
        self.forms: list[FormTool] = []
        """The forms that are the input of its tools."""
        self.unhandled_forms: list[type[BaseForm]] = []
        """The forms of decorators that have decorated nothing yet."""
        self.toolsets: dict[str, str] = {}
        """The toolsets and tags of its tools, each with its description, if it has one."""

    @abstractmethod
    def _add_tool(self, function: Callable[..., Any], options: Mapping[str, Any]) -> None:
        """Register a function as a tool, with options of :meth:`MCPServer.tool`."""

    @abstractmethod
    def _add_resource(self, resource: Resource) -> None:
        """Register a resource."""

    def app(
        self,
        uri: str,
        *,
        template: str,
        name: str | None = None,
        title: LazyText | None = None,
        description: LazyText | None = None,
        context: Mapping[str, Any] | None = None,
        csp: Mapping[str, Sequence[str]] | None = None,
        browser_permissions: Collection[str] = (),
        prefers_border: bool | None = None,
        domain: str | None = None,
        icons: Sequence[Icon] = (),
        permission: Permission | None = None,
        scopes: Sequence[str] = (),
        ttl: float = 0,
    ) -> None:
        """Offer a page, made by a template of the site, in which clients show results of tools.

        ``uri`` begins with ``ui://``; tools name it in ``app=``. The page is the same for
        everybody: the template has ``context`` and nothing of the request, and what belongs to a
        user comes with the results. ``csp`` are the origins from which it loads, by
        ``"connect_domains"``, ``"resource_domains"``, ``"frame_domains"`` and
        ``"base_uri_domains"``; without it the page reaches nothing. ``browser_permissions`` are of
        ``"camera"``, ``"microphone"``, ``"geolocation"`` and ``"clipboard_write"``.
        ``prefers_border`` says whether clients should draw one, and ``domain`` the origin that a
        client is to give the page, as its maker documents it. ``permission``, ``scopes`` and
        ``ttl`` (seconds) are those of a resource.
        """
        mcp_apps = import_module(".mcp_apps.app", __package__)  # for those who have one
        app = mcp_apps.App(
            uri,
            template,
            self,
            name=name,
            context=context or {},
            ui=mcp_apps.ui_of_page(uri, csp, browser_permissions, prefers_border, domain),
        )
        self._add_resource(
            app.resource(
                title=title,
                description=description,
                icons=icons,
                permission=permission,
                scopes=scopes,
                ttl=ttl,
            )
        )
        self.apps.append(app)

    def model(self, model: Any) -> ClassDecorator:
        """Offer tools that are made of a Django model, as the options of a class say.

        The class derives from :class:`django_mcp.ModelTools`, and is returned unchanged. It is
        there that the tools are made: who uses none pays for none.
        """

        def register(options: C) -> C:
            offer = getattr(options, "offer", None)
            if offer is None:
                raise RegistrationError(
                    "@mcp.model(...) decorates a class of options: "
                    "`class TicketTools(ModelTools):`, with ModelTools from django_mcp."
                )
            self.models.append(offer(model, self))
            return options

        return register

    def form(
        self,
        form_class: Any,
        handler: Any = None,
        /,
        *,
        instance: Callable[..., Any] | None = None,
        form_kwargs: Callable[..., Any] | Mapping[str, Any] | None = None,
        max_file_bytes: int = MAX_UPLOAD_BYTES,
        **options: Any,
    ) -> Any:
        """Offer a tool whose input is a Django form, and whose code is a handler of the valid form.

        It decorates the handler, which takes the form first, and beside it what functions of tools
        take; or ``handler`` is given, and may be the method ``save`` of a ``ModelForm``. Fields are
        arguments, with their choices, help texts and limits. A form that is not valid is told field
        by field, and the handler is not called.

        ``instance`` returns the instance that a ``ModelForm`` is about, whose fields keep their
        values where none is sent. ``form_kwargs`` has, or returns, what else the form is made with.
        Both are functions that take what they need of the handler's other parameters, by their
        names, and a ``Context`` or an ``HttpRequest``. A file may have ``max_file_bytes``.
        ``options`` are those of :meth:`tool`.
        """
        check_form(form_class)

        def register(handler: Any) -> Any:
            if is_save(form_class, handler) and options.get("permission") is None:
                raise RegistrationError(
                    f"mcp.form({form_class.__name__}, {form_class.__name__}.save) writes, so it "
                    'needs permission=, such as "support.add_ticket", or a function of the user.'
                )
            found, function = form_tool(
                form_class,
                handler,
                name=options.get("name") or "",
                instance=instance,
                form_kwargs=form_kwargs,
                max_file_bytes=max_file_bytes,
            )
            self._offer([(function, {})], options)
            self.forms.append(found)
            return handler

        if handler is not None:
            return register(handler)
        self.unhandled_forms.append(form_class)

        def decorate(handler: Any) -> Any:
            self.unhandled_forms.remove(form_class)
            return register(handler)

        return decorate

    def admin(
        self,
        kind: Any,
        *,
        write: Collection[str] = (),
        actions: Collection[str] = (),
        site: Any = None,
        name: str = "",
        plural: str = "",
        confirm: bool | Collection[str] = True,
        allow_secret: Collection[str] = (),
        permission: Permission | None = None,
        **options: Any,
    ) -> None:
        """Offer what the Django admin shows of a model, and lets do with it.

        ``kind`` is a ``ModelAdmin`` that is registered with an admin site, or its model; ``site``
        says with which, if there are several. ``write`` has some of ``"create"``, ``"update"`` and
        ``"delete"``, ``actions`` has names of the admin's actions: without these, rows are read
        only. ``name`` and ``plural`` are what rows are called in the names of the tools; by
        default the model's name. ``confirm`` says whether deletions and actions are confirmed
        first, or which of them. ``allow_secret`` names fields that look as if they held a secret,
        and are shown nevertheless. ``permission`` is what callers need beside those that the admin
        asks for. ``options`` are those of :meth:`tool`.
        """
        tools = _maker_of("admin")(
            kind,
            self,
            write=write,
            actions=actions,
            site=site,
            name=name,
            plural=plural,
            confirm=confirm,
            allow_secret=allow_secret,
            permission=permission,
        )
        offered = list(tools)
        self._offer(offered, options)
        self.models.append(OfferedTools(kind, [function.__name__ for function, _ in offered]))

    def admin_site(
        self,
        site: Any,
        *,
        models: Sequence[str],
        exclude: Sequence[str] = (),
        write: Sequence[str] | Mapping[str, Sequence[str]] = (),
        actions: Sequence[str] | Mapping[str, Sequence[str]] = (),
        confirm: bool | Collection[str] = True,
        allow_secret: Collection[str] = (),
        prefix: str = "",
        permission: Permission | None = None,
        scopes: Sequence[str] = (),
        write_scopes: Sequence[str] = (),
        **options: Any,
    ) -> None:
        """Offer many models of an admin site by five tools, however many models they are.

        The tools are ``list_models``, ``describe_model``, ``find``, ``get`` and, where something
        may be changed, ``change``, each with ``prefix`` in front of its name. ``models`` are names,
        as ``"support.Ticket"``, or patterns, as ``"support.*"``; ``exclude`` are some to leave out.
        ``write``, ``actions``, ``confirm`` and ``allow_secret`` are as for :meth:`admin`, for all
        of the models; the first two may be dictionaries by names and patterns. ``permission`` is
        what callers need beside those that the admin asks for. ``scopes`` are what credentials need
        for the tools, ``write_scopes`` what they need beside for ``change``. ``options`` are others
        of :meth:`tool`.
        """
        tools = _maker_of("admin_site")(
            site,
            self,
            models=models,
            exclude=exclude,
            write=write,
            actions=actions,
            confirm=confirm,
            allow_secret=allow_secret,
            prefix=prefix,
            permission=permission,
            scopes=scopes,
            write_scopes=write_scopes,
        )
        self._offer(tools, options)

    def toolset(self, kind: T) -> T:
        """Offer the tools of a class, which is derived from :class:`Toolset`."""
        self._offer(toolsets.tools_of(kind), {})
        if kind.permission is None:
            self.toolsets[toolsets.name_of_toolset(kind)] = toolsets.description_of(kind)
        return kind

    def viewset(
        self,
        view: Any,
        *,
        actions: Sequence[str],
        name: str = "",
        permission: Permission | None = None,
        kwargs: Mapping[str, Any] | None = None,
        serializers: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        """Offer what a view of REST framework does, a tool for each action.

        ``view`` is a viewset, another class of views, or a function with ``@api_view``. Of those
        that are no viewsets, ``actions`` are HTTP methods. ``name`` is what one of its objects is
        called in the names of the tools; by default the model's name. Whom the view's permissions
        refuse whatever the object do not see the tool, unless ``permission`` says who sees it.
        ``kwargs`` are what the URL would say: a value, such as a version, or the class of what
        clients say. ``serializers`` describe the arguments of actions and methods that no other
        serializer describes; ``None`` says that there are none. ``options`` are those of
        :meth:`tool`.
        """
        rest = import_module(".rest_framework", __package__)  # an optional part
        tools = rest.tools_of(view, actions, name, permission, kwargs or {}, serializers or {})
        self._offer(tools, options)

    def ninja(
        self,
        api: Any,
        *,
        operations: Collection[str] = (),
        tags: Collection[str] = (),
        permission: Permission | None = None,
        **options: Any,
    ) -> None:
        """Offer operations of a ``NinjaAPI``, named by their functions or ids, or by tags.

        What the path, the query and the body of one take are the arguments of a tool. The API's own
        authentication is not asked, so ``permission`` must say who may, where there is one.
        ``options`` are those of :meth:`tool`.
        """
        ninja = import_module(".ninja", __package__)  # an optional part
        self._offer(ninja.tools_of(api, operations, tags, permission), options)

    def command(
        self, name: str, *, permission: Permission, arguments: Sequence[str] = (), **options: Any
    ) -> None:
        """Offer the management command ``name`` to models.

        ``permission`` is what callers need, for commands ask for none. ``arguments`` are those
        that they may give, as on the command line: nothing else of the command can be reached. What
        it writes is sent line by line as log messages, and its end is the result. ``options`` are
        those of :meth:`tool`.
        """
        function = command_function(name, arguments)
        self._offer([(function, {"permission": permission, "strict": True})], options)

    def _offer(
        self,
        tools: Iterable[tuple[Callable[..., Any], dict[str, Any]]],
        options: Mapping[str, Any],
    ) -> None:
        """Register tools, of which ``options`` say more, or otherwise, than their own."""
        for function, own in tools:
            self._add_tool(function, {**own, **options})


_makers: dict[str, ToolsOfAdmin] = {}


def install_admin(**makers: ToolsOfAdmin) -> None:
    """Have tools of admins made by these functions, by the names of the methods that need them."""
    _makers.update(makers)


def _maker_of(name: str) -> ToolsOfAdmin:
    if name not in _makers:
        raise RegistrationError(
            f'mcp.{name}() needs "django_mcp" in INSTALLED_APPS, and belongs in the mcp.py of an '
            "app, which is imported when all apps are there."
        )
    return _makers[name]
