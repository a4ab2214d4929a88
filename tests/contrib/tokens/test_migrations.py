from __future__ import annotations

import pytest
from django.core.management import call_command


@pytest.mark.django_db
def test_the_migrations_are_complete():
    call_command("makemigrations", "django_mcp_tokens", check=True, dry_run=True, verbosity=0)
