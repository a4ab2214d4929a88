"""Has a host on this machine play the public Internet, from which documents are fetched."""

from __future__ import annotations

import os
import ssl

from django.apps import AppConfig


class Internet(AppConfig):
    """The app, which has nothing else."""

    name = "tests.logins"

    def ready(self) -> None:
        """Trust the host whose certificate the environment names, if it names one."""
        from django_mcp.contrib.oauth import client_documents  # noqa: PLC0415

        if certificate := os.environ.get("CERTIFICATE"):
            client_documents.is_public = lambda address: True
            client_documents.tls_context = lambda: ssl.create_default_context(cafile=certificate)
