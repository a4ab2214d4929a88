"""A site whose authorization server is the provider of django-allauth (``allauth.idp.oidc``).

``auth`` has ``allauth_auth``, which looks tokens up in allauth's own table. ``adapter`` tells
allauth which scopes and resources there are, ``clients`` what clients may be that nobody has made
by hand, ``grants`` what people have consented to. ``urls`` stands in for ``allauth.idp.urls``:
``views`` are allauth's with what MCP asks for besides. ``checks`` finds what would keep clients
out, or let others in.

allauth is imported where it is used alone: the extra ``oauth-allauth`` has it.
"""
