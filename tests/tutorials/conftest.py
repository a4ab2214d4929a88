from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def tutorial_site(settings, tmp_path):
    settings.ROOT_URLCONF = "tests.tutorials.urls"
    settings.MEDIA_ROOT = tmp_path
