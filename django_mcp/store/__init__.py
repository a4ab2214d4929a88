"""What all processes share, in the Django ORM: sessions, requests in flight, messages, changes.

Imported by ``server`` and whatever is above it. Begin with :mod:`.ledger`, the bookkeeping of one
process, which writes and looks for all that it has in flight; :mod:`.parent_rows` says how rows
come to be below others, :mod:`.cleanup` how they go. :mod:`.inbox` takes what clients send for
requests in flight, and :mod:`.publisher` what the site says has changed.
"""

from __future__ import annotations
