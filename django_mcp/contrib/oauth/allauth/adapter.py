"""``OIDCAdapterMixin``: what allauth asks its adapter, answered for clients of MCP.

Put in front of allauth's own: ``class Adapter(OIDCAdapterMixin, DefaultOIDCAdapter)``, and name it
in ``IDP_OIDC_ADAPTER``. What clients send otherwise is looked at in ``views``.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from django.core.exceptions import ValidationError
from django.http import HttpRequest

from ....conf import get_settings
from ..client_documents import (
    MAX_NAME_CHARACTERS,
    MAX_REDIRECT_URIS,
    DocumentRefused,
    check_redirect_uri,
)
from ..resources import resource_at
from .clients import restrict

if TYPE_CHECKING:
    from allauth.idp.oidc.adapter import DefaultOIDCAdapter as Base
else:
    Base = object


class OIDCAdapterMixin(Base):
    """Scopes, resources and clients of MCP, for the adapter of ``allauth.idp.oidc``."""

    reads_client_documents = True
    """Whether a client's id may be the URL of a document about it. Set it to ``False`` where the
    site cannot reach the Internet: clients that are told they may do so try nothing else."""

    if TYPE_CHECKING:
        request: HttpRequest

    @property
    def scope_display(self) -> Mapping[str, Any]:
        """The sentences that people are shown: those of ``SCOPES`` beside allauth's."""
        return {**super().scope_display, **get_settings().scopes}

    def get_issuer(self) -> str:
        """Return the identifier of this site as ``AUTHORIZATION_SERVERS`` has it.

        Clients compare it letter by letter with what an endpoint has told them (RFC 8414, section
        3.3).
        """
        settings, host = get_settings(), self.request.get_host().lower()
        aliases = {_host_of(each) for each in settings.base_url}
        own = {_host_of(each): each for each in reversed(settings.authorization_servers)}
        here = [own[each] for each in (host, *aliases) if each in own]
        return here[0] if host in {*own, *aliases} and here else super().get_issuer()

    def generate_client_secret(self) -> str:
        """Return a secret that is the same in every encoding.

        Clients encode it for HTTP's Basic (RFC 6749, section 2.3.1); allauth takes it as it comes.
        """
        return secrets.token_urlsafe(48)

    def is_client_document_allowed(self, url: str) -> bool:
        """Return whether a client may be known by the document at ``url``; all are."""
        return True

    def is_cimd_url_allowed(self, url: str) -> bool:
        """Keep allauth from fetching documents: it would, from any address and for anybody."""
        return False

    def validate_resource_uris(self, *, uris: list[str], **kwargs: Any) -> None:
        """Admit one resource, which is an endpoint of this site, and was consented to."""
        if len(uris) == 1 and self.is_other_resource(uris[0]):
            super().validate_resource_uris(uris=uris, **kwargs)
        elif self.request.method == "GET":
            self.check_resources(uris)
        else:
            from .grants import invalid_target, is_granted  # noqa: PLC0415 - they import models

            # Of the views that are not for people, allauth answers no other error.
            try:
                self.check_resources(uris)
            except ValidationError as error:
                raise invalid_target(str(error.message)) from error
            if uris and not is_granted(self.request, uris[0]):
                raise invalid_target("Nobody has consented to a token for this resource")

    def check_resources(self, uris: Sequence[str]) -> None:
        """Check that these are one endpoint of this site; raises ``ValidationError``."""
        if len(uris) > 1:
            raise ValidationError("A token is for one resource: name one.")
        for uri in uris:
            resource = resource_at(uri)
            if resource is None or self.get_issuer() not in resource.authorization_servers:
                raise ValidationError("No tokens are issued here for this resource.")

    def is_other_resource(self, uri: str) -> bool:
        """Return whether a resource is one of the site's that is no endpoint; none is.

        Where one is, allauth decides who gets tokens for it.
        """
        return False

    def validate_client_registration(
        self, *, client: Any, client_metadata: dict[str, Any], **kwargs: Any
    ) -> None:
        """Admit clients that log people in with a code, and give them the scopes of MCP."""
        super().validate_client_registration(
            client=client, client_metadata=client_metadata, **kwargs
        )
        if len(client.name) > MAX_NAME_CHARACTERS or not client.name.isprintable():
            raise ValidationError(
                f"client_name is a text of {MAX_NAME_CHARACTERS} characters at most."
            )
        uris = client_metadata["redirect_uris"]
        if len(uris) > MAX_REDIRECT_URIS:
            raise ValidationError(f"redirect_uris has {MAX_REDIRECT_URIS} URIs at most.")
        try:
            for uri in uris:
                check_redirect_uri(uri)
        except DocumentRefused as error:
            raise ValidationError(str(error)) from error
        restrict(client)

    def populate_server_metadata(self, data: dict[str, Any]) -> None:
        """Say what clients of MCP look for (RFC 8414, section 2; RFC 9207, section 3)."""
        super().populate_server_metadata(data)
        data["authorization_response_iss_parameter_supported"] = True
        if self.reads_client_documents:
            data["client_id_metadata_document_supported"] = True


def _host_of(url: str) -> str:
    return urlsplit(url.lower()).netloc
