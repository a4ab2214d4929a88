"""Services that some tests need and not every machine has."""

from __future__ import annotations

import os
import socket
from importlib.util import find_spec
from urllib.parse import urlsplit

import pytest

REDIS_URL = os.environ.get("REDIS_URL") or "redis://127.0.0.1:6379/0"


def require_redis() -> None:
    """Skip without Redis or its channel layers, but never where CI names one."""
    missing = _missing_for_redis()
    if missing and os.environ.get("CI") == "true" and os.environ.get("REDIS_URL"):
        pytest.fail(f"CI must have it: {missing}")
    if missing:
        pytest.skip(f"needs {missing}")


def _missing_for_redis() -> str:
    if find_spec("channels_redis") is None:
        return "channels-redis"
    url = urlsplit(REDIS_URL)
    try:
        socket.create_connection((url.hostname or "", url.port or 6379), timeout=2).close()
    except OSError:
        return "Redis; set REDIS_URL"
    return ""
