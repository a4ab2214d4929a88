"""Admins of the desk's models: a plain one, and one that overrides all that can be."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth.models import User
from django.contrib.messages import WARNING
from django.http import HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils.html import format_html

from django_mcp import MCPServer
from django_mcp.testing import MCPClient
from tests.model_tools.desk.models import Comment, Company, Customer, Tag, Ticket
from tests.model_tools.support import MODERN, user_with

STAFF = ("view_ticket", "change_ticket", "add_ticket", "delete_ticket")


class CommentInline(admin.TabularInline):
    model = Comment
    extra = 0


class PlainAdmin(admin.ModelAdmin):
    list_display = ["number", "subject", "status", "customer", "shout", "is_late"]
    list_filter = ["status", "customer", "created", "tags", "is_public", "customer__name", "due"]
    search_fields = ["number", "^subject", "secret_note"]
    ordering = ["-created"]
    readonly_fields = ["updated", "shout", "secret_note"]
    inlines = [CommentInline]
    actions = ["close", "page", "html", "elsewhere", "here", "export", "warn", "by_permission"]

    @admin.display(ordering="subject")
    def shout(self, obj):
        return format_html("<b>{}</b>", obj.subject.upper())

    def close(self, request, queryset):
        """Close tickets."""
        self.message_user(request, f"{queryset.update(status='closed')} closed")

    def page(self, request, queryset):
        queryset.update(status="closed")
        return TemplateResponse(request, "admin/confirm.html", {})

    def html(self, request, queryset):
        queryset.update(status="closed")
        return HttpResponse("<form>Sure?</form>")

    def elsewhere(self, request, queryset):
        return HttpResponseRedirect("/somewhere/else/")

    def here(self, request, queryset):
        queryset.update(status="closed")
        return HttpResponseRedirect(request.get_full_path())

    def export(self, request, queryset):
        rows = "".join(f"{each.number}\n" for each in queryset.order_by("pk"))
        return HttpResponse(rows, content_type="text/csv")

    def warn(self, request, queryset):
        self.message_user(request, format_html("Not <b>{}</b>", "all"), WARNING)

    @admin.action(permissions=["change", "delete"], description="Mark %(verbose_name_plural)s")
    def by_permission(self, request, queryset):
        queryset.update(remark="marked")


ACTIONS = tuple(PlainAdmin.actions)


class TicketForm(forms.ModelForm):
    note = forms.CharField(required=False, help_text="For the log")

    class Meta:
        model = Ticket
        fields = ["number", "subject", "customer", "status", "remark"]

    def clean_subject(self):
        if self.cleaned_data["subject"] == "bad":
            raise forms.ValidationError("No such subject.")
        return self.cleaned_data["subject"]


class Late(admin.SimpleListFilter):
    title, parameter_name = "lateness", "late"

    def lookups(self, request, model_admin):
        return [("yes", "Late"), ("no", "In time")]

    def queryset(self, request, queryset):
        if self.value() is None:
            return queryset.exclude(remark="archived")
        return queryset.filter(priority=2 if self.value() == "yes" else 1)


class ByCompany(admin.SimpleListFilter):
    title, parameter_name = "company", "company"

    def lookups(self, request, model_admin):
        return [(each.pk, each.name) for each in Company.objects.all()]

    def queryset(self, request, queryset):
        return queryset.filter(customer__company=self.value()) if self.value() else queryset


class OwnAdmin(admin.ModelAdmin):
    """Everything comes from a method, and depends on who asks."""

    form = TicketForm
    said: list[Any] = []
    """What the methods that write have been called with."""

    def get_queryset(self, request):
        rows = super().get_queryset(request)
        return rows if request.user.is_superuser else rows.exclude(remark="hidden")

    def get_list_display(self, request):
        names = ["number", self.who, "__str__"]
        return [*names, "price"] if request.user.is_superuser else names

    def who(self, obj):
        return obj.customer

    def get_list_filter(self, request):
        return [Late, ByCompany, *(["price"] if request.user.is_superuser else [])]

    def get_search_fields(self, request):
        return ["subject"]

    def get_search_results(self, request, queryset, search_term):
        found, duplicates = super().get_search_results(request, queryset, search_term)
        return found | queryset.filter(remark=search_term), duplicates

    def get_ordering(self, request):
        return ["customer__name", "-number"]

    def get_sortable_by(self, request):
        return ["number"]

    def get_list_select_related(self, request):
        return ["customer"]

    def get_fieldsets(self, request, obj=None):
        names = ["number", "subject", "customer", "note"]
        names += ["status"] if obj is not None else []
        return [(None, {"fields": names}), ("More", {"fields": [("remark", "who")]})]

    def get_readonly_fields(self, request, obj=None):
        return ["who"] if request.user.is_superuser else ["who", "remark"]

    def get_changeform_initial_data(self, request):
        return {"subject": f"From {request.user}"}

    def get_inlines(self, request, obj):
        return [CommentInline]

    def get_actions(self, request, *args, **kwargs):
        found = super().get_actions(request, *args, **kwargs)
        if not request.user.is_superuser:
            found.pop("delete_selected", None)
        return found

    def has_view_permission(self, request, obj=None):
        return super().has_view_permission(request, obj) and self._is_own(request, obj)

    def has_change_permission(self, request, obj=None):
        return super().has_change_permission(request, obj) and self._is_own(request, obj)

    def has_delete_permission(self, request, obj=None):
        return super().has_delete_permission(request, obj) and self._is_own(request, obj)

    def _is_own(self, request, obj):
        return obj is None or request.user.is_superuser or obj.assignee_id == request.user.pk

    def save_form(self, request, form, change):
        self.said.append(("save_form", request.method, change))
        return super().save_form(request, form, change)

    def save_model(self, request, obj, form, change):
        self.said.append(("save_model", request.POST.get("subject"), change))
        obj.body = f"by {request.user}"
        super().save_model(request, obj, form, change)

    def save_related(self, request, form, formsets, change):
        self.said.append(("save_related", len(formsets), change))
        super().save_related(request, form, formsets, change)

    def construct_change_message(self, request, form, formsets, add=False):
        return f"own words, {form.cleaned_data['note']}"

    def delete_model(self, request, obj):
        self.said.append(("delete_model", obj.pk))
        super().delete_model(request, obj)


def site_with(*registered: Any, name: str = "admin", kind: Any = admin.AdminSite) -> Any:
    """An admin site with admins, as pairs of model and class."""
    site = kind(name)
    for model, admin_class in registered:
        site.register(model, admin_class)
    return site


def serve(admin_class: Any, model: Any = Ticket, *, site: Any = None, **options: Any) -> MCPServer:
    server = MCPServer("desk")
    others = [(each, None) for each in (Tag, Customer, Comment) if each is not model]
    site = site or site_with((model, admin_class), *others)
    server.admin(site.get_model_admin(model), **options)
    return server


def client_for(admin_class: Any, user: Any, model: Any = Ticket, **options: Any) -> MCPClient:
    more = {key: options.pop(key) for key in ("revision", "answers", "log_level") if key in options}
    more.setdefault("revision", MODERN)
    return MCPClient(serve(admin_class, model, **options), **more).as_user(user)


def staff(*codenames: str, **more: Any) -> Any:
    return user_with(*codenames, is_staff=True, **more)


def boss() -> Any:
    known = {"is_staff": True, "is_superuser": True}
    return User.objects.get_or_create(username="boss", defaults=known)[0]
