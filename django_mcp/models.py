"""Sessions, streams, queued messages and requests in flight, as rows that any worker can serve.

No row is ever read, changed in Python and written back: state moves by compare-and-set, counters
by ``F()``, and every age is measured by the database's clock. Whoever inserts a child first locks
its parent under the condition that it lives.

What changes often is in no index, nor in the condition of one: PostgreSQL then updates a row within
its page and leaves the indexes alone ("heap-only tuples"), for which the migrations leave room.
"""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.db.models.functions import Coalesce
from django.utils.translation import gettext_lazy as _

from .clock import DatabaseHour, DatabaseNow
from .ids import new_id


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
        db_index=False,  # mcp_session_principal begins with it
    )
    client_id = models.CharField(_("client id"), max_length=255, blank=True)
    revision = models.CharField(_("protocol revision"), max_length=10)
    client_name = models.CharField(_("client name"), max_length=255, blank=True)
    client_info = models.JSONField(_("client info"), default=dict)
    client_capabilities = models.JSONField(_("client capabilities"), default=dict)
    log_level = models.CharField(_("log level"), max_length=16, default="info")
    state = models.CharField(_("state"), max_length=8, choices=State.choices, default=State.OPENED)
    request_count = models.PositiveBigIntegerField(_("requests"), default=0)
    changes_seen = models.PositiveBigIntegerField(
        _("changes seen"), default=0, help_text=_("The last change when the session was opened.")
    )
    created = models.DateTimeField(_("created"), default=DatabaseNow)
    last_active = models.DateTimeField(_("last active"), default=DatabaseNow)
    used_hour = models.PositiveIntegerField(
        _("hour of last use"),
        default=DatabaseHour,
        db_default=0,
        help_text=_("Hours since 1970, in UTC; 0 where a version before has inserted the row."),
    )
    expires = models.DateTimeField(_("expires"))
    ended = models.DateTimeField(_("ended"), null=True, blank=True)

    class Meta:
        verbose_name = _("session")
        verbose_name_plural = _("sessions")
        # Not unique=True, which on PostgreSQL costs a second index for LIKE.
        constraints = (models.UniqueConstraint(fields=["key_digest"], name="mcp_session_key"),)
        # What has not ended has no time of its end; its state changes more often than that.
        indexes = (
            models.Index(fields=["ended", "used_hour"], name="mcp_session_unused"),
            models.Index(fields=["user", "client_id", "ended"], name="mcp_session_principal"),
            models.Index(fields=["used_hour"], name="mcp_session_hour"),
            models.Index(fields=["created"], name="mcp_session_created"),
        )

    def __str__(self) -> str:
        return f"{self.client_name or _('unnamed client')} {str(self.id)[:8]}"


class Stream(models.Model):
    """A stream of messages to the client: what one POST is answered with, or the session's own.

    A connection shows it as Server-Sent Events. When that breaks, another one goes on, at whatever
    worker: the rows after the last event that the client has seen.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    session = models.ForeignKey(
        Session, verbose_name=_("session"), on_delete=models.CASCADE, related_name="streams"
    )
    own = models.BooleanField(
        _("the session's own"),
        null=True,
        default=None,
        help_text=_("True for the stream that GET opens; a session has one of those."),
    )
    next_seq = models.PositiveBigIntegerField(_("next number"), default=1)
    delivered = models.PositiveBigIntegerField(
        _("delivered"), default=0, help_text=_("Own streams: the last number that was sent.")
    )
    trimmed = models.PositiveBigIntegerField(
        _("trimmed"), default=0, help_text=_("The last number that is no longer kept.")
    )
    epoch = models.PositiveIntegerField(
        _("epoch"), default=0, help_text=_("Connections so far; the newest one delivers.")
    )
    reader = models.CharField(
        _("reader"), max_length=128, blank=True, help_text=_("Where to ring for the newest one.")
    )
    changes_seen = models.PositiveBigIntegerField(
        _("changes seen"), default=0, help_text=_("Own streams: the last change told.")
    )
    created = models.DateTimeField(_("created"), default=DatabaseNow)
    closed = models.DateTimeField(_("closed"), null=True, blank=True)
    cleared = models.BooleanField(
        _("cleared"), default=False, help_text=_("Whether nothing of what it said is kept.")
    )

    class Meta:
        verbose_name = _("stream")
        verbose_name_plural = _("streams")
        # NULL differs from NULL, so any number of streams of POSTs, and one that is the session's.
        constraints = (models.UniqueConstraint(fields=["session", "own"], name="mcp_stream_own"),)
        indexes = (models.Index(fields=["cleared", "closed"], name="mcp_stream_closed"),)

    def __str__(self) -> str:
        return str(self.id)


class OutgoingMessage(models.Model):
    """One message to the client, in its place on one stream."""

    class Kind(models.TextChoices):
        """What becomes of it where room is short: notifications go first, responses never."""

        NOTIFICATION = "notification", _("notification")
        REQUEST = "request", _("request")
        RESPONSE = "response", _("response")

    id = models.BigAutoField(primary_key=True)
    stream = models.ForeignKey(
        Stream,
        verbose_name=_("stream"),
        on_delete=models.CASCADE,
        related_name="messages",
        db_index=False,  # mcp_message_place begins with it
    )
    seq = models.PositiveBigIntegerField(_("number"))
    kind = models.CharField(_("kind"), max_length=12, choices=Kind.choices)
    body = models.TextField(_("message"))

    class Meta:
        verbose_name = _("outgoing message")
        verbose_name_plural = _("outgoing messages")
        constraints = (models.UniqueConstraint(fields=["stream", "seq"], name="mcp_message_place"),)

    def __str__(self) -> str:
        return f"{self.kind} {self.seq}"


class PendingRequest(models.Model):
    """A request in flight, from the client or to it.

    Its own primary key is the identity of the exchange. The JSON-RPC id is kept for the reply, and
    to find what a cancellation names; it identifies nothing, since clients may use one id for many
    requests at once.
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
        TIMED_OUT = "timed_out", _("timed out")

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    session = models.ForeignKey(
        Session,
        verbose_name=_("session"),
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="pending_requests",
        db_index=False,  # mcp_pending_session begins with it
    )
    stream = models.ForeignKey(
        Stream,
        verbose_name=_("stream"),
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="pending_requests",
    )
    parent = models.ForeignKey(
        "self",
        verbose_name=_("asked by"),
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="questions",
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
    channel = models.CharField(
        _("channel"), max_length=128, blank=True, help_text=_("Where to ring for its process.")
    )
    lease_until = models.DateTimeField(_("lease until"), null=True, blank=True)
    deadline = models.DateTimeField(_("deadline"), null=True, blank=True)
    cancel_requested = models.BooleanField(_("cancel requested"), default=False)
    answer = models.TextField(_("answer"), blank=True, editable=False)
    created = models.DateTimeField(_("created"), default=DatabaseNow)
    ended = models.DateTimeField(_("ended"), null=True, blank=True)

    class Meta:
        verbose_name = _("pending request")
        verbose_name_plural = _("pending requests")
        indexes = (
            models.Index(fields=["session", "state"], name="mcp_pending_session"),
            # Those that run are few, so that their leases, which change, need no index.
            models.Index(fields=["state", "ended"], name="mcp_pending_ended"),
        )

    def __str__(self) -> str:
        return f"{self.method} {self.name}".strip()


class Subscription(models.Model):
    """The wish to hear when a resource changes: a session's, or that of a request that listens."""

    id = models.BigAutoField(primary_key=True)
    session = models.ForeignKey(
        Session,
        verbose_name=_("session"),
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="subscriptions",
        db_index=False,  # mcp_subscription_once begins with it
    )
    request = models.ForeignKey(
        PendingRequest,
        verbose_name=_("request"),
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="subscriptions",
    )
    server = models.CharField(_("server"), max_length=128)
    uri = models.TextField(_("URI"))
    uri_digest = models.CharField(_("digest of the URI"), max_length=64, editable=False)
    changes_seen = models.PositiveBigIntegerField(
        _("changes seen"), default=0, help_text=_("The last change before the subscription.")
    )
    created = models.DateTimeField(_("created"), default=DatabaseNow)

    class Meta:
        verbose_name = _("subscription")
        verbose_name_plural = _("subscriptions")
        constraints = (
            models.UniqueConstraint(fields=["session", "uri_digest"], name="mcp_subscription_once"),
        )
        indexes = (models.Index(fields=["server", "uri_digest"], name="mcp_subscription_uri"),)

    def __str__(self) -> str:
        return self.uri


class ChangeCounter(models.Model):
    """Numbers the changes of one server: its row is locked until they are committed.

    So the order of their numbers is the order in which they become visible, and nobody who reads
    on from a number misses one.
    """

    server = models.CharField(_("server"), max_length=128, primary_key=True)
    serial = models.PositiveBigIntegerField(_("last number"), default=0)

    class Meta:
        verbose_name = _("change counter")
        verbose_name_plural = _("change counters")

    def __str__(self) -> str:
        return f"{self.server} {self.serial}"

    @classmethod
    def last(cls, server: str) -> Coalesce:
        """Return the number of a server's last change, as an expression for a query."""
        return Coalesce(models.Subquery(cls._default_manager.filter(pk=server).values("serial")), 0)


class Change(models.Model):
    """That a list or a resource has changed, and when last: one row, however often it does."""

    class Kind(models.TextChoices):
        """What has changed."""

        TOOLS = "tools", _("list of tools")
        PROMPTS = "prompts", _("list of prompts")
        RESOURCES = "resources", _("list of resources")
        RESOURCE = "resource", _("resource")

    id = models.BigAutoField(primary_key=True)
    server = models.CharField(_("server"), max_length=128)
    kind = models.CharField(_("kind"), max_length=9, choices=Kind.choices)
    uri = models.TextField(_("URI"), blank=True)
    uri_digest = models.CharField(_("digest of the URI"), max_length=64, blank=True)
    serial = models.PositiveBigIntegerField(_("number"))
    changed = models.DateTimeField(_("changed"), default=DatabaseNow)

    class Meta:
        verbose_name = _("change")
        verbose_name_plural = _("changes")
        constraints = (
            models.UniqueConstraint(
                fields=["server", "kind", "uri_digest"], name="mcp_change_what"
            ),
        )
        indexes = (
            models.Index(fields=["server", "serial"], name="mcp_change_serial"),
            models.Index(fields=["kind", "changed"], name="mcp_change_age"),
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.uri}".strip()


class Claim(models.Model):
    """Which process does something that one at a time is to do, and until when it need not say so
    again: after that it counts as dead.
    """

    job = models.CharField(_("job"), max_length=32, primary_key=True)
    owner = models.CharField(_("process"), max_length=32)
    until = models.DateTimeField(_("until"))

    class Meta:
        verbose_name = _("claim")
        verbose_name_plural = _("claims")
        default_permissions = ()

    def __str__(self) -> str:
        return self.job


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
        verbose_name = _("call count")
        verbose_name_plural = _("call counts")
        # Not unique=True, which on PostgreSQL costs a second index for LIKE.
        constraints = (models.UniqueConstraint(fields=["key"], name="mcp_call_count_key"),)
        indexes = (models.Index(fields=["ends"], name="mcp_call_count_ends"),)

    def __str__(self) -> str:
        return f"{self.key[:8]} {self.number}"


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
        verbose_name = _("redeemed state")
        verbose_name_plural = _("redeemed states")
        indexes = (models.Index(fields=["redeemed"], name="mcp_redeemed_state_age"),)

    def __str__(self) -> str:
        return str(self.id)
