"""Requests in flight, from either side, as rows.

Imported by ``server`` and whatever is above it. Begin with :mod:`.pending`, which has the rows;
:mod:`.running_requests` knows what runs in this process, :mod:`.inbox` takes what clients send for
it, and :mod:`.recovery` ends what processes have left that died.
"""

from __future__ import annotations
