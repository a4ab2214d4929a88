"""What goes out: requests in flight and messages on their way into rows, and who shows them.

Imported by ``store`` and whatever is above it; imports nothing of the packages beside it. Begin
with :mod:`.records`, which has the words. :mod:`.stream_writer` collects what one POST says, and
:mod:`.outbox` writes it: :mod:`.request_rows` and :mod:`.stream_rows` are the rows.
:mod:`.stream_readers` finds what is new for the connections of this process.
"""

from __future__ import annotations
