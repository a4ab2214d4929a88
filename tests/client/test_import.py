"""What the client needs: httpx, and no Django."""

from __future__ import annotations

import subprocess
import sys

WITHOUT_HTTPX = """
import sys
sys.modules["httpx"] = None
try:
    import django_mcp.client
except ImportError as error:
    assert "django-mcp-endpoints[client]" in str(error), error
else:
    raise SystemExit("imported")
"""

WITHOUT_DJANGO = """
import asyncio, sys
for name in ("django", "channels", "asgiref"):
    sys.modules[name] = None
from django_mcp.client import Client, ConnectionFailed, Limits
try:
    asyncio.run(Client("http://127.0.0.1:9/mcp", limits=Limits(retries=0)).open())
except ConnectionFailed:
    pass
else:
    raise SystemExit("connected")
"""


def run(program: str) -> None:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_without_httpx_it_says_what_to_install() -> None:
    run(WITHOUT_HTTPX)


def test_it_needs_no_django() -> None:
    run(WITHOUT_DJANGO)
