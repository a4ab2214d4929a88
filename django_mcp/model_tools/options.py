"""What a site says of the tools of a model: options, and methods to override, as an admin has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from django.contrib.auth import get_permission_codename
from django.db.models import Model, QuerySet
from django.utils.text import camel_case_to_spaces

from ..server.context import Context
from ..server.errors import RegistrationError

Filters = Sequence[str] | Mapping[str, Sequence[str]] | type


class ModelOptions:
    """The options of tools of a model, each with what it is where a site says nothing."""

    fields: ClassVar[Sequence[str]] = ()
    """What of a row models may read: fields, ``customer__name``, properties, methods of the class.
    Required; all other options name some of these."""
    list_fields: ClassVar[Sequence[str] | None] = None
    """Those that lists show, if not all."""
    search_fields: ClassVar[Sequence[str]] = ()
    """Texts among them in which words are looked for."""
    search_help_text: ClassVar[Any] = ""
    """What models are told of the words, as in ``ModelAdmin``."""
    filters: ClassVar[Filters] = ()
    """Names, or lookups by name, or a ``FilterSet`` of django-filter."""
    ordering_fields: ClassVar[Sequence[str]] = ()
    """By what callers may have lists in order."""
    ordering: ClassVar[Sequence[str] | None] = None
    """The order without that, as in a model's ``Meta``."""
    related: ClassVar[Mapping[str, Sequence[str]]] = {}
    """Lists of related rows that the result of a single row shows, with what of each."""
    allow_secret: ClassVar[Sequence[str]] = ()
    """Fields that look secret by their names, and are not."""

    create: ClassVar[Any] = None
    """A ``ModelForm`` that says what a new row may have."""
    update: ClassVar[Any] = None
    """A ``ModelForm`` that says what of a row may be changed."""
    bulk_update: ClassVar[bool] = False
    """Whether several rows may be changed alike, by one call."""
    delete: ClassVar[bool] = False
    """Whether rows may be deleted."""
    actions: ClassVar[Sequence[Callable[..., Any] | str]] = ()
    """Functions of a context and a queryset, or names of methods, as of ``ModelAdmin``."""
    confirm: ClassVar[bool | Sequence[str]] = True
    """Whether deletions and actions are confirmed first, or which of them."""

    resources: ClassVar[bool] = False
    """Whether each row is a resource, too."""
    lookup_field: ClassVar[str] = "pk"
    """The field that names a row, among those that are unique."""
    name: ClassVar[str] = ""
    """What a row is called in the names of tools; by default as its class."""
    plural: ClassVar[str] = ""
    """What several are called."""
    page_size: ClassVar[int] = 20
    """Rows of a page, unless its caller asks for another number; 50 at most."""
    object_permissions: ClassVar[bool] = False
    """Whether permissions are asked for with each row, too, for backends that know such."""
    scopes: ClassVar[Sequence[str]] = ()
    """The scopes that credentials need for all of the tools."""
    write_scopes: ClassVar[Sequence[str]] = ()
    """Those that they need beside for what changes something."""
    tool_options: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """Options of ``mcp.tool``, by what the tool does: ``{"find": {"rate_limit": "10/m"}}``."""

    def __init__(self, model: type[Model]) -> None:
        self.model = model
        self.label = type(self).__name__

    def get_queryset(self, ctx: Context) -> QuerySet[Any]:
        """Return the rows that the caller may know of. Narrow it to what is theirs."""
        return self.model._default_manager.all()

    def get_related_queryset(
        self, ctx: Context, name: str, queryset: QuerySet[Any]
    ) -> QuerySet[Any]:
        """Return which of the rows of ``related[name]`` the caller may see."""
        return queryset

    def get_form_kwargs(self, ctx: Context) -> dict[str, Any]:
        """Return what the forms take beside data and instance."""
        return {}

    def save_form(self, ctx: Context, form: Any) -> Any:
        """Save what a valid form holds, with all that belongs to it, and return the instance."""
        return form.save()

    def delete_instance(self, ctx: Context, instance: Any) -> None:
        """Delete a row."""
        instance.delete()

    def has_view_permission(self, user: Any, obj: Any = None) -> bool:
        """Return whether a user may see rows, or this one. Who may change them may."""
        return self._has("view", user, obj) or self._has("change", user, obj)

    def has_add_permission(self, user: Any) -> bool:
        """Return whether a user may add rows."""
        return self._has("add", user, None)

    def has_change_permission(self, user: Any, obj: Any = None) -> bool:
        """Return whether a user may change rows, or this one."""
        return self._has("change", user, obj)

    def has_delete_permission(self, user: Any, obj: Any = None) -> bool:
        """Return whether a user may delete rows, or this one."""
        return self._has("delete", user, obj)

    def has_related_permission(self, user: Any, model: type[Model]) -> bool:
        """Return whether a user may see rows of a model that ``related`` shows."""
        return has_permission(user, "view", model) or has_permission(user, "change", model)

    def allows(self, permission: str, user: Any, obj: Any = None) -> bool:
        """Return whether a user has a permission, by the method that is named for it."""
        asked = getattr(self, f"has_{permission}_permission")
        return bool(asked(user) if obj is None else asked(user, obj))

    def may(self, ctx: Context, permission: str, obj: Any = None) -> bool:
        """Return whether the caller has a permission for some rows, or for this one."""
        return self.allows(permission, ctx.user, obj)

    def permission(self, name: str) -> Callable[[Any], bool]:
        """Return the function that says whether a user has a permission, for some rows or other."""

        def allows(user: Any) -> bool:
            return self.allows(name, user)

        allows.__qualname__ = f"{self.label}.has_{name}_permission"
        return allows

    def row_method(self, name: str) -> Callable[[Any], Any] | None:
        """Return the method that computes a value of a row, if the site's class has it."""
        found = None if hasattr(ModelOptions, name) else getattr(type(self), name, None)
        return getattr(self, name) if callable(found) else None

    @property
    def hides_rows(self) -> bool:
        """Whether some of the rows of ``get_queryset()`` may be hidden from a caller."""
        asked = type(self).has_view_permission
        return self.object_permissions or asked is not ModelOptions.has_view_permission

    @property
    def singular_name(self) -> str:
        """What a row is called in the names of tools."""
        return self.name or camel_case_to_spaces(self.model.__name__).replace(" ", "_")

    @property
    def plural_name(self) -> str:
        """What several are called."""
        return self.plural or self.plural_of(self.singular_name)

    @staticmethod
    def plural_of(name: str) -> str:
        """Return what several of something are called."""
        return _plural(name)

    def _has(self, action: str, user: Any, obj: Any) -> bool:
        if has_permission(user, action, self.model):
            return True
        if not self.object_permissions:
            return False
        if obj is None:
            # Which of the rows, if any, is asked for with each.
            return bool(user.is_authenticated and user.is_active)
        return has_permission(user, action, self.model, obj)


def has_permission(user: Any, action: str, model: type[Model], obj: Any = None) -> bool:
    """Return whether a user has one of Django's permissions for a model, or for an instance."""
    opts = model._meta
    permission = f"{opts.app_label}.{get_permission_codename(action, opts)}"
    return bool(user.has_perm(permission) if obj is None else user.has_perm(permission, obj))


def check_model(model: Any, label: str) -> type[Model]:
    """Return a model whose rows one column names; raises :class:`RegistrationError` else."""
    if not (isinstance(model, type) and issubclass(model, Model)) or model._meta.abstract:
        raise RegistrationError(f"{label}: @mcp.model takes a model, as in @mcp.model(Ticket).")
    if len(getattr(model._meta, "pk_fields", [None])) != 1:
        raise RegistrationError(
            f"{label}: {model.__name__} has a primary key of several columns. Write functions of "
            "your own, with @mcp.tool."
        )
    return model


def _plural(word: str) -> str:
    if word.endswith("y") and word[-2:-1] not in "aeiou":
        return f"{word[:-1]}ies"
    return f"{word}es" if word.endswith(("s", "x", "z", "ch", "sh")) else f"{word}s"
