"""How rows are added, changed, deleted and acted upon, and what has somebody say yes first.

Begin at ``writing.py``, then ``deleting.py``.
"""
