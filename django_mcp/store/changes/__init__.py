"""What changes, on its way to clients.

Imported by ``store`` and whatever is above it; imports ``access`` and ``delivery``. Begin with
:mod:`.change_log`: one row for each list or resource that changes. :mod:`.feed` reads it for the
connections of this process, :mod:`.fanout` writes it into the streams of sessions, and
:mod:`.subscription_rows` says who is to be notified.
"""

from __future__ import annotations
