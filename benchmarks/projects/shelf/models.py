"""The one table that tools read."""

from __future__ import annotations

from django.db import models


class Item(models.Model):
    """A key and what it stands for."""

    id = models.IntegerField(primary_key=True)
    value = models.BigIntegerField()

    def __str__(self) -> str:
        return f"{self.pk}: {self.value}"
