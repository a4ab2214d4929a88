"""Who may come in, how often, and who may stay.

Imported by ``store`` and whatever is above it; imports ``sessions``. Begin with
:mod:`.access_watch`, which ends what is open of callers who may stay no longer.
:mod:`.rate_counters` counts calls, :mod:`.redeemed_states` lets a state count once only, and
:mod:`.user_deletion` removes what deleted users have.
"""

from __future__ import annotations
