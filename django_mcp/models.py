"""Sessions and requests in flight, as rows that any worker can serve.

No row is ever read, changed in Python and written back: state moves by compare-and-set, counters
by ``F()``, and every age is measured by the database's clock.
"""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from .clock import DatabaseNow


class Session(models.Model):
    """A client's session of a legacy revision.

    The ``Mcp-Session-Id`` is a secret that only the client keeps; the row has its digest. The
    primary key is public.
    """

    class State(models.TextChoices):
        """How far the session is; it only ever moves down this list."""

        OPENED = "opened", _("opened")
        READY = "ready", _("ready")
        ENDED = "ended", _("ended")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    key_digest = models.CharField(_("digest of the id"), max_length=64)
    server = models.CharField(_("server"), max_length=128)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("user"),
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="+",
        db_index=False,  # mcp_session_owner begins with it
    )
    client_id = models.CharField(_("client id"), max_length=255, blank=True)
    revision = models.CharField(_("protocol revision"), max_length=10)
    client_name = models.CharField(_("client name"), max_length=255, blank=True)
    client_info = models.JSONField(_("client info"), default=dict)
    client_capabilities = models.JSONField(_("client capabilities"), default=dict)
    log_level = models.CharField(_("log level"), max_length=16, default="info")
    state = models.CharField(_("state"), max_length=8, choices=State.choices, default=State.OPENED)
    request_count = models.PositiveBigIntegerField(_("requests"), default=0)
    created = models.DateTimeField(_("created"), default=DatabaseNow)
    last_active = models.DateTimeField(_("last active"), default=DatabaseNow)
    expires = models.DateTimeField(_("expires"))
    ended = models.DateTimeField(_("ended"), null=True, blank=True)

    class Meta:
        verbose_name = _("session")
        verbose_name_plural = _("sessions")
        # Not unique=True, which on PostgreSQL costs a second index for LIKE.
        constraints = (models.UniqueConstraint(fields=["key_digest"], name="mcp_session_key"),)
        indexes = (
            models.Index(fields=["state", "last_active"], name="mcp_session_idle"),
            models.Index(fields=["user", "client_id", "state"], name="mcp_session_owner"),
            models.Index(fields=["-last_active"], name="mcp_session_recent"),
        )

    def __str__(self) -> str:
        return f"{self.client_name or _('unnamed client')} {str(self.id)[:8]}"


class PendingRequest(models.Model):
    """A request in flight, from the client or to it.

    Its own primary key is the identity of the exchange. The JSON-RPC id is kept only for the reply:
    clients may use one id for many requests at once.
    """

    class Direction(models.TextChoices):
        """Who is waiting for whom."""

        FROM_CLIENT = "from", _("from the client")
        TO_CLIENT = "to", _("to the client")

    class State(models.TextChoices):
        """How far the request is; it leaves ``RUNNING`` once, by compare-and-set."""

        RUNNING = "running", _("running")
        ANSWERED = "answered", _("answered")
        FAILED = "failed", _("failed")
        CANCELLED = "cancelled", _("cancelled")

    id = models.BigAutoField(primary_key=True)
    session = models.ForeignKey(
        Session,
        verbose_name=_("session"),
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="pending_requests",
        db_index=False,  # mcp_pending_session begins with it
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("user"),
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="+",
    )
    client_id = models.CharField(_("client id"), max_length=255, blank=True)
    server = models.CharField(_("server"), max_length=128)
    direction = models.CharField(
        _("direction"), max_length=4, choices=Direction.choices, default=Direction.FROM_CLIENT
    )
    request_id = models.CharField(_("request id"), max_length=1024)
    method = models.CharField(_("method"), max_length=64)
    name = models.CharField(_("name"), max_length=255, blank=True)
    state = models.CharField(_("state"), max_length=9, choices=State.choices, default=State.RUNNING)
    owner = models.CharField(_("process"), max_length=32, blank=True)
    lease_until = models.DateTimeField(_("lease until"), null=True, blank=True)
    deadline = models.DateTimeField(_("deadline"), null=True, blank=True)
    cancel_requested = models.BooleanField(_("cancel requested"), default=False)
    created = models.DateTimeField(_("created"), default=DatabaseNow)

    class Meta:
        verbose_name = _("pending request")
        verbose_name_plural = _("pending requests")
        indexes = (
            models.Index(fields=["session", "state"], name="mcp_pending_session"),
            models.Index(fields=["state", "lease_until"], name="mcp_pending_lease"),
        )

    def __str__(self) -> str:
        return f"{self.method} {self.name}".strip()
