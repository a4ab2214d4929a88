"""What a site registers, and how a request for it becomes a result.

Knows MCP, Python and Django, calls the store, and knows nothing of HTTP; ``running`` and ``http``
use it. Begin with :mod:`.registry` for what a site registers, with :mod:`.dispatch` for what
becomes of a request, and with :mod:`.context` for what the site's functions can do. Below them,
:mod:`.exchange` is the request being answered, :mod:`.signature` what a function takes.
"""
