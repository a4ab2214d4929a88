"""What goes out: messages as rows, and who shows them.

Imported by ``server`` and whatever is above it. Begin with :mod:`.records`, which has the words;
:mod:`.stream_writer` collects what one POST says, :mod:`.outbox` writes it, and
:mod:`.stream_readers` finds what is new for the connections of this process.
"""

from __future__ import annotations
