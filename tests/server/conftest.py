from __future__ import annotations

import pytest
from django.conf import settings
from django.test import override_settings


@pytest.fixture
def pages_of_two():
    with override_settings(DJANGO_MCP={**settings.DJANGO_MCP, "PAGE_SIZE": 2}):
        yield
