"""Requests in flight: those that this process runs, and those that other processes left behind.

Imported by ``store`` and whatever is above it; imports ``access``, ``changes`` and ``delivery``.
Begin with :mod:`.running_requests`: what this process runs, and what stops it. :mod:`.listening`
has the rows of requests that last until their clients go, and :mod:`.recovery` ends requests whose
processes have died.
"""

from __future__ import annotations
