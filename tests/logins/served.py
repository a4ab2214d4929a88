"""The settings of the site as a server of its own has them: the database is no test's.

LIFETIME in the environment says for how many seconds access tokens are good. CERTIFICATE names
that of a host on this machine, which then plays the Internet: clients may have documents there.
"""

from __future__ import annotations

import os

from tests.logins.settings import *  # noqa: F403
from tests.logins.settings import DATABASES
from tests.logins.settings import INSTALLED_APPS as APPS
from tests.logins.settings import OAUTH2_PROVIDER as PROVIDER

DATABASES["default"]["TEST"] = {"NAME": DATABASES["default"]["NAME"]}
INSTALLED_APPS = [*APPS, "tests.logins.internet.Internet"]
OAUTH2_PROVIDER = {
    **PROVIDER,
    "CIMD_ENABLED": "CERTIFICATE" in os.environ,
    "ACCESS_TOKEN_EXPIRE_SECONDS": int(os.environ.get("LIFETIME", "3600")),
}
# What goes wrong is in the server's log.
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"console": {"class": "logging.StreamHandler"}},
    "loggers": {"django.request": {"handlers": ["console"], "level": "ERROR"}},
}
