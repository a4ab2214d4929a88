"""Sessions of the legacy revisions as rows: opened, found, touched, ended.

Imported by ``server`` and whatever is above it. Begin with :mod:`.session_rows`: what can become
of a session. :mod:`.finding` is the way of every request into its session, :mod:`.session_cache`
spares it the database, :mod:`.liveness` says which sessions live.
"""

from __future__ import annotations
