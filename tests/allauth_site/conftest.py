"""The tests of a site with django-allauth have settings of their own:

    pytest --ds=tests.allauth_site.settings tests/allauth_site

With other settings there is nothing to collect here.
"""

from __future__ import annotations

import os

if os.environ.get("DJANGO_SETTINGS_MODULE", "").startswith("tests.allauth_site."):
    from .login import anna, browser, client, document_host, documents, nothing_cached

    __all__ = ["anna", "browser", "client", "document_host", "documents", "nothing_cached"]
else:
    collect_ignore_glob = ["test_*.py"]
