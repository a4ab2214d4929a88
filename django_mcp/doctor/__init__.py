"""Looks at an MCP server as clients do, and says what works, what does not, and the cure.

It needs no Django, so any server can be looked at, and httpx, which only the modules import that
send something: ``examination`` is where to begin. Each check is one function in a module named
after what it looks at; it yields findings (``findings``), and leaves what it has learned with the
``Visit``, for the checks after it. What is known of clients that others wrote is in
``known_clients`` alone.

Nothing is registered, nobody is logged in, and a token is sent to the URL that was named and
nowhere else.
"""
