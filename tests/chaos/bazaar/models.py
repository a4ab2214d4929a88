"""What calls leave behind."""

from __future__ import annotations

from django.db import models


class Effect(models.Model):
    """That a call has run: two rows of one nonce say that it has run twice."""

    nonce = models.CharField(max_length=64, db_index=True)

    def __str__(self) -> str:
        return self.nonce
