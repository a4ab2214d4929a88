"""Sessions of the legacy revisions as rows: opened, found, used, ended.

Imported by ``store`` and whatever is above it; imports nothing of the packages beside it. Begin
with :mod:`.session_rows`: what can become of a session. :mod:`.finding` is the way of every request
into its session, :mod:`.session_cache` spares it the database, :mod:`.session_use` notes it, and
:mod:`.liveness` says which sessions live.
"""

from __future__ import annotations
