from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from django.conf import settings
from django.test import override_settings

from .support import written


@pytest.fixture
def pages_of_two() -> Iterator[None]:
    with override_settings(DJANGO_MCP={**settings.DJANGO_MCP, "PAGE_SIZE": 2}):
        yield


@pytest.fixture
def write(tmp_path: Path) -> Iterator[Callable[..., None]]:
    """Have the site find files, until the test ends."""
    with ExitStack() as stack:
        yield lambda files: stack.enter_context(written(tmp_path, files))
