"""``create`` and ``update`` of an admin: through its forms, saved as its pages save them."""

from __future__ import annotations

import copy
import json
from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Any, Final

from django.core.exceptions import PermissionDenied
from django.forms import Field
from django.utils.translation import gettext
from pydantic_core import to_jsonable_python

from ...server.context import Context
from ...server.errors import RegistrationError
from ...server.fields.form_arguments import argument_of
from ..changing.admin_log import message_of, via_mcp
from ..changing.chosen_rows import ChosenRows
from ..changing.row_versions import digest_of
from ..changing.writing import Writing
from ..fields.databases import load, parted
from ..tool_functions import Arguments
from .admin_options import AdminOptions, asked, form_on_page
from .admin_reading import AdminReading
from .admin_requests import described, describing_request, on_page, without_database
from .inline_rows import is_writable
from .inline_writing import InlineWriting

DENIED: Final = "You may not do this."


class AdminWriting(Writing):
    """How rows of an admin are added and changed."""

    options: AdminOptions

    def __init__(
        self,
        options: AdminOptions,
        reading: AdminReading,
        chosen: ChosenRows,
        kinds: Collection[str],
    ) -> None:
        create = _described_form(options, is_new=True) if "create" in kinds else None
        update = _described_form(options, is_new=False) if "update" in kinds else None
        super().__init__(options, reading, chosen, create=create, update=update)
        self._admin = options.admin
        self._reading: AdminReading = reading
        self._inlines = InlineWriting(reading.inlines, options.admin)
        self._rows = self._arguments_of_inlines() if create or update else {}
        self.beside = tuple(self._rows)
        for name, field in ({} if create is None else self.all_fields_of(create)).items():
            self._check_can_be_given(name, field)

    @cached_property
    def create_arguments(self) -> Arguments:
        """What ``create`` takes."""
        return {**super().create_arguments, **self._rows}

    @cached_property
    def update_arguments(self) -> Arguments:
        """What ``update`` takes."""
        return {**super().update_arguments, **self._rows}

    def create(self, ctx: Context, given: Mapping[str, Any]) -> dict[str, Any]:
        """Add a row, as the page to add one does."""
        request = on_page(asked(ctx), self._admin, "add", posted=given)
        if not self.options.permits(request, "add"):
            raise PermissionDenied(DENIED)
        return super().create(ctx, given)

    def update(self, ctx: Context, given: dict[str, Any]) -> dict[str, Any]:
        """Change a row, as its page does."""
        key = given[self._reading.lookup]
        on_page(asked(ctx), self._admin, "change", str(key), posted=given)
        return super().update(ctx, given)

    def form_class(self, ctx: Context, row: Any) -> Any:
        """Return the form that the admin has for the caller, and this row."""
        return form_on_page(self._admin, asked(ctx), row)

    def form_kwargs(self, ctx: Context, row: Any) -> dict[str, Any]:
        """Return what a form begins with, beside the values of a row."""
        if row is not None:
            return {}
        return {"initial": self._admin.get_changeform_initial_data(asked(ctx))}

    def current(self, ctx: Context, row: Any) -> Any:
        """Return a row that is locked, as the admin would have it."""
        admin: Any = copy.copy(self._admin)
        # Where the lock is: a copy elsewhere may be behind, and would be written back.
        rows = self._admin.get_queryset(asked(ctx)).using(row._state.db)
        rows, lookups = parted(rows)
        admin.get_queryset = lambda request: rows
        found = admin.get_object(asked(ctx), str(row.pk))
        if found is None:
            return row
        load([found], lookups)
        return found

    def save(self, ctx: Context, form: Any, given: Mapping[str, Any], *, is_new: bool) -> Any:
        """Save a valid form in the same steps as the admin's page, with what it notes of it."""
        admin, request = self._admin, asked(ctx)
        row = admin.save_form(request, form, change=not is_new)
        rows = {name: given[name] for name in self.beside if name in given}
        formsets = self._inlines.formsets(request, form.instance, rows, is_new=is_new)
        admin.save_model(request, row, form, not is_new)
        admin.save_related(request, form, formsets, not is_new)
        said = admin.construct_change_message(request, form, formsets, is_new)
        log: Any = admin.log_addition if is_new else admin.log_change
        log(request, row, via_mcp(ctx, message_of(said)))
        return row

    def all_fields_of(self, form: Any) -> Mapping[str, Field]:
        """Return the fields of a form as its own ``__init__()`` leaves them, where it can."""
        fields: Mapping[str, Field] = described(lambda: form().fields, form.base_fields)
        if form is self._create:
            ask = self.options.admin.get_changeform_initial_data
            for name in described(lambda: ask(describing_request()), {}):
                if name in fields:
                    fields = {**fields, name: copy.copy(fields[name])}
                    # It is as good as a value: whoever calls gets one of his own.
                    fields[name].initial = ""
        return fields

    def is_writable(self, name: str, field: Field) -> bool:
        """Return whether a field of a form can be filled in. No secret passes through a model."""
        return is_writable(name, field, self.options.shown)

    def version_of(self, ctx: Context, row: Any) -> str:
        """Return the version of a row, with the rows of its inlines, which may be written, too."""
        version = super().version_of(ctx, row)
        if not self.beside:
            return version
        told = json.dumps(to_jsonable_python([version, self._reading.inlines.of(asked(ctx), row)]))
        return digest_of(told, self.options.model)

    def _argument(self, name: str, field: Field, option: str) -> Any:
        # The help of the admin's pages tells which keys to hold down, too.
        field = copy.copy(field)
        keys = gettext("Hold down “Control”, or “Command” on a Mac, to select more than one.")
        field.help_text = str(field.help_text).replace(keys, "").strip()
        return super()._argument(name, field, option)

    def _arguments_of_inlines(self) -> Arguments:
        request, row = describing_request(), self.options.model()
        none: Arguments = {}
        found: Arguments = described(lambda: self._inlines.arguments(request, row), none)
        return found

    def _check_can_be_given(self, name: str, field: Field) -> None:
        is_needed = field.required and field.initial is None and not field.disabled
        if not is_needed or self.is_writable(name, field):
            return
        where = f"{self.options.label}: {name!r} of the form to add"
        if self.options.shown.is_secret(name):
            raise RegistrationError(
                f"{where} looks as if it were a secret, and must be filled in. Leave create out; "
                f'or, if it is none, say allow_secret=["{name}"].'
            )
        argument_of(field, where)
        raise RegistrationError(f"{where} is hidden, and must be filled in. Leave create out.")


def _described_form(options: AdminOptions, *, is_new: bool) -> Any:
    """Return the form of whoever may do all; raises :class:`RegistrationError` if none is made."""
    try:
        with without_database():
            row = None if is_new else options.model()
            return form_on_page(options.described_admin, describing_request(), row)
    except Exception as error:
        what = "create" if is_new else "update"
        raise RegistrationError(
            f"{options.label}: its form cannot be had without a caller and a database, so what "
            f"{what} takes is not known ({type(error).__name__}: {error}). Leave {what} out of "
            "write, or have get_form() and get_fieldsets() make do with a request that has a user."
        ) from error
