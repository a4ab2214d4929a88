"""Sessions and requests in the admin: to look at, to end and to cancel.

Every page costs the same whether there are ten rows or a million.
"""

from __future__ import annotations

from . import requests, sessions  # noqa: F401 - they register themselves
