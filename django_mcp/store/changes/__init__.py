"""What changes, and how clients come to hear of it.

Imported by ``server`` and whatever is above it. A change goes from :mod:`.publisher` (on commit)
into :mod:`.change_log` (one row for each list or resource); :mod:`.feed` reads it for the
connections of this process, and :mod:`.fanout` writes it into the streams of sessions.
"""

from __future__ import annotations
