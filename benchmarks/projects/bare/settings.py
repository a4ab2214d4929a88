"""Bare Django."""

from __future__ import annotations

from settings_base import *  # noqa: F403

ROOT_URLCONF = "bare.urls"
