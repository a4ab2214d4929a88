"""The tenants, in the public schema."""

from __future__ import annotations

from django.db import models
from django_tenants.models import DomainMixin, TenantMixin


class Company(TenantMixin):
    name = models.CharField(max_length=100)
    auto_drop_schema = True

    def __str__(self) -> str:
        return self.name


class Domain(DomainMixin):
    pass
