"""What is kept of logins beside the tables of django-oauth-toolkit: one small table."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class ScopeChallenge(models.Model):
    """A user's client was told lately that it needs more scopes than it has.

    The row goes at the client's next refresh, or is written again at the next challenge; so there
    is one at most for each user and client.
    """

    digest = models.CharField(_("digest"), max_length=64, unique=True, editable=False)
    moment = models.DateTimeField(_("moment"), editable=False)

    class Meta:
        verbose_name = _("challenge for scopes")
        verbose_name_plural = _("challenges for scopes")

    def __str__(self) -> str:
        return f"{self.digest[:8]}…"
