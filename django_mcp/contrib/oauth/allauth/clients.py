"""Clients that nobody has made by hand: from their registration, or a document about them."""

from __future__ import annotations

import hashlib
import logging
import time
from typing import Any, Final

from django.core.cache import cache

from ....conf import get_settings
from ..client_documents import (
    ClientDocument,
    DocumentRefused,
    fetch_client_document,
    is_document_url,
)

logger = logging.getLogger("django_mcp.contrib.oauth")

GRANT_TYPES: Final = ("authorization_code", "refresh_token")
RESPONSE_TYPES: Final = ("code",)
FIELDS: Final = (
    *("name", "type", "redirect_uris", "data", "scopes", "default_scopes", "grant_types"),
    *("response_types", "allow_uri_wildcards", "skip_consent"),
)
"""What a document decides about a client."""
MAX_REGISTRATION_BYTES: Final = 64 * 1024
USABLE_SECONDS: Final = 24 * 60 * 60
"""For so long a document is used that cannot be fetched anew."""
PAUSE_SECONDS: Final = 30
"""After a document could not be used, it is not fetched again for so long."""
FETCHES: Final = 10
"""Documents that one user has fetched in a minute."""


def restrict(client: Any) -> None:
    """Let a client log people in with a code, for the scopes of MCP, and for nothing else.

    For all of these, whatever it asks for at first: it asks for more when it needs more, and people
    are asked each time.
    """
    settings = get_settings()
    client.set_grant_types(list(GRANT_TYPES))
    client.set_response_types(list(RESPONSE_TYPES))
    client.set_scopes(list(settings.scopes))
    client.set_default_scopes(list(settings.base_scopes or settings.scopes))
    client.allow_uri_wildcards = client.skip_consent = False


def is_made_by_hand(client: Any) -> bool:
    """Return whether somebody of the site has made a client, and nobody else."""
    made = client.data if isinstance(client.data, dict) else {}
    return not (made.get("cimd") or made.get("dcr"))


def find_client(client_id: str, *, adapter: Any, user: Any) -> Any:
    """Return the client, or ``None``; what its document says is looked at once an hour.

    Raises :class:`DocumentRefused`. ``user`` is who has opened the page: nobody else has anything
    fetched.
    """
    from allauth.idp.oidc import app_settings  # noqa: PLC0415 - a site without allauth has none
    from allauth.idp.oidc.models import Client  # noqa: PLC0415

    client = Client.objects.filter(pk=client_id).first()
    if not is_document_url(client_id) or (client and not _is_from_document(client)):
        return client
    if client is not None and client.pk != client_id:
        # Some databases take letters for others.
        raise DocumentRefused("The client_id is written in another way than before")
    age = time.time() - client.data.get("updated_at", 0) if client else float("inf")
    if age <= app_settings.CIMD_CACHE_TIMEOUT or not adapter.reads_client_documents:
        return client
    try:
        return _saved(_fetched(client_id, adapter=adapter, user=user))
    except DocumentRefused as error:
        if age > USABLE_SECONDS:
            raise
        logger.warning("The document of a client is used as it was: %s", error)
        return client


def _is_from_document(client: Any) -> bool:
    return isinstance(client.data, dict) and bool(client.data.get("cimd"))


def _fetched(client_id: str, *, adapter: Any, user: Any) -> ClientDocument:
    from allauth.idp.oidc.models import Client  # noqa: PLC0415

    longest = Client._meta.get_field("id").max_length or 0
    if len(client_id) > longest or not adapter.is_client_document_allowed(client_id):
        raise DocumentRefused("The client_id is too long, or is not admitted by this site")
    pause = f"django_mcp.allauth.pause.{hashlib.sha256(client_id.encode()).hexdigest()}"
    count = f"django_mcp.allauth.fetches.{user.pk}"
    if cache.get(pause):
        raise DocumentRefused(f"{cache.get(pause)}; try again in half a minute")
    cache.add(count, 0, 60)
    try:
        fetches = cache.incr(count)
    except ValueError:  # it has just been forgotten
        fetches = 1
    if fetches > FETCHES:
        raise DocumentRefused("You have tried many clients; try again in a minute")
    try:
        return fetch_client_document(client_id)
    except DocumentRefused as error:
        cache.set(pause, str(error), PAUSE_SECONDS)
        raise


def _saved(document: ClientDocument) -> Any:
    from allauth.idp.oidc.models import Client  # noqa: PLC0415

    client = Client(pk=document.client_id, name=document.name, type=Client.Type.PUBLIC)
    client.set_redirect_uris(list(document.redirect_uris))
    # Of the document nothing else is used, and databases do not take all that JSON can say.
    client.data = {"cimd": True, "client_metadata": {}, "updated_at": int(time.time())}
    restrict(client)
    kept = {name: getattr(client, name) for name in FIELDS}
    return Client.objects.update_or_create(pk=client.pk, defaults=kept)[0]
