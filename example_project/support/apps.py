"""The app's configuration."""

from __future__ import annotations

from django.apps import AppConfig


class SupportConfig(AppConfig):
    """The support desk; django_mcp finds its `mcp` package as the admin finds `admin.py`."""

    name = "example_project.support"
    label = "support"
    verbose_name = "Support desk"
