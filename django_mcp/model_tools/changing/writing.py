"""``create_ticket`` and ``update_ticket``: what a ``ModelForm`` takes, and no more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from django.core.exceptions import ValidationError
from django.db import transaction
from django.forms import BaseModelForm, Field, FileField
from django.utils.functional import cached_property
from pydantic import Field as Info

from ...server.context import Context
from ...server.errors import RegistrationError, ToolError
from ...server.fields.bound_forms import CLEAR, given_values, valid_form
from ...server.fields.field_types import Schema
from ...server.fields.form_arguments import argument_of
from ..finding.row_reader import RowReader
from ..options import ModelOptions
from ..tool_functions import REQUIRED, Arguments
from .admin_log import log_addition, log_change
from .chosen_rows import ChosenRows
from .form_reads import choose_where_written, load_lists
from .row_versions import RowVersions

VERSION: Final = "row_version"
STALE: Final = (
    "{what} has changed since it was read, so nothing was written. Get it again, see whether the "
    "change is still right, and send it with the new row_version."
)


class Writing:
    """How rows are added and changed: through the forms of the site, each in a transaction."""

    beside: Sequence[str] = ()
    """Arguments that are no fields of a form."""

    def __init__(
        self,
        options: ModelOptions,
        reading: RowReader,
        chosen: ChosenRows,
        *,
        create: Any = None,
        update: Any = None,
    ) -> None:
        self.options = options
        self._reading = reading
        self._chosen = chosen
        self._create = create
        self._update = update
        self.versions = RowVersions(reading.fields, list(self._fields_of(update)))

    def version_of(self, ctx: Context, row: Any) -> str:
        """Return the version of a row as it is now."""
        return self.versions.of(row)

    def form_class(self, ctx: Context, row: Any) -> Any:
        """Return the form for a row, or for a new one."""
        return self._create if row is None else self._update

    def form_kwargs(self, ctx: Context, row: Any) -> dict[str, Any]:
        """Return what the form takes beside data and instance."""
        return self.options.get_form_kwargs(ctx)

    def current(self, ctx: Context, row: Any) -> Any:
        """Return a row that is locked, as the form takes it."""
        return row

    def save(self, ctx: Context, form: Any, given: Mapping[str, Any], *, is_new: bool) -> Any:
        """Save what a valid form holds, note it in the admin's log, and return the row.

        ``given`` has what is no field of the form as well.
        """
        row = self.options.save_form(ctx, form)
        (log_addition if is_new else log_change)(ctx, row, form)
        return row

    def all_fields_of(self, form: Any) -> Mapping[str, Field]:
        """Return the fields that a form has before anything is known of its caller."""
        fields: Mapping[str, Field] = form.base_fields
        return fields

    def is_writable(self, name: str, field: Field) -> bool:
        """Return whether a field of a form can be filled in."""
        return not (field.disabled or field.widget.is_hidden or _is_left_out(field))

    @cached_property
    def create_arguments(self) -> Arguments:
        """What ``create`` takes."""
        arguments: Arguments = {}
        for name, field in self._fields_of(self._create).items():
            annotation = self._argument(name, field, "create")
            # A default of the model's, or of the form's, is as good as a value.
            is_needed = field.required and field.initial is None
            arguments[name] = (annotation, REQUIRED) if is_needed else (annotation | None, None)
        return arguments

    @cached_property
    def update_arguments(self) -> Arguments:
        """What ``update`` takes: a row, and what is to change of it."""
        key = self._reading.lookup
        return {
            **self._reading.get_arguments,
            VERSION: (str | None, None),
            **self._changes((key, VERSION, CLEAR)),
        }

    @cached_property
    def bulk_arguments(self) -> Arguments:
        """What ``update`` takes of several rows."""
        return {**self._chosen.arguments, **self._changes(("ids", CLEAR))}

    def get(self, ctx: Context, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return one row, with its version."""
        return self.show(ctx, self._reading.row(ctx, given[self._reading.lookup]))

    def show(self, ctx: Context, row: Any) -> dict[str, Any]:
        """Return what is shown of one row, with its version."""
        # First: what changes while it is shown is to make the version an old one, not a good one.
        version = self.version_of(ctx, row)
        return {**self._reading.show(ctx, row), VERSION: version}

    def with_version(self, schema: Schema) -> Schema:
        """Return the schema of a row with its version."""
        return {**schema, "properties": {**schema["properties"], VERSION: {"type": "string"}}}

    def create(self, ctx: Context, given: Mapping[str, Any]) -> dict[str, Any]:
        """Add a row."""
        with transaction.atomic(using=self._chosen.alias(ctx)):
            form = self._form(ctx, None, given_values(given))
            row = self.save(ctx, form, given, is_new=True)
            return self._result(ctx, row.pk)

    def update(self, ctx: Context, given: dict[str, Any]) -> dict[str, Any]:
        """Change a row, if it is as its caller has read it."""
        key, version = given.pop(self._reading.lookup), given.pop(VERSION, None)
        changes = self._wanted(given)
        with transaction.atomic(using=self._chosen.alias(ctx)):
            (row,) = self._chosen.lock(ctx, [key], ["change"])
            if version is not None and version != self.version_of(ctx, row):
                raise ToolError(STALE.format(what=str(row)))
            self._change(ctx, row, changes)
            return self._result(ctx, row.pk)

    def update_several(self, ctx: Context, given: dict[str, Any]) -> dict[str, Any]:
        """Change several rows alike, or none."""
        keys = given.pop("ids")
        changes = self._wanted(given)
        with transaction.atomic(using=self._chosen.alias(ctx)):
            rows = self._chosen.lock(ctx, keys, ["change"])
            problems: dict[str, Any] = {}
            for row in rows:
                try:
                    self._change(ctx, row, changes)
                except ValidationError as error:
                    problems[str(row)] = error
            if problems:
                raise ToolError(problems)
        return {"changed": len(rows)}

    def _result(self, ctx: Context, key: Any) -> dict[str, Any]:
        row = self._reading.written(ctx, key, self._chosen.alias(ctx))
        # What the form allows may make a row that its writer does not see.
        is_seen = row is not None and self.options.may(ctx, "view")
        return self.show(ctx, row) if is_seen else {}

    def _change(self, ctx: Context, row: Any, given: Mapping[str, Any]) -> None:
        form = self._form(ctx, self.current(ctx, row), given)
        self.save(ctx, form, given, is_new=False)

    def _form(self, ctx: Context, row: Any, given: Mapping[str, Any]) -> BaseModelForm[Any]:
        """Return the valid form for what was given; raises ``ValidationError``, by field.

        What was not given keeps its value, or has that which the form begins with.
        """
        form_class, kwargs = self.form_class(ctx, row), self.form_kwargs(ctx, row)
        if row is not None:
            load_lists(form_class, row)

        def make(**data: Any) -> Any:
            form = form_class(instance=row, **kwargs, **data)
            return choose_where_written(form, form.instance)

        fields = {name: value for name, value in given.items() if name not in self.beside}
        form: BaseModelForm[Any] = valid_form(make, fields, self.is_writable)
        if row is None:
            # A new row goes where the rows of get_queryset() are, as those that are changed do.
            form.instance._state.db = self._chosen.alias(ctx)
        return form

    def _wanted(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return what is to be changed; raises :class:`ToolError` if that is nothing."""
        wanted = given_values(given)
        if not wanted:
            names = ", ".join(self._fields_of(self._update))
            raise ToolError(f"Say what is to be changed: one of {names}.")
        return wanted

    def _changes(self, reserved: Sequence[str]) -> Arguments:
        arguments: Arguments = {}
        clearable = []
        for name, field in self._fields_of(self._update).items():
            if name in reserved:
                raise RegistrationError(
                    f"{self.options.label}: update has a field {name!r}, which is an argument of "
                    "the tool already. Leave it out of the form."
                )
            arguments[name] = (self._argument(name, field, "update") | None, None)
            if not field.required:
                clearable.append(name)
        if clearable:
            choice: Any = Literal[tuple(clearable)]
            names = Annotated[list[choice], Info(description="What to empty")]
            arguments[CLEAR] = (names | None, None)
        return arguments

    def _fields_of(self, form: Any) -> dict[str, Field]:
        """Return the fields of a form that can be filled in."""
        fields = {} if form is None else self.all_fields_of(form)
        return {name: field for name, field in fields.items() if self.is_writable(name, field)}

    def _argument(self, name: str, field: Field, option: str) -> Any:
        return argument_of(field, f"{self.options.label}: {name!r} of the form for {option}")


def checked_form(form: Any, options: ModelOptions, option: str) -> Any:
    """Return what an option says, if it is a form for the model, or nothing."""
    if form is None:
        return None
    if not (isinstance(form, type) and issubclass(form, BaseModelForm)):
        raise RegistrationError(
            f"{options.label}: {option} takes a ModelForm, which says what may be written."
        )
    if not issubclass(options.model, form._meta.model):
        raise RegistrationError(
            f"{options.label}: {option} is a form for {form._meta.model.__name__}, not for "
            f"{options.model.__name__}."
        )
    return form


def _is_left_out(field: Field) -> bool:
    """Return whether a field is a file, which stays as it is."""
    return isinstance(field, FileField) and not field.required
