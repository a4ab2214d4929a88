"""States that count once only, and have: a model beside those of sessions."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from .clock import DatabaseNow


class RedeemedState(models.Model):
    """A state that a client kept between two rounds of a call, and that is of no use any more.

    Of several who insert it at the same time one succeeds, and may make the call.
    """

    id = models.UUIDField(primary_key=True, editable=False)
    call = models.UUIDField(
        _("call"), editable=False, help_text=_("Who has inserted it: a value of that call's own.")
    )
    redeemed = models.DateTimeField(_("redeemed"), default=DatabaseNow)

    class Meta:
        app_label = "django_mcp"
        verbose_name = _("redeemed state")
        verbose_name_plural = _("redeemed states")
        indexes = (models.Index(fields=["redeemed"], name="mcp_redeemed_state_age"),)

    def __str__(self) -> str:
        return str(self.id)
