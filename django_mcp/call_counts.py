"""How often callers have called, where the database counts: a model beside those of sessions."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class CallCount(models.Model):
    """The calls of one caller in the period that goes on: of one tool, or of all.

    One conditional UPDATE counts a call or refuses it, so that no two processes can both take the
    last one. The row is used again for the next period.
    """

    id = models.BigAutoField(primary_key=True)
    key = models.CharField(_("digest of what is counted"), max_length=64)
    number = models.PositiveIntegerField(_("calls"), default=0)
    ends = models.DateTimeField(_("end of the period"))

    class Meta:
        app_label = "django_mcp"
        verbose_name = _("call count")
        verbose_name_plural = _("call counts")
        # Not unique=True, which on PostgreSQL costs a second index for LIKE.
        constraints = (models.UniqueConstraint(fields=["key"], name="mcp_call_count_key"),)
        indexes = (models.Index(fields=["ends"], name="mcp_call_count_ends"),)

    def __str__(self) -> str:
        return f"{self.key[:8]} {self.number}"
