"""The table of tokens, and the only code that issues, revokes or rotates one.

Every write is narrow and conditional, so that no two of them can trample each other: a request
that records its use cannot undo a revocation, and a revocation happens once.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Self

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import BooleanField, Case, ExpressionWrapper, Q, Value, When
from django.utils.translation import gettext_lazy as _
from django.views.decorators.debug import sensitive_variables

from ...clock import DatabaseNow
from ...protocol.scopes import check_scope
from .secret import PREFIX_LENGTH, digest_of, generate, is_well_formed, prefix_of

if TYPE_CHECKING:
    from django.contrib.auth.base_user import AbstractBaseUser

USE_RESOLUTION = dt.timedelta(minutes=1)
"""How often at most ``last_used`` is written, so that a busy client costs no write per request."""


class State(models.TextChoices):
    """What has become of a token. Revocation counts for more than expiry."""

    ACTIVE = "active", _("active")
    EXPIRED = "expired", _("expired")
    REVOKED = "revoked", _("revoked")


def validate_server_names(value: object) -> None:
    """Refuse what is not a list of names: a stray value must never read as "all servers"."""
    if not (isinstance(value, list) and all(name and isinstance(name, str) for name in value)):
        raise ValidationError(_('Give a list of server names, such as ["staff"].'))


def validate_scopes(value: object) -> None:
    """Refuse what is not a list of scopes."""
    try:
        if not isinstance(value, list):
            raise ValueError("it is not a list")
        for each in value:
            check_scope(each)
    except ValueError as error:
        refusal = _('Give a list of scopes, such as ["orders:read"]: %(why)s.')
        raise ValidationError(refusal, params={"why": error}) from error


class TokenQuerySet(models.QuerySet["Token"]):
    """Issuing, finding and ending tokens: ``Token.objects``."""

    def with_state(self) -> Self:
        """Let each row say its ``state``, as the database's clock sees it."""
        return self.annotate(
            state=Case(
                When(revoked__isnull=False, then=Value(State.REVOKED)),
                When(expires__lte=DatabaseNow(), then=Value(State.EXPIRED)),
                default=Value(State.ACTIVE),
                output_field=models.CharField(),
            )
        )

    def in_state(self, state: str) -> Self:
        """Keep those in the state, one of :class:`State`."""
        return self.with_state().filter(Q(state=state))

    def with_use_due(self) -> Self:
        """Let each row say whether its use is to be recorded: ``use_due``."""
        return self.annotate(use_due=ExpressionWrapper(_use_is_due(), BooleanField()))

    def ended(self, *, before: dt.datetime | dt.timedelta | None = None) -> Self:
        """Keep those revoked or expired by then: a moment, or how long ago; by default now."""
        moment: Any = before if before is not None else DatabaseNow()
        if isinstance(before, dt.timedelta):
            moment = DatabaseNow() - before
        return self.filter(Q(revoked__lte=moment) | Q(expires__lte=moment))

    def revoke(self) -> int:
        """Revoke those that are not revoked yet; return how many that were."""
        return self.filter(revoked__isnull=True).update(revoked=DatabaseNow())

    @sensitive_variables("secret")
    def presented(self, secret: str) -> Token | None:
        """Find the token with this secret, its user and its state, in one query by the digest."""
        if not is_well_formed(secret):
            return None
        tokens = self.select_related("user").with_state().with_use_due()
        return tokens.filter(digest=digest_of(secret)).first()

    @sensitive_variables("secret")
    def issue(
        self,
        user: AbstractBaseUser,
        *,
        name: str = "",
        expires: dt.datetime | dt.timedelta | None = None,
        servers: Iterable[str] = (),
        scopes: Iterable[str] | None = None,
        read_only: bool = False,
    ) -> tuple[Token, str]:
        """Create a token that acts as the user; return it with its secret, which nobody sees again.

        ``expires`` is a moment, or a span from now by the database's clock; no ``servers`` means
        all of them. ``scopes`` are those that it has; ``None`` means that no scopes limit it, and
        an empty list that it is good for what needs none. A ``read_only`` token calls only tools
        that say ``read_only=True``. Raises ``ValidationError`` for what cannot be stored.
        """
        owner: Any = user  # of whatever model the site has chosen
        token = Token(user=owner, name=name, servers=_listed(servers), read_only=read_only)
        token.scopes = None if scopes is None else _listed(scopes)
        token.expires = DatabaseNow() + expires if isinstance(expires, dt.timedelta) else expires
        secret = token.seal()
        token.clean_fields(exclude={"user", "expires", "created"})
        self._for_write = True
        token.save(force_insert=True, using=self.db)
        token.refresh_from_db(fields=("created", "expires"))
        return token, secret


class Token(models.Model):
    """A secret that acts as its user, within its limits, until it expires or is revoked."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        related_name="mcp_tokens",
        verbose_name=_("user"),
    )
    name = models.CharField(
        _("name"),
        max_length=100,
        blank=True,
        help_text=_("What the token is for, or where it is kept."),
    )
    digest = models.CharField(_("digest"), max_length=64, unique=True, editable=False)
    prefix = models.CharField(_("prefix"), max_length=PREFIX_LENGTH, editable=False)
    servers = models.JSONField(
        _("servers"), default=list, blank=True, validators=[validate_server_names]
    )
    # Null where no scopes limit it, as with all tokens of processes that do not know the column.
    scopes = models.JSONField(
        _("scopes"), null=True, blank=True, default=None, validators=[validate_scopes]
    )
    read_only = models.BooleanField(
        _("for reading only"),
        default=False,
        db_default=False,
        help_text=_("It opens only what changes nothing."),
    )
    created = models.DateTimeField(_("created"), editable=False)
    expires = models.DateTimeField(_("expires"), null=True, blank=True)
    last_used = models.DateTimeField(_("last used"), null=True, blank=True, editable=False)
    revoked = models.DateTimeField(_("revoked"), null=True, blank=True, editable=False)

    # Set by the queries that compute them: with_state() and with_use_due().
    state: str
    use_due: bool

    objects = TokenQuerySet.as_manager()

    class Meta:
        verbose_name = _("token")
        verbose_name_plural = _("tokens")
        ordering = ("-id",)
        permissions = [("manage_own_tokens", "Can make and revoke tokens of their own")]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)" if self.name else f"{self.prefix}…"

    def seal(self) -> str:
        """Give an unsaved token its secret, of which it keeps digest and prefix; return it."""
        secret = generate()
        self.digest, self.prefix = digest_of(secret), prefix_of(secret)
        self.created = DatabaseNow()
        return secret

    def opens(self, server: str) -> bool:
        """Tell whether the token is meant for the server of this name."""
        names = self.server_names
        return names is not None and (not names or server in names)

    @property
    def server_names(self) -> list[str] | None:
        """The servers that it opens: none named means all, ``None`` that it opens none.

        That is so where the column holds what is no list, which other code may have written.
        """
        return [str(name) for name in self.servers] if isinstance(self.servers, list) else None

    @property
    def granted_scopes(self) -> frozenset[str] | None:
        """What it is good for: ``None`` where no scopes limit it.

        Where the column holds what is neither a list nor null, it is good for what needs no scopes.
        """
        if self.scopes is None:
            return None
        return frozenset(map(str, self.scopes)) if isinstance(self.scopes, list) else frozenset()

    def revoke(self) -> bool:
        """End the token for good; return whether it was this call that did."""
        revoked = Token.objects.filter(pk=self.pk).revoke() == 1
        if revoked:
            self.refresh_from_db(fields=("revoked",))
        return revoked

    @sensitive_variables("secret")
    def rotate(self) -> str:
        """Replace the secret and return the new one; the old one is refused from now on.

        The token stays the same one to whatever is bound to it, its sessions above all. Raises
        ``Token.DoesNotExist`` if it is no longer active, or was rotated by somebody else meanwhile.
        """
        secret = generate()
        digest, prefix = digest_of(secret), prefix_of(secret)
        unchanged = Token.objects.in_state(State.ACTIVE).filter(pk=self.pk, digest=self.digest)
        if not unchanged.update(digest=digest, prefix=prefix):
            raise Token.DoesNotExist("The token has ended or was rotated meanwhile.")
        self.digest, self.prefix = digest, prefix
        return secret

    def record_use(self) -> bool:
        """Write ``last_used``, once within ``USE_RESOLUTION``; tell whether this call did."""
        due = Token.objects.filter(_use_is_due(), pk=self.pk)
        return due.update(last_used=DatabaseNow()) == 1


def _use_is_due() -> Q:
    stale: Any = DatabaseNow() - USE_RESOLUTION
    return Q(last_used__isnull=True) | Q(last_used__lte=stale)


def _listed(names: Iterable[str]) -> list[str]:
    """Return the names as a list; a lone string is one name, not its letters."""
    return [names] if isinstance(names, str) else list(names)
