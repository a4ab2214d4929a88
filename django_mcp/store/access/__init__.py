"""Who may still come in, and how often.

Imported by ``server`` and whatever is above it. Begin with :mod:`.access_watch`, which ends what is
open of users who may stay no longer.
"""

from __future__ import annotations
