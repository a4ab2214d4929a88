"""django-oauth-toolkit (DOT) as the authorization server of the site's endpoints.

DOT has the tables and the protocol; here is what stands between it and the rules of MCP. ``site``
knows the issuer, the endpoints as resources, and their scopes. ``auth`` takes tokens at the
endpoints, and ``standing`` finds those who may stay no longer. ``validator`` decides at
authorization and token requests, with ``repetition`` (a refresh, or a code, that comes twice) and
``step_up``.
``consent`` is the page on which people agree, ``registration`` and ``client_documents`` the ways
in which clients introduce themselves, ``redirects`` where people may be sent, ``views`` the other
URLs, with ``cors``. ``checks`` finds settings by which any of this would be undone.

Only ``auth`` and ``step_up`` are used at an endpoint's requests.
"""
