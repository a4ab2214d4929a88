"""The site of these tests at a port of its own.

    with running_site("mount") as site:
        Person().agree(...)    # of tests.clients.logins.person: logs in, and agrees

Clients find everything from ``site.url`` on. Users are ``anna`` and ``berta``, with the password
``secret``; the admin is at ``/admin/``, and the page on which people agree at ``/o/authorize/``.
``environment`` has what another process needs to see the same rows.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from tests.contrib.oauth.document_host import DocumentHost, serving_documents
from tests.support.servers import (
    CHECKOUT,
    CONFORMANCE,
    HOST,
    RunningServer,
    free_port,
    fresh_database,
    started,
    wait_until_ready,
)

SETTINGS = "tests.logins.served"
PREPARE_SECONDS = 60


@dataclass(frozen=True, slots=True)
class LoginSite:
    """A server, and the environment in which other processes see what it sees."""

    server: RunningServer
    environment: dict[str, str]
    documents: DocumentHost | None = None
    """Where clients can have documents."""

    @property
    def origin(self) -> str:
        """The site, which is the issuer as well."""
        return self.server.origin

    @property
    def url(self) -> str:
        """The endpoint."""
        return self.server.url


@contextmanager
def running_site(
    door: str = "mount", *, has_documents: bool = False, **variables: str
) -> Iterator[LoginSite]:
    """Serve the site by one of ``tests.support.servers.DOORS``, on a database of its own."""
    with ExitStack() as stack:
        directory = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="django-mcp-logins-"))
        )
        host = stack.enter_context(serving_documents(directory)) if has_documents else None
        port = free_port()
        environment = os.environ | {
            "DJANGO_SETTINGS_MODULE": SETTINGS,
            "DATABASE_URL": f"sqlite:///{directory / 'db.sqlite3'}.{uuid4().hex[:8]}",
            "PYTHONPATH": os.pathsep.join(map(str, [CHECKOUT, CONFORMANCE])),
            **variables,
        }
        if host is not None:
            environment["CERTIFICATE"] = str(host.certificate)
        stack.enter_context(fresh_database(environment))
        # Only now, so that the template of the database is the same for all ports.
        environment["SITE"] = f"http://{HOST}:{port}"
        _prepare(environment)
        server = stack.enter_context(
            started(door, environment, log=directory / "server.log", port=port)
        )
        wait_until_ready(server)
        yield LoginSite(server, environment, host)


def _prepare(environment: dict[str, str]) -> None:
    subprocess.run(
        [sys.executable, "-m", "tests.logins.prepare"],
        cwd=CHECKOUT,
        env=environment,
        check=True,
        timeout=PREPARE_SECONDS,
    )
