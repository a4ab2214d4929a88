"""One process that serves the delivery tools through the mount, on every database."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from django.core.asgi import get_asgi_application

from django_mcp import endpoint
from django_mcp.asgi import mount
from tests.support.sites import run, urlconf

from . import site

at_the_mount = pytest.mark.parametrize("application", ["mount"], indirect=True)
"""For what rows and the ledger do, which know nothing of the entrance."""


@pytest.fixture(autouse=True)
def _delivery(transactional_db: Any, settings: Any) -> None:
    settings.ROOT_URLCONF = urlconf(endpoint("mcp", server=site.server))
    settings.DJANGO_MCP = {"AUTH": "django_mcp.auth.public", "WORKER_THREADS": 4}
    site.reset()


@pytest.fixture(params=["mount", "view"])
def application(request: pytest.FixtureRequest) -> Any:
    """The mount, and the view behind Django's own handler."""
    behind = get_asgi_application()
    return mount(behind) if request.param == "mount" else behind


@pytest.fixture
def on_loop() -> Callable[[Coroutine[Any, Any, Any]], Any]:
    """Run a test's coroutine, and end what it leaves behind."""
    return run
