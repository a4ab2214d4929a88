"""Bearer tokens that belong to users: for scripts, for agents, for clients without OAuth.

    INSTALLED_APPS = [..., "django_mcp", "django_mcp.contrib.tokens"]
    DJANGO_MCP = {"AUTH": "django_mcp.contrib.tokens.auth.token_auth"}

    $ python manage.py migrate
    $ python manage.py mcp token create anna --name "anna's laptop" --expires-days 90

Whoever sends ``Authorization: Bearer mcp_...`` then acts as that user. A token may be limited to
some servers and to a span of time; the admin lists and revokes them. The database knows a digest
of each secret, never the secret: it is shown once, when the token is issued.

Where things are: ``secret`` says what a secret looks like, ``models`` issues, revokes and rotates,
``auth`` admits requests, ``challenge`` writes the header of a refusal, ``clock`` tells the time,
``deletion`` deletes what has ended, ``mcp_commands`` adds ``manage.py mcp token``.
"""
