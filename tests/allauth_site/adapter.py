from __future__ import annotations

from allauth.idp.oidc.adapter import DefaultOIDCAdapter

from django_mcp.contrib.oauth import OIDCAdapterMixin


class Adapter(OIDCAdapterMixin, DefaultOIDCAdapter):
    """What a site has."""
